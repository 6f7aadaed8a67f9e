//! The figures that scripts ask for, in one flat object at the head of the JSON.

use std::collections::BTreeMap;

use bucketload_core::verdict::{Limit, Word};
use serde::{Deserialize, Serialize};

use super::{ClassResult, PhaseResult, RunResult};

/// Flat figures of a run. Names end in their unit.
///
/// Besides the fields below it has `PHASE.NAME` for each measured phase, or just `NAME` if there is only one.
/// `NAME` is `ops_per_s`, `bytes_per_s`, `offered_ops_per_s` (open loops only), or a figure of a class, such as
/// `get_ops_per_s`, `get_p50_ns` and `get_p99_ns` (response times of operations that succeeded). A class of one of
/// several works is called `WORK.get`. A percentile with fewer than ten values beyond it is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The verdict.
    pub verdict: Option<Word>,
    /// The figures that users of the workload's model look for first, such as `write_gib_per_s` and `write_s` of
    /// checkpoints and `au_percent` of trainings; absent for models without such figures.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headline: BTreeMap<String, f64>,
    /// Whether every training reached its mark; absent without trainings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// Whether every measured phase met every objective; absent without objectives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo_met: Option<bool>,
    /// Operations that succeeded in the measured phases.
    pub ok: u64,
    /// Operations that failed in the measured phases.
    pub failed: u64,
    /// Their share of the operations that ended.
    pub failed_share: f64,
    /// Share that the run used of what limits the client first; null if unknown.
    pub client_share: Option<f64>,
    /// The multiple of the measured rate that this client could have driven here; null if unknown.
    pub headroom_factor: Option<f64>,
    /// What limits the client first; null if unknown.
    pub headroom_limit: Option<Limit>,
    /// Figures of phases and classes, as described above.
    #[serde(flatten)]
    pub figures: BTreeMap<String, f64>,
}

impl Summary {
    /// The summary of a run with this verdict. Phases that do not measure are left out.
    #[must_use]
    pub fn of(verdict: &bucketload_core::verdict::Verdict, phases: &[PhaseResult]) -> Self {
        let measured: Vec<&PhaseResult> = phases.iter().filter(|p| p.is_measured()).collect();
        let sum = |of: fn(&PhaseResult) -> u64| measured.iter().map(|phase| of(phase)).sum();
        let (ok, failed): (u64, u64) = (sum(|p| p.totals.ok), sum(|p| p.totals.failed));
        let mut objectives = measured.iter().flat_map(|p| &p.objectives).peekable();
        let slo_met = objectives
            .peek()
            .is_some()
            .then(|| objectives.all(|o| o.holds));
        let reserve = verdict.client.reserve;
        let mut figures = BTreeMap::new();
        for phase in &measured {
            let prefix = match measured.len() {
                1 => String::new(),
                _ => format!("{}.", phase.name),
            };
            of_phase(&mut figures, phase, &prefix);
        }
        Self {
            verdict: Some(verdict.word),
            headline: BTreeMap::new(),
            passed: None,
            slo_met,
            ok,
            failed,
            failed_share: failed as f64 / (ok + failed).max(1) as f64,
            client_share: reserve.map(|r| r.used()),
            headroom_factor: reserve.map(|r| r.factor),
            headroom_limit: reserve.map(|r| r.limit),
            figures,
        }
    }
}

impl RunResult {
    /// Adds the headline to the summary.
    pub(crate) fn summarise_headline(&mut self) {
        let figures = self.headline().into_iter().filter_map(|fact| fact.figure);
        self.summary.headline = figures.collect();
        let trained = !self.train.is_empty();
        self.summary.passed = trained.then(|| self.train.iter().all(|train| train.passed));
    }
}

fn of_phase(figures: &mut BTreeMap<String, f64>, phase: &PhaseResult, prefix: &str) {
    let mut add = |name: &str, value: f64| {
        figures.insert(format!("{prefix}{name}"), value);
    };
    let rates = &phase.rates;
    add("ops_per_s", rates.ops_per_s.mean);
    add("bytes_per_s", rates.bytes_per_s.mean);
    if phase.open_loop {
        add("offered_ops_per_s", rates.offered_ops_per_s);
    }
    let several = |class: &ClassResult| phase.classes.iter().any(|c| c.work != class.work);
    for class in &phase.classes {
        let name = match several(class) {
            true => format!("{}.{}", class.work_name, class.class),
            false => class.class.to_string(),
        };
        add(&format!("{name}_ops_per_s"), class.ops_per_s.mean);
        for (figure, q) in [("p50_ns", 0.5), ("p99_ns", 0.99)] {
            if let Some(p) = class.response.percentile(q).filter(|p| p.is_shown()) {
                add(&format!("{name}_{figure}"), p.value_ns as f64);
            }
        }
    }
}
