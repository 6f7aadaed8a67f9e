//! Figures of applications for artificial intelligence: of training, of checkpoints, of the cache of a language model.
//!
//! Each is declared once here. An objective ([`crate::capacity::Slo`]) may name it, and results, comparisons, sweeps and
//! studies show it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::plan::checkpoint::CheckpointAction;
use crate::plan::{PhaseKind, PhasePlan, Plan};

/// The figures that a phase or a run has.
pub type AiFigures = BTreeMap<AiFigure, f64>;

/// The kind of value, which decides the unit and whether more is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AiKind {
    /// A share, 0 to 1; more is better.
    Share,
    /// A number per second; more is better.
    PerSecond,
    /// Bytes per second; more is better.
    BytesPerSecond,
    /// Nanoseconds; less is better.
    Time,
}

/// The application that has a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AiApplication {
    /// Accelerators that train.
    Training,
    /// Checkpoints that are written.
    Writing,
    /// Checkpoints that are read.
    Reading,
    /// The cache of a language model.
    Cache,
}

macro_rules! ai_figures {
    ($($(#[doc = $doc:literal])+ $figure:ident $name:literal: $kind:ident of $application:ident;)+) => {
        /// A figure, by the name under which users ask for it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum AiFigure {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $figure,)+
        }

        impl AiFigure {
            /// Every figure.
            pub const ALL: &'static [Self] = &[$(Self::$figure,)+];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$figure => $name,)+ }
            }

            /// The kind of its values.
            #[must_use]
            pub const fn kind(self) -> AiKind {
                match self { $(Self::$figure => AiKind::$kind,)+ }
            }

            /// The application that has it.
            #[must_use]
            pub const fn application(self) -> AiApplication {
                match self { $(Self::$figure => AiApplication::$application,)+ }
            }
        }
    };
}

ai_figures! {
    /// Utilisation of the accelerators as DLIO computes it: mean over the epochs.
    Au "au": Share of Training;
    /// Samples per second of all accelerators as DLIO computes them.
    Samples "samples": PerSecond of Training;
    /// Input of all accelerators as DLIO computes it, from nominal record sizes.
    InputRate "input-rate": BytesPerSecond of Training;
    /// Bytes of a checkpoint over the time from the common barrier to its last byte, when written.
    CheckpointWrite "checkpoint-write": BytesPerSecond of Writing;
    /// From the common barrier to the last byte of a checkpoint, when written.
    CheckpointWriteTime "checkpoint-write-time": Time of Writing;
    /// Bytes of a checkpoint over the time from the common barrier to its last byte, when read.
    CheckpointRead "checkpoint-read": BytesPerSecond of Reading;
    /// From the common barrier to the last byte of a checkpoint, when read.
    CheckpointReadTime "checkpoint-read-time": Time of Reading;
    /// Bytes of a checkpoint over the longest time of a rank since its own start, when written: DLIO's figure.
    DlioWrite "dlio-write": BytesPerSecond of Writing;
    /// Longest time of a rank since its own start, when written: DLIO's figure.
    DlioWriteTime "dlio-write-time": Time of Writing;
    /// Bytes of a checkpoint over the longest time of a rank since its own start, when read: DLIO's figure.
    DlioRead "dlio-read": BytesPerSecond of Reading;
    /// Longest time of a rank since its own start, when read: DLIO's figure.
    DlioReadTime "dlio-read-time": Time of Reading;
    /// Share of the blocks that were found before the first miss of their request.
    HitRatio "hit-ratio": Share of Cache;
    /// The same of tokens.
    TokenHitRatio "token-hit-ratio": Share of Cache;
    /// Median time of loading the blocks of a request.
    LoadP50 "load-p50": Time of Cache;
    /// 99th percentile of the time of loading the blocks of a request.
    LoadP99 "load-p99": Time of Cache;
    /// Share of the requests that were loaded within the first target of their class.
    Attainment "slo-attainment": Share of Cache;
}

impl AiFigure {
    /// The figure of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|f| f.name() == name)
    }

    /// Whether less is better.
    #[must_use]
    pub const fn is_ceiling(self) -> bool {
        matches!(self.kind(), AiKind::Time)
    }

    /// Whether `phase` can have it.
    #[must_use]
    pub fn is_of(self, phase: &PhasePlan) -> bool {
        let action = |action| {
            let mut works = phase.works.iter();
            works.any(|work| work.model.checkpoint().is_some_and(|c| c.action == action))
        };
        let mut works = phase.works.iter();
        match self.application() {
            AiApplication::Training => works.any(|work| work.model.train().is_some()),
            AiApplication::Cache => works.any(|work| work.model.kvcache().is_some()),
            AiApplication::Writing => action(CheckpointAction::Write),
            AiApplication::Reading => action(CheckpointAction::Read),
        }
    }

    /// Why `plan` cannot have it, with what to use instead; `None` if a measured phase has it.
    #[must_use]
    pub fn missing_in(self, plan: &Plan) -> Option<String> {
        let mut phases = plan.phases.iter();
        if phases.any(|phase| phase.kind == PhaseKind::Run && self.is_of(phase)) {
            return None;
        }
        let (lacks, remedy) = match self.application() {
            AiApplication::Training => (
                "has no accelerators",
                "use a workload that trains, such as `train --show` prints",
            ),
            AiApplication::Writing => (
                "writes no checkpoints that are measured",
                "use `checkpoint` with --phase write or both",
            ),
            AiApplication::Reading => (
                "reads no checkpoints",
                "use `checkpoint` with --phase read or both",
            ),
            AiApplication::Cache => ("has no cache of a language model", "use `kvcache`"),
        };
        Some(format!(
            "the workload {lacks}, so nothing could be measured for {self}; {remedy}"
        ))
    }
}

impl fmt::Display for AiFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{AiFigure, AiFigures};

    #[test]
    fn names_are_distinct_and_stand_in_files() {
        for figure in AiFigure::ALL {
            assert_eq!(AiFigure::from_name(figure.name()), Some(*figure));
            let text = serde_json::to_string(&AiFigures::from([(*figure, 0.5)])).unwrap();
            assert_eq!(text, format!("{{\"{figure}\":0.5}}"));
            let back: AiFigures = serde_json::from_str(&text).unwrap();
            assert_eq!(back[figure], 0.5);
        }
        assert_eq!(AiFigure::from_name("p99"), None);
    }
}
