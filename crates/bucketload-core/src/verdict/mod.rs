//! Whether a result is valid, and if not, why.
//!
//! [`judge`] applies the rules of docs/spec/statistics.md section 2 to a plain struct of measured
//! [`Figures`]. It needs no run directory and no clock. Each rule that finds a problem contributes a
//! [`Reason`]; the verdict is the most severe [`Word`] among them, or `VALID`.
//!
//! | rule | finds | word |
//! |---|---|---|
//! | `incomplete` | the run did not complete, or nothing succeeded | INCOMPLETE |
//! | `conservation` | operations were lost or counted twice | INCOMPLETE |
//! | `V1` | sends fell behind the schedule | CLIENT-BOUND |
//! | `V2` | the generator was slow | CLIENT-BOUND |
//! | `V3` | the tail was made by a limit of the client | CLIENT-BOUND |
//! | `V4` | the client machine or its network was saturated | CLIENT-BOUND |
//! | `V5` | the client has no headroom over the null target | CLIENT-BOUND |
//! | `backlog` | V1, V2 and V4 pass, but the operations in flight keep growing | OVERLOADED |
//! | `unstable` | V1, V2 and V4 pass, but the number of active jobs keeps growing | OVERLOADED |
//! | `steady` | the measured window is not stationary | UNSTEADY |
//! | `V6` | the wall clock was set during the run | DEGRADED |
//! | `V7` | too many operations failed | DEGRADED |
//! | `unfinished` | operations were still in flight at the end of the drain | DEGRADED |
//! | `semi-open` | the in-flight cap was reached | DEGRADED |
//! | `retries` | operations were repeated | DEGRADED |
//! | `steal` | the hypervisor took CPU time away | DEGRADED |
//!
//! Instants are measured on one monotonic clock, so on one host V6 concerns only the step of the wall clock
//! (used in signatures and logs). It degrades a run instead of voiding it. V7 says that the store refused
//! work, not that the client was slow, and therefore degrades too; its text says whether the run is still
//! good for exploration. If more than half of the operations failed, or the phase ended early because nearly all did,
//! the figures describe failures, so rules that draw conclusions about client, schedule and steadiness from them
//! (V1 to V5, `backlog`, `unstable`, `steady`) are not applied.

mod figures;
mod headroom;
mod rules;

pub use figures::{Backlog, Completeness, Figures, Slice};
pub use headroom::{Headroom, Limit};

use serde::{Deserialize, Serialize};
use strum::EnumMessage as _;

/// The verdict, from harmless to severe.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
    strum::EnumMessage,
)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
#[strum(serialize_all = "SCREAMING-KEBAB-CASE")]
pub enum Word {
    /// The figures are valid and may be compared.
    Valid,
    /// Measured properly, but under conditions that rule out comparison.
    Degraded,
    /// The measured window drifts: the figures depend on when it began and ended.
    Unsteady,
    /// The store could not keep up: throughput is the result, latencies depend on the length of the run.
    Overloaded,
    /// The client limited the result, which says nothing about the store.
    ClientBound,
    /// The run was cut short or measured nothing.
    Incomplete,
}

impl Word {
    /// The word as printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What it means, as a sentence.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }
}

/// A measured figure that a rule examined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit: `ns`, `ops/s`, `1` for shares, …
    pub unit: String,
}

/// A problem found by one rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The rule's name, as in the module's table.
    pub rule: String,
    /// Its consequence for the run.
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

/// The client's cost, and its distance from its own limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// CPU time of the client process, and of programs that it ran, per operation, nanoseconds; `None` if not
    /// measured.
    pub cpu_ns_per_op: Option<f64>,
    /// Rate against the null target divided by the measured rate; `None` without calibration. The null target
    /// speaks no protocol and moves no bytes: `reserve` says what the client could have driven.
    pub headroom: Option<f64>,
    /// What the client could have driven here; `None` if it is unknown. Of several phases, the one with the
    /// least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Headroom>,
}

/// The verdict on a run with its reasons, most severe first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The most severe word among the reasons, or `VALID` without reasons.
    pub word: Word,
    /// Why.
    pub reasons: Vec<Reason>,
    /// Checks that could not be made, and other remarks; they do not influence the word.
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
    let mut notes = rules::notes(figures);
    if figures.mostly_failed() {
        // A client that spins through failures is busy, late and unsteady because of them.
        let all = reasons.len();
        reasons.retain(|r| matches!(r.word, Word::Incomplete | Word::Degraded));
        if reasons.len() < all {
            let note = "most operations failed, so client, schedule and steadiness were not judged";
            notes.insert(0, note.to_owned());
        }
        reasons.sort_by_key(|r| r.rule != "V7");
    }
    reasons.sort_by_key(|r| std::cmp::Reverse(r.word));
    let reserve = headroom::of(figures, &reasons);
    if reserve.is_none() {
        let note = "the headroom is unknown: the CPU time of the load threads is missing, or they poll all the time";
        notes.push(note.to_owned());
    }
    Verdict {
        word: reasons.first().map_or(Word::Valid, |r| r.word),
        reasons,
        notes,
        client: Client {
            cpu_ns_per_op: figures.cpu_ns_per_op,
            headroom: rules::null_ratio(figures),
            reserve,
        },
    }
}

#[cfg(test)]
mod tests;
