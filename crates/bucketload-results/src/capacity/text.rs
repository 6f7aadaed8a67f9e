//! A capacity search for the terminal.

use bucketload_core::capacity::{BracketEnd, Limit, Outcome, TrialMeaning};

use super::{CapacityResult, Header, Record, value};
use crate::{study, units};

/// One line about a trial, printed when it ends.
#[must_use]
pub fn trial_line(header: &Header, record: &Record) -> String {
    let trial = record.trial;
    let figures: Vec<String> = record
        .judgement
        .checked
        .iter()
        .map(|c| format!("{} {}", c.objective, value(c)))
        .collect();
    let word = match &record.judgement.meaning {
        TrialMeaning::Client { reason } => format!("CLIENT  {reason}"),
        TrialMeaning::Broken { reason } => format!("BROKEN  {reason}"),
        _ if trial.purpose.is_reference() => format!("p50 {}", units::ns(record.p50.ns as f64)),
        TrialMeaning::Pass => format!("pass    {}", figures.join(", ")),
        TrialMeaning::Fail { reason } => format!("FAIL    {}; {reason}", figures.join(", ")),
    };
    format!(
        "{:>3}  {:<12} {:>11}  {word}",
        trial.number + 1,
        trial.purpose.name(),
        header.load(trial.rate)
    )
}

/// The whole result; `with_trials` adds one line per trial.
#[must_use]
pub fn text(result: &CapacityResult, with_trials: bool) -> String {
    let header = &result.header;
    let mut out = format!(
        "Capacity of {} under {}\nobjectives  {}\n",
        header.target, header.workload, header.slo
    );
    if with_trials {
        out += "\n";
        for record in &result.trials {
            out += &trial_line(header, record);
            out.push('\n');
        }
    }
    if !result.curve.is_empty() {
        out += &curve(result);
    }
    out += "\n";
    for line in conclusion(result) {
        out += &line;
        out.push('\n');
    }
    out
}

/// The table of utilisation against the number of accelerators.
fn utilisation(result: &CapacityResult) -> String {
    let mut out = format!(
        "\nUtilisation against accelerators\n  {:>12}  {:>10}  {:>10}  {:>10}  passed\n",
        "accelerators", "AU", "reads/s", "p50"
    );
    for load in &result.curve {
        let au = load.utilisation;
        out += &format!(
            "  {:>12}  {:>10}  {:>10}  {:>10}  {}/{}\n",
            units::number(load.rate),
            au.map_or_else(|| "-".to_owned(), units::percent),
            units::rate(load.ok_per_s),
            units::ns(load.p50_ns as f64),
            load.passes,
            load.trials
        );
    }
    out
}

/// The table of latency against load.
fn curve(result: &CapacityResult) -> String {
    if result.header.settings.whole && result.header.unit.is_empty() {
        return utilisation(result);
    }
    let offered = match result.header.settings.whole {
        true => result.header.unit(),
        false => "offered/s",
    };
    let mut out = "\nLatency against load\n".to_owned();
    let figure = result
        .header
        .slo
        .primary()
        .map_or("p99".to_owned(), |o| o.metric());
    out += &format!(
        "  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>23}  {}\n",
        offered, "ok/s", "p50", "p99", figure, "band", "passed"
    );
    for load in &result.curve {
        out += &format!(
            "  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10} … {:>10}  {}/{}\n",
            units::rate(load.rate),
            units::rate(load.ok_per_s),
            units::ns(load.p50_ns as f64),
            units::ns(load.p99_ns as f64),
            units::ns(load.primary_ns as f64),
            units::ns(load.band_ns.0 as f64),
            units::ns(load.band_ns.1 as f64),
            load.passes,
            load.trials
        );
    }
    out
}

fn side(header: &Header, side: &BracketEnd, passed: bool) -> String {
    let (count, word) = if passed {
        (side.passes, "passed")
    } else {
        (side.fails(), "failed")
    };
    format!(
        "{} ({count} of {} trials {word})",
        header.load(side.rate),
        side.trials
    )
}

/// The findings in sentences; the first states the capacity.
#[must_use]
pub fn conclusion(result: &CapacityResult) -> Vec<String> {
    let Some(outcome) = &result.outcome else {
        return vec![format!(
            "interrupted after {} trials: no capacity to report",
            result.trials.len()
        )];
    };
    let header = &result.header;
    let mut lines = headline(result, outcome);
    if let Some(t) = &result.threshold {
        let end = |rate: f64, open: &str| match rate.is_finite() && rate > 0.0 {
            true => header.load(rate),
            false => open.to_owned(),
        };
        lines.push(format!(
            "regression over {} trials: half of them pass at {} (95 % interval {} to {})",
            t.trials,
            header.load(t.rate),
            end(t.ci.0, "unbounded below"),
            end(t.ci.1, "unbounded above")
        ));
    }
    // These are about rates.
    if !header.settings.whole {
        let power = "largest power (throughput over median latency)";
        lines.extend(study::saturated(result.saturation.as_ref(), "trials"));
        lines.extend(study::bend(
            "knee of the curve (Kneedle)",
            result.knee.as_ref(),
        ));
        lines.extend(study::bend(power, result.power.as_ref()));
    }
    lines.extend(cautions(result, outcome));
    lines
}

fn headline(result: &CapacityResult, outcome: &Outcome) -> Vec<String> {
    let header = &result.header;
    let (low, high) = (outcome.low.as_ref(), outcome.high.as_ref());
    let confirmed = result.header.settings.confirm > 0;
    match (outcome.limit, low, high) {
        (Limit::Store, Some(low), Some(high)) => vec![
            format!(
                "capacity between {} and {}{}: the store is the limit",
                match header.settings.whole {
                    true => units::number(low.rate),
                    false => units::rate(low.rate),
                },
                header.load(high.rate),
                if confirmed { "" } else { ", not confirmed" }
            ),
            format!(
                "objectives met at {}, missed at {}",
                side(header, low, true),
                side(header, high, false)
            ),
        ],
        (Limit::Client, low, _) => {
            let searched = result
                .trials
                .iter()
                .any(|r| !r.trial.purpose.is_reference());
            let mut lines = vec![match low {
                Some(low) => format!(
                    "capacity at least {}: above that the client is the limit, not the store",
                    header.load(low.rate)
                ),
                None if !searched => format!(
                    "no capacity: the client is the limit already in the baseline at {}",
                    header.load(header.settings.reference_rate)
                ),
                None => "no capacity: the client limits even the lowest rate".to_owned(),
            }];
            lines.extend(result.client_limit.clone());
            lines
        }
        (Limit::MaxRate, Some(low), _) => vec![format!(
            "capacity at least {}, the highest {} allowed ({} of {} trials passed)",
            header.load(low.rate),
            if header.settings.whole {
                "number"
            } else {
                "rate"
            },
            low.passes,
            low.trials
        )],
        (Limit::NotMet, _, Some(high)) => vec![format!(
            "the objectives are not met even at the lowest rate: {}",
            side(header, high, false)
        )],
        (_, low, high) => vec![
            "the capacity could not be confirmed: trials at the same rate contradict each other"
                .to_owned(),
            format!(
                "last bracket of the search: {}; {}",
                low.map_or("none".to_owned(), |s| side(header, s, true)),
                high.map_or("none".to_owned(), |s| side(header, s, false))
            ),
        ],
    }
}

fn cautions(result: &CapacityResult, outcome: &Outcome) -> Vec<String> {
    let mut lines = Vec::new();
    let header = &result.header;
    if !header.settings.whole && (header.quick || header.trial_s.is_some()) {
        let wanted = bucketload_core::capacity::trial_seconds(
            &header.slo,
            outcome.low.map_or(header.settings.start_rate, |s| s.rate),
        );
        let shortest = result
            .trials
            .iter()
            .filter(|r| !r.trial.purpose.is_reference())
            .map(|r| r.window_s)
            .fold(f64::INFINITY, f64::min);
        if shortest < wanted {
            lines.push(format!(
                "caution: trials were as short as {}, but the objectives need {} each: the bracket is rough",
                units::seconds(shortest),
                units::seconds(wanted)
            ));
        }
    }
    if outcome.moves > 0 {
        lines.push(format!(
            "the bracket was widened {} times: trials near its ends contradicted each other",
            outcome.moves
        ));
    }
    if !outcome.unrecovered.is_empty() {
        let numbers: Vec<String> = outcome
            .unrecovered
            .iter()
            .map(|n| (n + 1).to_string())
            .collect();
        lines.push(format!(
            "caution: after trial {} the median did not return to within 10 % of its baseline; later trials may be contaminated",
            numbers.join(", ")
        ));
    }
    let ageing = outcome.final_p50_ns / outcome.baseline_p50_ns - 1.0;
    if ageing.abs() > 0.1 {
        lines.push(format!(
            "caution: the median of the references changed by {}, from {} at the start to {} at the end: the store changed during the search",
            units::percent(ageing),
            units::ns(outcome.baseline_p50_ns),
            units::ns(outcome.final_p50_ns)
        ));
    }
    lines.extend(study::unreadable(result.damaged));
    lines
}
