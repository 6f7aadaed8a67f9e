//! The answer first: verdict, the figures that matter most, what the verdict means, why, and which objectives were
//! met.

use std::fmt::Write as _;

use bucketload_core::capacity::{CheckedObjective, Objective};
use bucketload_core::stats::quantile::Print;
use bucketload_core::verdict::{Headroom, Limit, Reason, Verdict, Word};

use super::TextOptions;
use super::lines::room;
use crate::kit::{Cell, Style, Table};
use crate::result::{ClassResult, PhaseResult, RunResult, ai};
use crate::units;

/// Classes and phases that the first line shows.
const CLASSES: usize = 3;
const PHASES: usize = 4;
/// Bytes per operation from which the throughput in bytes is shown.
const LARGE: f64 = (1 << 20) as f64;
/// Between two parts of the first line.
const BETWEEN: &str = " · ";

/// Appends the first lines.
pub(super) fn write(out: &mut String, result: &RunResult, on: TextOptions) -> std::fmt::Result {
    let verdict = &result.verdict;
    let style = match verdict.word {
        Word::Valid => Style::Good,
        Word::Degraded | Word::Unsteady | Word::Overloaded => Style::Warn,
        Word::ClientBound | Word::Incomplete => Style::Bad,
    };
    write!(out, "{}", style.paint(verdict.word.name(), on.colour))?;
    let mut used = verdict.word.name().len();
    for (n, part) in parts(result).into_iter().enumerate() {
        let between = if n == 0 { "  " } else { BETWEEN };
        let needs = room(between) + room(&part);
        if on.width.is_some_and(|width| used + needs > width) {
            write!(out, "\n  {part}")?;
            used = 2 + room(&part);
        } else {
            write!(out, "{between}{part}")?;
            used += needs;
        }
    }
    writeln!(out, "\n{}", verdict.word.meaning())?;
    reasons(out, verdict, on.explain)?;
    objectives(out, result, on);
    Ok(())
}

/// Whether more operations of the measured phases failed than succeeded.
pub(super) fn is_mostly_failed(result: &RunResult) -> bool {
    result.summary.failed > result.summary.ok
}

fn parts(result: &RunResult) -> Vec<String> {
    let mut parts = Vec::new();
    let measured: Vec<&PhaseResult> = result.measured().collect();
    let summary = &result.summary;
    match summary.slo_met {
        Some(true) => parts.push("objectives met".to_owned()),
        Some(false) => parts.push("objectives MISSED".to_owned()),
        None => {}
    }
    let share = units::percent(summary.failed_share);
    let failed = units::count(summary.failed);
    if is_mostly_failed(result) {
        let all = units::count(summary.ok + summary.failed);
        parts.push(format!("{failed} of {all} operations failed ({share})"));
    }
    let headline = result.headline_text();
    match measured.as_slice() {
        [] => parts.push("nothing was measured".to_owned()),
        _ if !headline.is_empty() => {
            let facts = result.headline().into_iter().map(|fact| fact.brief);
            parts.extend(facts.filter(|brief| !brief.is_empty()));
        }
        [phase] => {
            parts.push(rate(phase));
            let bytes = phase.rates.bytes_per_s.mean;
            if bytes >= LARGE * phase.rates.ops_per_s.mean && bytes > 0.0 {
                parts.push(format!("{}/s", units::bytes(bytes)));
            }
            let mut classes: Vec<&ClassResult> =
                phase.classes.iter().filter(|c| c.ok > 0).collect();
            classes.sort_by_key(|class| std::cmp::Reverse(class.ok));
            let tails = classes.into_iter().take(CLASSES);
            parts.extend(tails.filter_map(|class| tail(phase, class)));
        }
        few if few.len() <= PHASES => {
            parts.extend(few.iter().map(|p| format!("{} {}", p.name, rate(p))));
        }
        many => {
            let ok = units::count(summary.ok);
            parts.push(format!("{} phases, {ok} operations", many.len()));
        }
    }
    match summary.failed {
        0 => parts.push("0 failed".to_owned()),
        _ if is_mostly_failed(result) => {}
        _ => parts.push(format!("{failed} failed ({share})")),
    }
    // What drives failures is no measure of the client.
    let reserve = result.verdict.client.reserve;
    let reserve = reserve.filter(|_| !is_mostly_failed(result));
    parts.extend(reserve.map(|reserve| client(&reserve)));
    parts
}

/// Operations per second, and whether they were what the schedule offered.
fn rate(phase: &PhaseResult) -> String {
    let (done, offered) = (phase.rates.ops_per_s.mean, phase.rates.offered_ops_per_s);
    match phase.open_loop {
        false => format!("{} ops/s", units::rate(done)),
        true if done >= 0.99 * offered => format!("{} ops/s as offered", units::rate(done)),
        true => format!(
            "{} of {} ops/s offered",
            units::rate(done),
            units::rate(offered)
        ),
    }
}

/// The highest percentile of the response time up to p99 that has enough values beyond it.
fn tail(phase: &PhaseResult, class: &ClassResult) -> Option<String> {
    let mut percentiles = class.response.percentiles.iter().rev();
    let p = percentiles.find(|p| p.q <= 0.99 && p.is_shown())?;
    let (name, q) = (phase.class_name(class), units::number(p.q * 100.0));
    let rough = if p.print == Print::Plain { "~" } else { "" };
    Some(format!(
        "{name} p{q} {rough}{}",
        units::ns(p.value_ns as f64)
    ))
}

fn client(reserve: &Headroom) -> String {
    match reserve.limit {
        Limit::Schedule | Limit::Timing | Limit::InFlightCap => {
            format!("client at its limit ({})", reserve.limit.words())
        }
        limit => format!(
            "client used {} of what it has ({})",
            units::percent(reserve.used()),
            limit.words()
        ),
    }
}

/// Why, and what to do about it: each rule once, with what it measured in each phase.
fn reasons(out: &mut String, verdict: &Verdict, explain: bool) -> std::fmt::Result {
    for (n, reason) in verdict.reasons.iter().enumerate() {
        let (word, rule) = (reason.word, &reason.rule);
        let same = |other: &&Reason| other.rule == *rule && other.advice == reason.advice;
        if verdict.reasons[..n].iter().any(|before| same(&before)) {
            continue;
        }
        let all = verdict.reasons[n..].iter().filter(same);
        let measured: Vec<&str> = all.map(|reason| reason.measured.as_str()).collect();
        writeln!(out, "  {word} ({rule}): {}", measured.join("; "))?;
        if explain {
            writeln!(out, "    expected: {}", reason.condition)?;
        }
        writeln!(out, "    advice: {}", reason.advice)?;
    }
    Ok(())
}

/// One line per objective and phase.
fn objectives(out: &mut String, result: &RunResult, on: TextOptions) {
    let phases: Vec<&PhaseResult> = result
        .measured()
        .filter(|p| !p.objectives.is_empty())
        .collect();
    if phases.is_empty() {
        return;
    }
    let mut table = Table::new(3, ["objective", "phase", "", "measured", "of"]);
    for phase in &phases {
        for checked in &phase.objectives {
            table.row(vec![
                checked.objective.as_str().into(),
                if phases.len() > 1 {
                    phase.name.as_str()
                } else {
                    ""
                }
                .into(),
                match checked.holds {
                    true => Cell::Styled(Style::Good, "met".to_owned()),
                    false => Cell::Styled(Style::Bad, "MISSED".to_owned()),
                },
                measured(checked).into(),
                units::count(checked.n).into(),
            ]);
        }
    }
    out.push('\n');
    table.compact().render_within(on.width, on.colour, out);
}

/// The objectives as lines of a log, such as `MISSED p99<50ms: 84.9 ms`; empty without objectives.
#[must_use]
pub fn objective_lines(result: &RunResult) -> Vec<String> {
    let several = result.measured().count() > 1;
    let line = |phase: &PhaseResult, checked: &CheckedObjective| {
        let word = if checked.holds { "met" } else { "MISSED" };
        let phase = match several {
            true => format!(" in phase {}", phase.name),
            false => String::new(),
        };
        format!("{word} {}{phase}: {}", checked.objective, measured(checked))
    };
    let phases = result.measured();
    phases
        .flat_map(|phase| phase.objectives.iter().map(move |c| line(phase, c)))
        .collect()
}

/// The measured value of an objective with its unit; `~` and a dash as in the table of latencies.
fn measured(checked: &CheckedObjective) -> String {
    use bucketload_core::capacity::Bound;
    let bound = checked.objective.parse::<Objective>().map(|o| o.bound);
    let (Some(value), Ok(bound)) = (checked.value, bound) else {
        return "nothing".to_owned();
    };
    let text = match bound {
        Bound::Duration { .. } => units::ns(value),
        Bound::Errors { .. } => units::percent(value),
        Bound::Operations { .. } => format!("{}/s", units::rate(value)),
        Bound::Bytes { .. } => format!("{}/s", units::bytes(value)),
        Bound::Ai { figure, .. } => ai::unit(figure).show(value),
    };
    match checked.print {
        Print::Bold => text,
        Print::Plain => format!("~{text}"),
        Print::Omit => format!("~{text} (fewer than 10 values beyond)"),
    }
}
