//! How much more the client could drive, and what would limit it first (docs/spec/statistics.md section 2).
//!
//! Each resource that a run uses in proportion to its rate gives a bound: at the rate that was measured, the
//! busiest load thread used a share s of a core, so by the same protocol, with the same sizes and on the same
//! machine the thread lasts for 1/s times the rate. The smallest bound is the headroom. CPU time per operation
//! falls as load rises, because more is done per wake-up, so the bound is cautious. A rule that finds the client
//! at its limit caps the headroom, so that CLIENT-BOUND never stands beside a large one.

use serde::{Deserialize, Serialize};
use strum::EnumMessage as _;

use super::rules::{NULL_P99_SHARE, null_ratio, null_share};
use super::{Figures, Reason};

/// What limits the client first.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumMessage,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Limit {
    /// The busiest load thread has one core.
    LoadThread,
    /// The program that each operation starts.
    Program,
    /// The cores of the machine, with everything that runs on it.
    Machine,
    /// The line rate of the network interface.
    Network,
    /// The rate that the client reached against a target that does nothing.
    NullTarget,
    /// The client sent less than the schedule offered.
    Schedule,
    /// The client's own delays reached the limit of their rule.
    Timing,
    /// The cap on operations in flight.
    InFlightCap,
}

impl Limit {
    /// The limit in words: `load thread`.
    #[must_use]
    pub fn words(self) -> String {
        let name: &str = self.into();
        name.replace('-', " ")
    }

    /// What it is, as a sentence.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }
}

/// The multiple of the measured rate that the client could have driven, and what would have stopped it there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Headroom {
    /// The multiple; 1 or less if the client was at its limit.
    pub factor: f64,
    /// What limits it.
    pub limit: Limit,
}

impl Headroom {
    /// The share that the run used of what limits the client first, the inverse of the factor.
    #[must_use]
    pub fn used(&self) -> f64 {
        1.0 / self.factor
    }
}

/// The headroom of a run with these figures, in which `reasons` were found. `None` if the CPU time of the load
/// threads is unknown or says nothing because they spin, and no rule found the client at its limit.
pub(super) fn of(f: &Figures, reasons: &[Reason]) -> Option<Headroom> {
    let found = |rule: &str| reasons.iter().find(|reason| reason.rule == rule);
    let mut bounds = Vec::new();
    if f.busiest_thread.is_some() || found("V4").is_some() || found("V5").is_some() {
        let used = [
            (Limit::LoadThread, f.busiest_thread),
            (Limit::Program, f.program),
            (Limit::Machine, f.machine_busy),
            (Limit::Network, f.nic),
            (Limit::NullTarget, null_ratio(f).map(|ratio| 1.0 / ratio)),
        ];
        bounds.extend(used.map(|(limit, share)| (limit, 1.0 / share.unwrap_or(0.0))));
    }
    if let Some(reason) = found("V1") {
        let sent = reason.figures.iter().map(|figure| figure.value);
        bounds.push((Limit::Schedule, sent.fold(1.0, f64::min)));
    }
    let late = found("V5").is_some() && null_share(f).is_some_and(|share| share > NULL_P99_SHARE);
    let at_limit = match (late || found("V2").is_some(), found("V3").is_some()) {
        (true, _) => Some(Limit::Timing),
        (_, true) => Some(Limit::InFlightCap),
        _ => None,
    };
    // A saturated resource is the cause of delays, so it is named instead of them.
    if found("V4").is_none() {
        bounds.extend(at_limit.map(|limit| (limit, 1.0)));
    }
    let usable = bounds.into_iter().filter(|(_, factor)| factor.is_finite());
    let (limit, factor) = usable.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = if at_limit.is_some() { 1.0 } else { f64::MAX };
    Some(Headroom {
        factor: factor.min(most),
        limit,
    })
}
