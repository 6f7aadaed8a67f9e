//! The quantities of a comparison, one value per run.

use bucketload_core::stats::decide::Better;
use bucketload_core::stats::quantile::Print;
use bucketload_core::verdict::Word;

use super::{Effect, Quantity, Run, Sample, Unit};
use crate::result::{ClassResult, Latency, PhaseResult};
use crate::units;

/// A quantity in one run.
type Value = (Quantity, f64);

/// The quantities that every run has, and notes about those that only some have.
pub(super) fn samples(a: &[Run], b: &[Run]) -> (Vec<Sample>, Vec<String>) {
    let mut notes = Vec::new();
    let overloaded = |run: &&Run| run.result.verdict.word == Word::Overloaded;
    let latencies = !a.iter().chain(b).any(|run| overloaded(&run));
    if !latencies {
        notes.push(
            "a store was overloaded: latencies then depend on the length of the run and are not \
             compared"
                .to_owned(),
        );
    }
    let of = |runs: &[Run]| -> Vec<Vec<Value>> {
        runs.iter().map(|run| values(run, latencies)).collect()
    };
    let (a, b) = (of(a), of(b));
    let find = |values: &Vec<Value>, id: &str| {
        let found = values.iter().find(|(quantity, _)| quantity.id == id);
        found.map(|(_, value)| *value)
    };
    let mut samples = Vec::new();
    let mut missing = Vec::new();
    for (quantity, _) in &a[0] {
        let side = |runs: &[Vec<Value>]| -> Option<Vec<f64>> {
            runs.iter().map(|run| find(run, &quantity.id)).collect()
        };
        match (side(&a), side(&b)) {
            (Some(a), Some(b)) => samples.push(Sample {
                quantity: quantity.clone(),
                a,
                b,
            }),
            _ => missing.push(quantity.name.clone()),
        }
    }
    if !missing.is_empty() {
        notes.push(format!("not every run has: {}", missing.join(", ")));
    }
    (samples, notes)
}

fn values(run: &Run, latencies: bool) -> Vec<Value> {
    let several = run.result.measured().count() > 1;
    let mut out = Vec::new();
    for phase in run.result.measured() {
        of_phase(phase, several, latencies, &mut out);
    }
    out
}

fn of_phase(phase: &PhaseResult, several: bool, latencies: bool, out: &mut Vec<Value>) {
    let prefix = if several {
        format!("{} ", phase.name)
    } else {
        String::new()
    };
    let mut add = |what: &str, unit, better, effect, primary, gate, value: f64| {
        let id = format!("{}/{}", phase.name, what.replace(' ', "/"));
        let quantity = Quantity {
            id,
            name: format!("{prefix}{what}"),
            unit,
            better,
            effect,
            primary,
            gate,
        };
        out.push((quantity, value));
    };
    let rates = &phase.rates;
    let closed = !phase.open_loop;
    add(
        "operations",
        Unit::OpsPerS,
        Better::Higher,
        Effect::Ratio,
        closed,
        true,
        rates.ops_per_s.mean,
    );
    if rates.bytes_per_s.mean > 0.0 {
        add(
            "throughput",
            Unit::BytesPerS,
            Better::Higher,
            Effect::Ratio,
            false,
            true,
            rates.bytes_per_s.mean,
        );
    }
    for class in phase.classes.iter().filter(|_| latencies) {
        let name = class_name(phase, class);
        // In a closed loop both are the same.
        let kinds: &[(&str, &Latency)] = if closed {
            &[("response", &class.response)]
        } else {
            &[("response", &class.response), ("service", &class.service)]
        };
        for (kind, latency) in kinds {
            if latency.n == 0 {
                continue;
            }
            let mut duration = |figure: &str, primary, value| {
                add(
                    &format!("{name} {kind} {figure}"),
                    Unit::Nanoseconds,
                    Better::Lower,
                    Effect::Ratio,
                    primary,
                    true,
                    value,
                );
            };
            duration("mean", false, latency.mean_ns);
            for p in latency
                .percentiles
                .iter()
                .filter(|p| p.print != Print::Omit)
            {
                let primary = !closed && *kind == "response" && p.q == 0.5;
                duration(&quantile_name(p.q), primary, p.value_ns as f64);
            }
        }
    }
    if let Some(us) = phase.client.cpu_us_per_op {
        add(
            "client CPU per operation",
            Unit::Nanoseconds,
            Better::Lower,
            Effect::Ratio,
            false,
            false,
            us * 1e3,
        );
    }
    let totals = &phase.totals;
    let ended = (totals.ok + totals.failed).max(1);
    add(
        "error share",
        Unit::Share,
        Better::Lower,
        Effect::Difference,
        false,
        true,
        totals.failed as f64 / ended as f64,
    );
}

/// p50, p99, p99.9.
pub(super) fn quantile_name(q: f64) -> String {
    let percent = (q * 1e6).round() / 1e4;
    format!("p{percent}")
}

/// The class, with its work where the phase has several.
pub(super) fn class_name(phase: &PhaseResult, class: &ClassResult) -> String {
    let several = phase.classes.iter().any(|other| other.work != class.work);
    if several {
        format!("{} {}", class.work_name, class.class)
    } else {
        class.class.to_string()
    }
}

impl Unit {
    /// `value` with this unit.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Nanoseconds => units::ns(value),
            Self::OpsPerS => format!("{}/s", units::rate(value)),
            Self::BytesPerS => format!("{}/s", units::bytes(value)),
            Self::Share => units::percent(value),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn percentiles_have_their_usual_names() {
        let names = [0.5, 0.95, 0.99, 0.999].map(super::quantile_name);
        assert_eq!(names, ["p50", "p95", "p99", "p99.9"]);
    }
}
