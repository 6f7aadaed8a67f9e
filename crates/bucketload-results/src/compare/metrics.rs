//! The quantities of a comparison, one value per run.

use bucketload_core::ai::AiFigure;
use bucketload_core::capacity::Statistic;
use bucketload_core::stats::decide::Better;
use bucketload_core::stats::quantile::Print;
use bucketload_core::verdict::Word;

use super::{Effect, Quantity, Run, Sample, Unit};
use crate::drill::{DrillResult, Times};
use crate::result::ai;
use crate::result::metric::{Figures, Metric};
use crate::result::{Latency, PhaseResult};

/// The metrics of a whole phase that are compared, with their names in comparisons: those of which more is better, then
/// the others.
const COMPARED: [[(&str, Metric); 2]; 2] = [
    [
        ("operations", Metric::Throughput),
        ("throughput", Metric::Bandwidth),
    ],
    [
        ("client CPU per operation", Metric::ClientCpu),
        ("error share", Metric::Errors),
    ],
];

/// A quantity in one run.
type Value = (Quantity, f64);

/// The quantities that all runs have, and notes about those that only some runs have.
pub(super) fn samples(a: &[Run], b: &[Run]) -> (Vec<Sample>, Vec<String>) {
    let mut notes = Vec::new();
    let overloaded = |run: &&Run| run.result.verdict.word == Word::Overloaded;
    let latencies = !a.iter().chain(b).any(|run| overloaded(&run));
    if !latencies {
        notes.push(
            "a store was overloaded: its latencies depend on the length of the run, so latencies are not \
             compared"
                .to_owned(),
        );
    }
    let plan = |run: &Run| run.result.drill.as_ref().map(|drill| drill.plan.clone());
    let different = a.iter().chain(b).any(|run| plan(run) != plan(&a[0]));
    if different {
        notes.push(
            "not all runs are the same drill, so the figures of drills are not compared".to_owned(),
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
        if different && quantity.id.starts_with("drill/") {
            continue;
        }
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
        notes.push(format!(
            "not compared because some runs lack them: {}",
            missing.join(", ")
        ));
    }
    (samples, notes)
}

fn values(run: &Run, latencies: bool) -> Vec<Value> {
    let several = run.result.measured().count() > 1;
    let mut out = Vec::new();
    let ai = run.result.ai_by_phase();
    for (phase, figures) in &ai {
        out.extend(
            figures
                .iter()
                .map(|(f, value)| of_ai(phase, several, *f, *value)),
        );
    }
    for phase in run.result.measured() {
        of_phase(phase, several, latencies, ai.is_empty(), &mut out);
    }
    out.extend(run.result.drill.iter().flat_map(of_drill));
    out
}

/// A figure of training, checkpoints or a cache. What follows from another one, such as samples per second from the
/// utilisation, is shown but decides nothing.
fn of_ai(phase: &str, several: bool, figure: AiFigure, value: f64) -> Value {
    let decides = matches!(
        figure,
        AiFigure::Au
            | AiFigure::CheckpointWriteTime
            | AiFigure::CheckpointReadTime
            | AiFigure::HitRatio
            | AiFigure::LoadP50
    );
    let follows = matches!(
        figure,
        AiFigure::Samples
            | AiFigure::InputRate
            | AiFigure::CheckpointWrite
            | AiFigure::CheckpointRead
            | AiFigure::DlioWrite
            | AiFigure::DlioRead
    );
    let prefix = match (several, phase) {
        (false, _) | (_, "") => String::new(),
        _ => format!("{phase} "),
    };
    let quantity = Quantity {
        id: match phase {
            "" => format!("run/{figure}"),
            phase => format!("{phase}/{figure}"),
        },
        name: format!("{prefix}{}", Metric::of_ai(figure).title),
        unit: ai::unit(figure),
        better: match figure.is_ceiling() {
            true => Better::Lower,
            false => Better::Higher,
        },
        effect: Effect::Ratio,
        primary: decides,
        gate: !follows,
    };
    (quantity, value)
}

/// The figures of a drill that broke something. A time that is shorter than an interval counts as an interval, because
/// nothing shorter is known; a time that has no end is none.
fn of_drill(drill: &DrillResult) -> Vec<Value> {
    if drill.faults.is_empty() {
        return Vec::new();
    }
    let time = |what: &str, primary, time: Option<Times>| {
        let s = time?.s.max(drill.resolution_s);
        let quantity = Quantity {
            id: format!("drill/{}", what.replace(' ', "/")),
            name: what.to_owned(),
            unit: Unit::Ns,
            better: Better::Lower,
            effect: Effect::Ratio,
            primary,
            gate: true,
        };
        Some((quantity, s * 1e9))
    };
    let availability = Quantity {
        id: "drill/availability".to_owned(),
        name: "availability since the first break".to_owned(),
        unit: Unit::Share,
        better: Better::Higher,
        effect: Effect::Difference,
        primary: false,
        gate: true,
    };
    [
        time("time to recover", true, drill.recover),
        time("time to detect", false, drill.detect),
        time(
            "longest time without a success",
            false,
            Some(drill.longest_gap),
        ),
        time("backlog worked off", false, drill.worked_off),
        Some((availability, drill.available_since.share)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The figures of a phase. Its throughput or medians are the primary ones if the run has no figures of its own kind
/// (`plain`).
fn of_phase(
    phase: &PhaseResult,
    several: bool,
    latencies: bool,
    plain: bool,
    out: &mut Vec<Value>,
) {
    let prefix = if several {
        format!("{} ", phase.name)
    } else {
        String::new()
    };
    let mut add = |what: &str, unit, better, primary, gate, value: f64| {
        let quantity = Quantity {
            id: format!("{}/{}", phase.name, what.replace(' ', "/")),
            name: format!("{prefix}{what}"),
            unit,
            better,
            effect: match unit {
                Unit::Share => Effect::Difference,
                _ => Effect::Ratio,
            },
            primary,
            gate,
        };
        out.push((quantity, value));
    };
    let closed = !phase.open_loop;
    let all = Figures::of_phase(phase);
    let figures = |of: [(&'static str, Metric); 2]| {
        of.into_iter()
            .filter_map(|(name, metric)| Some((name, metric, metric.value(&all)?)))
    };
    let [rates, costs] = COMPARED;
    for (name, metric, value) in figures(rates) {
        let primary = plain && closed && metric == Metric::Throughput;
        add(name, metric.unit, Better::Higher, primary, true, value);
    }
    for class in phase.classes.iter().filter(|_| latencies) {
        let name = phase.class_name(class);
        // In a closed loop, response and service time are equal.
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
                    Unit::Ns,
                    Better::Lower,
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
                let primary = plain && !closed && *kind == "response" && p.q == 0.5;
                duration(&Statistic::Quantile(p.q).name(), primary, p.value_ns as f64);
            }
        }
    }
    for (name, metric, value) in figures(costs) {
        // The client's own cost is shown, but it is not a property of the store.
        let gate = metric != Metric::ClientCpu;
        let (unit, value) = match metric.unit {
            // Comparisons give all times in nanoseconds.
            Unit::UsPerOp => (Unit::Ns, value * 1e3),
            unit => (unit, value),
        };
        add(name, unit, Better::Lower, false, gate, value);
    }
}
