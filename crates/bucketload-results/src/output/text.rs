//! The result as plain tables for readers.

use std::fmt::Write as _;

use bucketload_core::sink::PhaseEnd;
use bucketload_core::stats::quantile::Print;

use super::{detail, headline, lines};
use crate::kit::{Cell, Style, Table};
use crate::result::figure::{CLASS, CLIENT, DURATIONS, Figure, Outcome, Unit};
use crate::result::latency::HEAD as LATENCY;
use crate::result::{KvMlperf, KvTarget, KvcacheResult, Latency, PhaseResult, RunResult};
use crate::units;

/// Options of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Whether emphasis is written as ANSI escape sequences.
    pub colour: bool,
    /// Columns of the terminal: tables leave out columns to fit, and lines are broken between words. `None` for no
    /// limit.
    pub width: Option<usize>,
    /// Whether every term is explained.
    pub explain: bool,
}

/// Columns of latencies that narrow terminals leave out, in this order.
pub(super) const EXPENDABLE: [&str; 5] = ["p90", "p95", "mean", "n", "p99.9"];

/// The result as text, ending with a line break: the answer, what it means and why, tables, what ran.
///
/// A percentile with fewer than 10 values beyond it is shown as `-`, one with fewer than 100 is marked with a
/// `~`.
#[must_use]
pub fn text(result: &RunResult, options: TextOptions) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, result, options);
    // A part that has nothing to say leaves only the empty line before it.
    let out = out.replace("\n\n\n", "\n\n");
    match options.width {
        Some(width) => lines::broken(&out, width),
        None => out,
    }
}

fn write(out: &mut String, result: &RunResult, on: TextOptions) -> std::fmt::Result {
    headline::write(out, result, on)?;
    // What went wrong stands before tables that hardly describe anything.
    let wrong = result.run.error.is_some() || headline::is_mostly_failed(result);
    if wrong {
        failures(out, result)?;
    }
    if let Some(drill) = &result.drill {
        writeln!(out)?;
        super::drill::write(out, drill)?;
    }
    if let Some(checkpoint) = &result.checkpoint {
        writeln!(out)?;
        super::checkpoint::write(out, checkpoint, on)?;
    }
    for train in &result.train {
        writeln!(out)?;
        super::train::write(out, train)?;
    }
    for phase in &result.phases {
        writeln!(out)?;
        if phase.is_measured() {
            measured(out, phase, on)?;
        } else {
            brief(out, phase)?;
        }
    }
    if let Some(balance) = &result.nodes {
        detail::nodes(out, balance, on)?;
    }
    writeln!(out)?;
    detail::op_log(out, &result.run)?;
    if let Some(run) = &result.ossperf {
        super::ossperf::write(out, run)?;
    }
    if let Some(rounds) = &result.rounds {
        super::rounds::write(out, rounds)?;
    }
    if let Some(oracle) = &result.oracle {
        super::oracle::write(out, oracle, on.colour)?;
    }
    if !wrong {
        failures(out, result)?;
    }
    remarks(out, result)?;
    writeln!(out)?;
    super::provenance::write(out, result)?;
    match on.explain {
        true => super::explain::write(out, result),
        false => Ok(()),
    }
}

/// One line for a phase that does not measure.
fn brief(out: &mut String, phase: &PhaseResult) -> std::fmt::Result {
    let t = &phase.totals;
    let seconds = phase.drained_ns.saturating_sub(phase.started_ns) as f64 / 1e9;
    write!(
        out,
        "Phase {}{}: {} operations in {}",
        phase.name,
        kind(phase),
        units::count(t.ok),
        units::seconds(seconds)
    )?;
    if t.ok > 0 {
        write!(out, ", {} ops/s", units::rate(phase.rates.ops_per_s.mean))?;
    }
    if t.bytes > 0 {
        write!(out, ", {}/s", units::bytes(phase.rates.bytes_per_s.mean))?;
    }
    if t.failed > 0 {
        write!(out, ", {} failed", units::count(t.failed))?;
    }
    writeln!(out, "{}", unusual_end(phase))
}

/// The phase's purpose, unless its name says it.
fn kind(phase: &PhaseResult) -> String {
    match super::comparison::word(&phase.kind) {
        kind if kind == phase.name => String::new(),
        kind => format!(" ({kind})"),
    }
}

fn unusual_end(phase: &PhaseResult) -> String {
    match phase.end {
        None => "; its end was not recorded".to_owned(),
        Some(PhaseEnd::Interrupted) => "; interrupted".to_owned(),
        Some(PhaseEnd::Aborted) => "; aborted".to_owned(),
        Some(PhaseEnd::Failing) => "; ended early, because nearly all operations failed".to_owned(),
        Some(PhaseEnd::Converged) => format!("; ended early, at {}", phase.precision),
        Some(_) if !phase.precision.is_empty() => {
            format!("; did not reach {}", phase.precision)
        }
        Some(_) => String::new(),
    }
}

fn measured(out: &mut String, phase: &PhaseResult, on: TextOptions) -> std::fmt::Result {
    let heading = Style::Bold.paint(&format!("Phase {}:", phase.name), on.colour);
    writeln!(
        out,
        "{heading} {}{}",
        phase.load.join("; "),
        unusual_end(phase)
    )?;
    let (w, t) = (&phase.window, &phase.totals);
    let offered_s = phase.offered_until_ns.saturating_sub(phase.started_ns) as f64 / 1e9;
    writeln!(
        out,
        "  measured {} of {} (warm-up {}); {} operations offered, {} sent{}",
        units::seconds(w.seconds()),
        units::seconds(offered_s),
        if w.warmup_ns == 0 {
            "none".to_owned()
        } else {
            units::seconds(w.warmup_ns as f64 / 1e9)
        },
        units::count(t.offered),
        units::count(t.issued),
        if t.capped == 0 {
            String::new()
        } else {
            format!(
                ", {} arrivals hit the in-flight cap",
                units::count(t.capped)
            )
        },
    )?;
    writeln!(out)?;
    throughput(phase, on, out);
    writeln!(out)?;
    latencies(phase, on, out);
    makespans(phase, on, out);
    kv_durations(phase, on, out);
    detail::anatomy(out, phase)?;
    detail::slowest(out, phase)?;
    errors(out, phase)?;
    model(out, phase)?;
    super::accounting::write(out, phase, on)?;
    client(out, phase)?;
    match &phase.endpoints {
        Some(balance) => detail::endpoints(out, balance, on),
        None => Ok(()),
    }
}

fn throughput(phase: &PhaseResult, on: TextOptions, out: &mut String) {
    let shown = || CLASS.iter().filter(|figure| !figure.title.is_empty());
    let mut head = vec!["operation"];
    for figure in shown() {
        head.push(figure.title);
        head.extend(figure.has_interval().then_some("± 95 %"));
    }
    let table = Table::new(1, head);
    let mut table = table.expending(&["bytes/op", "retries", "cancelled", "± 95 %"]);
    let mut add = |name: String, outcome: &Outcome| {
        let mut row = vec![name.into()];
        shown().for_each(|figure| row.extend(cells(figure, outcome)));
        table.row(row);
    };
    for class in &phase.classes {
        add(phase.class_name(class), &class.into());
    }
    if phase.classes.len() > 1 {
        add("all".to_owned(), &Outcome::of_phase(phase));
        if phase.open_loop && phase.totals.offered > 0 {
            let rates = &phase.rates;
            let mut row = vec![Cell::from("offered")];
            for figure in shown() {
                row.push(match figure.unit {
                    Unit::PerS => units::rate(rates.offered_ops_per_s).into(),
                    Unit::BytesPerS if phase.knows_offered_bytes() => {
                        figure.unit.show(rates.offered_bytes_per_s).into()
                    }
                    _ => Cell::default(),
                });
                row.extend(figure.has_interval().then(Cell::default));
            }
            table.row(row);
        }
    }
    table.render_within(on.width, on.colour, out);
}

/// A figure and, if it has one, its interval. Operations that moved no bytes have no byte figures.
fn cells(figure: &Figure<Outcome>, of: &Outcome) -> Vec<Cell> {
    let mut cells = vec![Cell::default(); 1 + usize::from(figure.has_interval())];
    let value = figure.value(of);
    let no_bytes = matches!(figure.unit, Unit::Bytes | Unit::BytesPerS) && value == Some(0.0);
    let Some(value) = value.filter(|_| !no_bytes) else {
        return cells;
    };
    cells[0] = match figure.unit {
        Unit::PerS => units::rate(value),
        unit => unit.show(value),
    }
    .into();
    if let Some(estimate) = figure.estimate(of) {
        let share = estimate.relative_half_width();
        cells[1] = share.map_or_else(|| "-".to_owned(), units::percent).into();
    }
    cells
}

fn latencies(phase: &PhaseResult, on: TextOptions, out: &mut String) {
    let table = Table::new(2, ["latency", ""].into_iter().chain(LATENCY));
    let mut table = table.expending(&EXPENDABLE);
    let mut rough = false;
    for class in &phase.classes {
        let mut title = phase.class_name(class);
        for duration in DURATIONS {
            let latency = (duration.of)(class);
            // In a closed loop, an operation is due when it starts.
            let same =
                duration.id == "service" && !phase.open_loop && class.service == class.response;
            if latency.n > 0 && !same {
                table.row(latency_row(
                    std::mem::take(&mut title),
                    duration.title,
                    latency,
                    &mut rough,
                ));
            }
        }
    }
    let none = Latency::default();
    let replay = phase.replay.as_ref();
    let blocked = replay.map_or(&none, |r| &r.blocked);
    let shaped = replay.map_or(&none, |r| &r.shaped);
    let mut lag = "client".to_owned();
    for (what, latency) in [
        ("lag", &phase.lag),
        ("late + build", &phase.late),
        ("wait", &phase.dispatch),
        ("key order", blocked),
        ("shaping", shaped),
    ] {
        if latency.n > 0 {
            table.row(latency_row(
                std::mem::take(&mut lag),
                what,
                latency,
                &mut rough,
            ));
        }
    }
    table.render_within(on.width, on.colour, out);
    if rough {
        out.push_str("  (~ fewer than 100 values lie beyond it; - fewer than 10)\n");
    }
}

/// Durations of the requests of a language model.
fn kv_durations(phase: &PhaseResult, on: TextOptions, out: &mut String) {
    let Some(cache) = &phase.kvcache else { return };
    let [n, figures @ ..] = LATENCY;
    let table = Table::new(1, ["request", n].into_iter().chain(figures));
    let mut table = table.expending(&EXPENDABLE);
    let mut rough = false;
    for duration in cache.durations.iter().filter(|d| d.time.n > 0) {
        let figures = latency_row(String::new(), "", &duration.time, &mut rough);
        let mut row: Vec<Cell> = vec![duration.name.clone().into()];
        row.extend(figures.into_iter().skip(2));
        table.row(row);
    }
    out.push('\n');
    table.render_within(on.width, on.colour, out);
}

/// Makespans of stages and jobs.
fn makespans(phase: &PhaseResult, on: TextOptions, out: &mut String) {
    let Some(jobs) = &phase.jobs else { return };
    let [n, figures @ ..] = LATENCY;
    let table = Table::new(1, ["makespan", n, "failed"].into_iter().chain(figures));
    let mut table = table.expending(&EXPENDABLE);
    let mut rough = false;
    for span in &jobs.spans {
        let figures = latency_row(String::new(), "", &span.makespan, &mut rough);
        let mut row: Vec<Cell> = vec![span.name.clone().into()];
        let mut figures = figures.into_iter().skip(2);
        row.extend(figures.next());
        row.push(units::count(span.failed).into());
        row.extend(figures);
        table.row(row);
    }
    out.push('\n');
    table.render_within(on.width, on.colour, out);
}

/// Figures of jobs and replays besides their operations.
fn model(out: &mut String, phase: &PhaseResult) -> std::fmt::Result {
    if let Some(jobs) = &phase.jobs {
        let c = &jobs.counts;
        let most = phase.series.jobs.iter().copied().fold(0.0, f64::max);
        writeln!(
            out,
            "  jobs: {} started, {} ended, {} waited for others; at most {most:.1} in progress{}",
            units::count(c.begun),
            units::count(c.ended),
            units::count(c.delayed),
            if jobs.unstable {
                ", and growing: UNSTABLE"
            } else {
                ""
            }
        )?;
    }
    if let Some(replay) = &phase.replay {
        let counts = replay.rows().into_iter().filter(|(_, n)| *n > 0);
        let counts: Vec<String> = counts
            .map(|(what, n)| format!("{} {what}", units::count(n)))
            .collect();
        let counts = match counts.is_empty() {
            true => "nothing shed, skipped or absent".to_owned(),
            false => counts.join(", "),
        };
        writeln!(out, "  replay: {counts}")?;
    }
    if let Some(cache) = &phase.kvcache {
        kvcache(out, cache)?;
    }
    Ok(())
}

/// Figures of the cache of a language model, besides its durations.
fn kvcache(out: &mut String, cache: &KvcacheResult) -> std::fmt::Result {
    if let Some(figures) = &cache.mlperf {
        mlperf(out, figures)?;
    }
    let said: &[&str] = match cache.mlperf {
        Some(_) => &[],
        None => &["blocks looked up", "hits", "blocks written"],
    };
    if cache.mlperf.is_none() {
        blocks(out, cache)?;
    }
    let rest = cache.rows().into_iter();
    let rest = rest.filter(|(what, n)| *n > 0 && !said.contains(what));
    let rest: Vec<String> = rest
        .map(|(what, n)| format!("{} {what}", units::count(n)))
        .collect();
    if !rest.is_empty() {
        writeln!(out, "  cache: {}", rest.join(", "))?;
    }
    for class in cache.classes.iter().filter(|class| class.time.n > 0) {
        let targets: Vec<String> = class.targets.iter().filter_map(target).collect();
        let first = class.targets.first().map_or(0, |target| target.target_ns);
        writeln!(
            out,
            "  class {}: {} requests{}, {:.1} % within {}; {}",
            class.name,
            units::count(class.time.n),
            if cache.mlperf.is_some() {
                ""
            } else {
                " with a hit"
            },
            100.0 * class.within,
            units::ns(first as f64),
            match targets.is_empty() {
                true => "too few for percentiles".to_owned(),
                false => targets.join(", "),
            }
        )?;
    }
    Ok(())
}

/// The figures of MLPerf Storage.
fn mlperf(out: &mut String, f: &KvMlperf) -> std::fmt::Result {
    let p95 = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| units::ns(ms * 1e6));
    writeln!(
        out,
        "  MLPerf: read {:.3} GiB/s, write {:.3} GiB/s, {} tokens/s through the store; p95 of a read {}, of a write {}",
        f.aggregated_read_bandwidth_gbps,
        f.aggregated_write_bandwidth_gbps,
        units::rate(f.aggregated_storage_throughput_tokens_per_sec),
        p95(f.aggregated_device_read_p95_ms),
        p95(f.aggregated_device_write_p95_ms),
    )
}

fn blocks(out: &mut String, cache: &KvcacheResult) -> std::fmt::Result {
    let c = &cache.counts;
    writeln!(
        out,
        "  cache: {:.3} % of {} blocks hit, {:.3} % of {} tokens; {} blocks written",
        100.0 * cache.block_hit_ratio,
        units::count(c.blocks),
        100.0 * cache.token_hit_ratio,
        units::count(c.tokens),
        units::count(c.written)
    )
}

/// A percentile of a class and whether it kept its target; `None` if it is not known.
fn target(target: &KvTarget) -> Option<String> {
    let name = format!("p{}", (target.q * 1e6).round() / 1e4);
    let value = units::ns(target.value_ns? as f64);
    let word = if target.kept? { "kept" } else { "MISSED" };
    Some(format!("{name} {value} {word}"))
}

pub(super) fn latency_row(
    title: String,
    what: &str,
    latency: &Latency,
    rough: &mut bool,
) -> Vec<Cell> {
    let mut row: Vec<Cell> = vec![
        title.into(),
        what.into(),
        units::count(latency.n).into(),
        units::ns(latency.mean_ns).into(),
    ];
    for p in &latency.percentiles {
        let value = units::ns(p.value_ns as f64);
        *rough |= p.print != Print::Bold;
        row.push(match p.print {
            Print::Omit => "-".into(),
            Print::Plain => format!("~{value}").into(),
            Print::Bold => Cell::Styled(Style::Bold, value),
        });
    }
    row.push(units::ns(latency.max_ns as f64).into());
    row
}

fn errors(out: &mut String, phase: &PhaseResult) -> std::fmt::Result {
    for class in phase.classes.iter().filter(|c| !c.errors.is_empty()) {
        let kinds: Vec<String> = class
            .errors
            .iter()
            .map(|e| format!("{} {}", units::count(e.count), e.kind))
            .collect();
        writeln!(
            out,
            "  errors of {}: {}",
            phase.class_name(class),
            kinds.join(", ")
        )?;
    }
    Ok(())
}

fn client(out: &mut String, phase: &PhaseResult) -> std::fmt::Result {
    let shown = CLIENT.iter().filter(|figure| !figure.brief.is_empty());
    let parts: Vec<String> = shown
        .filter_map(|figure| {
            let value = figure.value(&phase.client)?;
            Some(match figure.unit {
                // Memory use is never 0: the reading is missing.
                Unit::Bytes if value == 0.0 => return None,
                Unit::UsPerOp => format!("{} {}", figure.unit.show(value), figure.brief),
                Unit::Times => {
                    let limit = phase.client.headroom_limit.map(|limit| limit.words());
                    format!(
                        "{} {value:.1}x ({})",
                        figure.brief,
                        limit.unwrap_or_default()
                    )
                }
                unit => format!("{} {}", figure.brief, unit.show(value)),
            })
        })
        .collect();
    if parts.is_empty() {
        return Ok(());
    }
    writeln!(out, "  client: {}", parts.join(", "))
}

/// The error that ended the run, and the first failures.
fn failures(out: &mut String, result: &RunResult) -> std::fmt::Result {
    if let Some(error) = &result.run.error {
        writeln!(out, "Error: {error}")?;
    }
    for failure in result.failures.iter().take(5) {
        writeln!(
            out,
            "Failed: {} {}: {}",
            failure.class, failure.key, failure.error
        )?;
    }
    if result.failures.len() > 5 {
        let more = result.failures.len() - 5;
        writeln!(
            out,
            "Failed: {more} more are in the run directory (events.jsonl)"
        )?;
    }
    Ok(())
}

/// Notes of the verdict, warnings and damage.
fn remarks(out: &mut String, result: &RunResult) -> std::fmt::Result {
    for note in &result.verdict.notes {
        writeln!(out, "Note: {note}")?;
    }
    let note = &result.run.scale_note;
    for warning in &result.warnings {
        // The last part says it.
        let is_scale = !note.is_empty() && warning.starts_with("scale ") && warning.ends_with(note);
        if !is_scale {
            writeln!(out, "Warning: {warning}")?;
        }
    }
    let damage = &result.damage;
    for file in &damage.torn {
        writeln!(
            out,
            "Damage: the last line of {file} is incomplete; the figures end before it"
        )?;
    }
    let lines = damage.lines.len() as u64 + damage.more_lines;
    if lines > 0 {
        writeln!(
            out,
            "Damage: {lines} lines are unreadable; the first is {}",
            damage.lines[0]
        )?;
    }
    if damage.histograms > 0 {
        writeln!(
            out,
            "Damage: {} histograms are missing; percentiles use the remaining ones",
            damage.histograms
        )?;
    }
    Ok(())
}
