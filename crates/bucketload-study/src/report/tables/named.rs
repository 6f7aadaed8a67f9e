//! Tables in the layouts of other benchmarks, with published values next to ours.

use bucketload_results::grid::published::{NODES, SYSTEMS, published as of_grid};
use bucketload_results::kit::escape::slug;
use bucketload_results::kit::{Cell, Column, Table};
use bucketload_results::result::Ossperf;
use bucketload_results::result::ossperf::STEPS;
use bucketload_results::units;

use super::super::estimate::Estimate;
use super::super::figures::{processes, targets};
use super::super::groups::{Group, Measured};
use super::super::published;
use super::super::read::Files;
use super::super::show::{self, Ops, distinct};
use super::Request;
use crate::model::Metric;

/// OSSperf's steps with a bandwidth, each with several clients and with one: number and name of the step, short and
/// full name of the mode, whether there are several clients.
const MOVES: [(usize, &str, &str, &str, bool); 4] = [
    (1, "upload", "par", "parallel", true),
    (1, "upload", "seq", "sequential", false),
    (3, "download", "par", "parallel", true),
    (3, "download", "seq", "sequential", false),
];

/// OSSperf's Tables 4 and 5 for each target, then the tables as published. They combine all experiments of the study,
/// since the sequential and the parallel one each contribute columns.
pub(super) fn ossperf(files: &Files, all: &[Measured]) -> Vec<Table> {
    let of_workload = all.iter().filter(|m| m.experiment.workload == "ossperf");
    let groups = of_workload.flat_map(|m| &m.groups);
    let mut out = Vec::new();
    for (target, label) in distinct(groups.map(|g| (&*g.target, &*g.label))) {
        let own = all.iter().flat_map(|m| &m.groups);
        let own: Vec<&Group> = own.filter(|g| g.target == target).collect();
        out.push(bandwidths(files, target, label, &own));
        out.push(times(target, label, &own));
    }
    if files.study.published == "ossperf" && !out.is_empty() {
        out.push(ossperf_published());
    }
    out
}

/// The distinct `sizes`, ascending.
fn ascending(sizes: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut sizes: Vec<u64> = sizes.collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn sizes(own: &[&Group]) -> Vec<u64> {
    let swept = own.iter().filter_map(|g| g.number).map(|n| n as u64);
    let steps = own.iter().flat_map(|g| &g.extra.ossperf);
    ascending(swept.chain(steps.map(|(_, ossperf)| ossperf.size_bytes)))
}

/// The runs of a size with one client or with several, each with its group.
fn runs<'a>(
    own: &'a [&Group],
    size: u64,
    parallel: bool,
) -> impl Iterator<Item = (&'a Group, &'a Ossperf)> {
    let all = own.iter().flat_map(|group| {
        let runs = group.extra.ossperf.iter();
        runs.map(move |(clients, run)| (*group, *clients, run))
    });
    all.filter(move |(_, clients, run)| run.size_bytes == size && (*clients > 1) == parallel)
        .map(|(group, _, run)| (group, run))
}

/// Bandwidths of a step, Mbit/s, of the runs with one client or with several.
fn bandwidth(own: &[&Group], size: u64, parallel: bool, step: usize) -> Cell {
    let complete = runs(own, size, parallel).filter(|(_, run)| run.incomplete.is_empty());
    // The column of `results.csv` is truncated to milliseconds, which is wrong for quick steps.
    let values: Vec<f64> = complete
        .filter_map(|(_, run)| run.exact_mbit_s(step))
        .collect();
    let mark = runs(own, size, parallel).last();
    let mark = mark.map_or_else(String::new, |(group, _)| show::mark(group));
    Estimate::cell(Estimate::mean(&values), mbit).marked(&mark)
}

fn mbit(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 1000.0 => format!("{v:.1}"),
        v => units::count(v.round() as u64),
    }
}

fn bandwidths(files: &Files, target: &str, label: &str, own: &[&Group]) -> Table {
    let server = files.target(target).map_or("", |(_, t)| t.server.as_str());
    let like = published::system_like("ossperf", &format!("{target} {label} {server}"));
    // A store in the local network is closer to Table 4 than to a cloud.
    let system = like
        .or(Some("MinIO"))
        .filter(|_| files.study.published == "ossperf");
    let mut columns = vec![Column::text("file size", "size_bytes")];
    for (_, step, short, long, _) in MOVES {
        let key = format!("{step}_{long}_mbit_s");
        columns.push(Column::figure(&format!("{step} {short}"), &key));
    }
    for (system, (_, step, short, long, _)) in system.iter().flat_map(|s| MOVES.map(|m| (s, m))) {
        let title = format!("{step} {short} ({system}, published)");
        let key = format!("published_{step}_{long}_mbit_s");
        columns.push(Column::number(&title, &key));
    }
    let mut table = Table::named(
        &format!("ossperf-{target}"),
        format!("Bandwidth of {label} by file size (Mbit/s)"),
        columns,
    );
    for size in sizes(own) {
        let mut row = vec![Cell::text(units::bytes(size as f64))];
        row.extend(MOVES.map(|(step, _, _, _, parallel)| bandwidth(own, size, parallel, step)));
        if let Some(system) = system {
            row.extend(MOVES.map(|(_, step, _, way, _)| ossperf_value(system, step, way, size)));
        }
        table.row(row);
    }
    let mut note = format!(
        "10^6 bits per second by OSSperf's formula, size times files times 8 over the time of the step, which OSSperf itself truncates to milliseconds. par: several clients at once; seq: one. \
         Geometric mean of the repetitions. {}",
        show::NOTE
    );
    if system.is_some() {
        note += " ";
        note += published::SEE;
    }
    table.noted(note).compact()
}

fn ossperf_value(system: &str, step: &str, way: &str, size: u64) -> Cell {
    let size = size.to_string();
    let value = published::of("ossperf")
        .find(|v| (&*v.system, &*v.quantity, &*v.variant, &*v.key) == (system, step, way, &size));
    Estimate::cell(value.map(|v| Estimate::plain(v.value)), mbit)
}

/// The six steps' times.
fn times(target: &str, label: &str, own: &[&Group]) -> Table {
    let mut columns = vec![
        Column::text("file size", "size_bytes"),
        Column::text("clients", "clients"),
    ];
    columns.extend(STEPS.iter().map(|step| {
        let key = format!("{}_s", step.replace('-', "_"));
        Column::figure(step, &key)
    }));
    columns.push(Column::figure("sum", "sum_s"));
    let mut table = Table::named(
        &format!("ossperf-times-{target}"),
        format!("Times of OSSperf's six steps on {label}"),
        columns,
    );
    for size in sizes(own) {
        for (word, parallel) in [("one", false), ("several", true)] {
            let complete: Vec<&Ossperf> = runs(own, size, parallel)
                .map(|(_, run)| run)
                .filter(|run| run.incomplete.is_empty())
                .collect();
            if complete.is_empty() {
                continue;
            }
            let seconds = |run: &Ossperf, step: usize| {
                let step = run.steps.get(step)?;
                Some(step.time_ns as f64 / 1e9)
            };
            let figure =
                |values: Vec<f64>| Estimate::cell(Estimate::mean(&values), |s| units::ns(s * 1e9));
            let of = |step| {
                complete
                    .iter()
                    .filter_map(move |run| seconds(run, step))
                    .collect()
            };
            let sum = |run: &&Ossperf| (0..run.steps.len()).filter_map(|s| seconds(run, s)).sum();
            let mut row = vec![Cell::text(units::bytes(size as f64)), Cell::text(word)];
            row.extend((0..STEPS.len()).map(|step| figure(of(step))));
            row.push(figure(complete.iter().map(sum).collect()));
            table.row(row);
        }
    }
    table.noted(
        "From the start of a step to the end of its last operation; excluding verification. Geometric mean of the repetitions; \
         in brackets: 95 % interval.",
    )
}

fn ossperf_published() -> Table {
    let systems = [("MinIO", "Table 4"), ("Amazon S3", "Table 5")];
    let each = || {
        systems
            .into_iter()
            .flat_map(|system| MOVES.map(|m| (system, m)))
    };
    let mut columns = vec![Column::text("file size", "size_bytes")];
    columns.extend(each().map(|((system, table), (_, step, short, long, _))| {
        let key = format!("{}_{step}_{long}_mbit_s", slug(system));
        Column::number(&format!("{system} {step} {short} ({table})"), &key)
    }));
    let mut table = Table::named(
        "ossperf-published",
        "Published by others, on another machine: OSSperf, Tables 4 and 5 (Mbit/s)",
        columns,
    );
    let keys = published::of("ossperf").filter_map(|v| v.key.parse().ok());
    for size in ascending(keys) {
        let mut row = vec![Cell::text(units::bytes(size as f64))];
        let value = |((system, _), (_, step, _, way, _))| ossperf_value(system, step, way, size);
        row.extend(each().map(value));
        table.row(row);
    }
    let source = published::of("ossperf").next();
    table.noted(format!(
        "Source: {}. {}",
        source.map_or("", |v| v.source.trim_end_matches(", Table 4")),
        published::note("ossperf")
    ))
}

/// The grid: one row per files × bytes, one column per system and number of processes; one table per step.
pub(super) fn grid(request: &Request<'_>) -> Vec<Table> {
    let groups = &request.measured.groups;
    let metric = request.table.metric.unwrap_or(Metric::Bandwidth);
    let bandwidth = matches!(metric, Metric::Bandwidth | Metric::WallBandwidth);
    let wall = metric.is_of_grids();
    let (what, unit, factor) = match bandwidth {
        true => ("bytes", "mib_per_s", 1.0 / 1_048_576.0),
        false => ("files", "files_per_s", 1.0),
    };
    let (figure, meaning) = match (bandwidth, wall) {
        (true, false) => (
            "A_mean, MiB/s",
            "the mean of their times, as in the study; \
             higher than what the store delivered if the processes did not all run at the same time",
        ),
        (false, false) => ("R_mean, files/s", "the mean of their times"),
        (true, true) => (
            "A_wall, MiB/s",
            "the time from the first start to the last end, \
             which is what the store delivered",
        ),
        (false, true) => (
            "R_wall, files/s",
            "the time from the first start to the last end",
        ),
    };
    let mut numbers = processes(groups);
    numbers.retain(|n| *n > 0);
    let targets = targets(groups);
    let pairs: Vec<(&str, &str, u32)> = targets
        .iter()
        .flat_map(|(target, label, _)| numbers.iter().map(move |n| (*target, *label, *n)))
        .collect();
    let mut rows: Vec<(&str, (u64, u64))> = Vec::new();
    for group in groups {
        let known = rows.iter().any(|(name, _)| *name == group.value);
        rows.extend(
            group
                .extra
                .files
                .filter(|_| !known)
                .map(|files| (&*group.value, files)),
        );
    }
    let mut columns = vec![
        Column::text("row", "row"),
        Column::number("files", "files_per_process"),
        Column::number("bytes", "bytes_per_file"),
    ];
    columns.extend(pairs.iter().map(|(target, label, n)| {
        let of_wall = if wall { "wall_" } else { "" };
        let key = format!("{target}_{n}_{of_wall}{unit}");
        Column::figure(&format!("{label}, {n}"), &key)
    }));
    let made = |phase| {
        let ops = Ops { phase, class: "" };
        let title = format!("{phase} by row, target and number of processes ({figure})");
        let mut table = request.table(&[metric.id, phase], &title, columns.clone());
        for (row, (count, bytes)) in &rows {
            let of_row: Vec<&Group> = groups.iter().filter(|g| g.value == *row).collect();
            let estimate = |group: &Group| show::estimate(group, metric, ops);
            let mut any = false;
            let mut cells = vec![Cell::text(*row), Cell::Count(*count), Cell::Count(*bytes)];
            for (target, _, n) in &pairs {
                let own = || of_row.iter().filter(|g| g.target == *target);
                cells.push(match own().find(|g| g.processes == *n) {
                    Some(group) => {
                        let estimate = estimate(group).map(|o| o.times(factor));
                        any |= estimate.is_some();
                        Estimate::cell(estimate, plain).marked(&show::mark(group))
                    }
                    None => {
                        let unmeasured = own().find(|g| g.runs.is_empty());
                        unmeasured.map_or(Cell::None, |g| Cell::text(g.why_none()))
                    }
                });
            }
            if any {
                table.row(cells);
            }
        }
        let name = figure.split(',').next().unwrap_or(figure);
        table.noted(format!(
            "{name}: {what} of all processes over {meaning}. Geometric mean of the repetitions. {}",
            show::NOTE
        ))
    };
    let phases = show::phases(groups, &request.table.phase);
    let mut out: Vec<Table> = phases.into_iter().map(made).collect();
    // The published values are based on means.
    if request.files.study.published == "cs597" && !wall {
        out.extend(grid_quoted(bandwidth));
    }
    out
}

/// The corrected tables of the study.
fn grid_quoted(bandwidth: bool) -> Vec<Table> {
    let (steps, unit, what): (&[&str], _, _) = match bandwidth {
        true => (&["write", "read"], "MiB/s", "bandwidth"),
        false => (&["write", "read", "touch"], "files/s", "files"),
    };
    let each = || SYSTEMS.into_iter().flat_map(|s| NODES.map(|n| (s, n)));
    let made = |step: &&str| {
        let mut columns = vec![Column::text("row", "row")];
        columns.extend(each().map(|(system, nodes)| {
            let key = format!("{}_{nodes}", slug(system));
            Column::number(&format!("{system}, {nodes}"), &key)
        }));
        let title = format!(
            "Published by others, on other machines: {step} by row, system and number of nodes ({unit})"
        );
        let mut table = Table::named(&format!("cs597-published-{step}-{what}"), title, columns);
        let rows: Vec<String> = match (bandwidth, *step) {
            (true, _) => (1..=8).map(|i| format!("g{i}")).collect(),
            (false, "touch") => vec!["touch".to_owned()],
            (false, _) => vec!["g0".to_owned()],
        };
        for row in rows {
            let values: Vec<Option<f64>> = match of_grid(step, &row) {
                Some(values) => values.iter().map(|v| Some(*v)).collect(),
                None => each()
                    .map(|(system, nodes)| {
                        let same = |v: &&published::Value| {
                            v.system == system && v.variant == nodes.to_string()
                        };
                        published::of("cs597").find(same).map(|v| v.value)
                    })
                    .collect(),
            };
            let values = values.into_iter();
            let mut cells = vec![Cell::text(row)];
            cells.extend(values.map(|value| Estimate::cell(value.map(Estimate::plain), plain)));
            table.row(cells);
        }
        table.noted(published::SEE).compact()
    };
    steps.iter().map(made).collect()
}

pub(super) fn plain(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => units::count(value.round().max(0.0) as u64),
        _ => units::number(value),
    }
}
