//! Whether to believe a result, and why not.
//!
//! [`judge`] applies the rules of docs/spec/statistics.md section 2 to a plain struct of measured
//! [`Figures`]; it knows nothing of run directories or clocks. Each rule that finds something
//! contributes a [`Reason`]; the verdict is the gravest [`Word`] among them, or `VALID`.
//!
//! | rule | finds | word |
//! |---|---|---|
//! | `incomplete` | the run did not end by itself, or nothing succeeded | INCOMPLETE |
//! | `conservation` | operations were lost or counted twice | INCOMPLETE |
//! | `V1` | sends fell behind the schedule | CLIENT-BOUND |
//! | `V2` | the generator was slow | CLIENT-BOUND |
//! | `V3` | the tail was made by a limit of the client | CLIENT-BOUND |
//! | `V4` | the client machine or its network was saturated | CLIENT-BOUND |
//! | `V5` | the client has no headroom over the null target | CLIENT-BOUND |
//! | `backlog` | V1, V2 and V4 hold and the operations in flight keep growing | OVERLOADED |
//! | `unstable` | V1, V2 and V4 hold and the jobs under way keep growing | OVERLOADED |
//! | `steady` | the measured window is not stationary | UNSTEADY |
//! | `V6` | the wall clock was set during the run | DEGRADED |
//! | `V7` | too many operations failed | DEGRADED |
//! | `unfinished` | operations had not ended when the drain did | DEGRADED |
//! | `semi-open` | the in-flight cap was reached | DEGRADED |
//! | `retries` | operations were repeated | DEGRADED |
//! | `steal` | the hypervisor took CPU time away | DEGRADED |
//!
//! Instants are measured on one monotonic clock, so on one host V6 is only the step of the wall
//! clock (signatures and logs carry it) and degrades a run instead of voiding it. V7 says that the
//! store refused work, not that the client was slow, and therefore degrades too; its text tells
//! whether the run may still be explored or not even that.

mod figures;
mod rules;

pub use figures::{Backlog, Completeness, Figures, Slice};

use serde::{Deserialize, Serialize};

/// The verdict, from harmless to grave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Word {
    /// The figures mean what they say and may be compared.
    #[serde(rename = "VALID")]
    Valid,
    /// Measured properly under conditions that forbid comparison.
    #[serde(rename = "DEGRADED")]
    Degraded,
    /// The measured window drifts: the figures depend on when it began and ended.
    #[serde(rename = "UNSTEADY")]
    Unsteady,
    /// The store could not keep up: throughput is the answer, latencies depend on the run length.
    #[serde(rename = "OVERLOADED")]
    Overloaded,
    /// The client limited the result: it says nothing about the store.
    #[serde(rename = "CLIENT-BOUND")]
    ClientBound,
    /// The run was cut short or measured nothing.
    #[serde(rename = "INCOMPLETE")]
    Incomplete,
}

impl Word {
    /// The word as printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "VALID",
            Self::Degraded => "DEGRADED",
            Self::Unsteady => "UNSTEADY",
            Self::Overloaded => "OVERLOADED",
            Self::ClientBound => "CLIENT-BOUND",
            Self::Incomplete => "INCOMPLETE",
        }
    }
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A measured figure that a rule looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit: `ns`, `ops/s`, `1` for shares, …
    pub unit: String,
}

/// A finding of one rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The rule's name, as in the module's table.
    pub rule: String,
    /// What it makes of the run.
    pub word: Word,
    /// The condition that was not met.
    pub condition: String,
    /// What was measured, as a sentence.
    pub measured: String,
    /// What to do about it.
    pub advice: String,
    /// The measured figures.
    pub figures: Vec<Figure>,
}

/// What the client cost and how far it was from its own limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// CPU time of the client process, and of programs that it ran, per operation, nanoseconds; `None` when not measured.
    pub cpu_ns_per_op: Option<f64>,
    /// Rate against the null target over the rate measured; `None` without calibration.
    pub headroom: Option<f64>,
}

/// The verdict on a run with its reasons, gravest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The gravest word among the reasons, `VALID` without reasons.
    pub word: Word,
    /// Why.
    pub reasons: Vec<Reason>,
    /// What could not be checked, or should be known; no influence on the word.
    pub notes: Vec<String>,
    /// The client's cost and headroom.
    pub client: Client,
}

impl Verdict {
    /// Whether latencies and throughput may be compared with another run's.
    #[must_use]
    pub fn is_comparable(&self) -> bool {
        self.word == Word::Valid
    }
}

/// Applies every rule to `figures`.
#[must_use]
pub fn judge(figures: &Figures) -> Verdict {
    let mut reasons: Vec<Reason> = rules::ALL.iter().filter_map(|rule| rule(figures)).collect();
    let client_kept_up = !reasons
        .iter()
        .any(|r| matches!(r.rule.as_str(), "V1" | "V2" | "V4"));
    if client_kept_up {
        reasons.extend(rules::backlog(figures));
        reasons.extend(rules::unstable(figures));
    }
    reasons.sort_by_key(|r| std::cmp::Reverse(r.word));
    Verdict {
        word: reasons.first().map_or(Word::Valid, |r| r.word),
        reasons,
        notes: rules::notes(figures),
        client: Client {
            cpu_ns_per_op: figures.cpu_ns_per_op,
            headroom: rules::headroom(figures),
        },
    }
}

#[cfg(test)]
mod tests;
