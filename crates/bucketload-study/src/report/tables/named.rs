//! Tables in the layouts of other benchmarks, with the published values beside ours.

use bucketload_results::grid::published as grid_published;
use bucketload_results::units;

use super::super::escape::slug;
use super::super::estimate::Over;
use super::super::figures::{processes, targets};
use super::super::groups::{Group, Measured};
use super::super::published;
use super::super::read::Files;
use super::super::show::{self, Look};
use super::super::table::{Cell, Column, Table};
use super::{name, title};
use crate::model::{self, Metric};

/// OSSperf's steps that have a bandwidth: their number and name.
const MOVES: [(usize, &str); 2] = [(1, "upload"), (3, "download")];

/// OSSperf's Tables 4 and 5 for each target, then the tables as published. They are made of all experiments of
/// the study, since one column each comes from the sequential and from the parallel one.
pub(super) fn ossperf(files: &Files, all: &[Measured]) -> Vec<Table> {
    let groups: Vec<&Group> = all.iter().flat_map(|m| &m.groups).collect();
    let of_workload: Vec<&Group> = all
        .iter()
        .filter(|m| m.experiment.workload == "ossperf")
        .flat_map(|m| &m.groups)
        .collect();
    let mut names: Vec<(&str, &str)> = Vec::new();
    for group in &of_workload {
        if !names.contains(&(&*group.target, &*group.label)) {
            names.push((&group.target, &group.label));
        }
    }
    let mut out: Vec<Table> = Vec::new();
    for (target, label) in names {
        let own: Vec<&&Group> = groups.iter().filter(|g| g.target == target).collect();
        out.push(bandwidths(files, target, label, &own));
        out.push(times(target, label, &own));
    }
    if files.study.published == "ossperf" && !out.is_empty() {
        out.push(ossperf_published());
    }
    out
}

fn sizes(own: &[&&Group]) -> Vec<u64> {
    let mut sizes: Vec<u64> = own
        .iter()
        .filter_map(|g| g.number)
        .map(|n| n as u64)
        .collect();
    let steps = own.iter().flat_map(|g| &g.extra.ossperf);
    sizes.extend(steps.map(|(_, ossperf)| ossperf.size_bytes));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Bandwidths of a step, Mbit/s, of the runs with one client or with several.
fn bandwidth(own: &[&&Group], size: u64, parallel: bool, step: usize) -> Cell {
    let runs = own
        .iter()
        .flat_map(|group| group.extra.ossperf.iter().map(move |run| (group, run)));
    let of_size =
        runs.filter(|(_, (clients, o))| o.size_bytes == size && (*clients > 1) == parallel);
    let mut flawed = None;
    let values: Vec<f64> = of_size
        .filter_map(|(group, (_, ossperf))| {
            flawed = Some(group);
            // Not the column of `results.csv`: cut off at milliseconds, it is a wrong number for quick steps.
            let complete = ossperf.incomplete.is_empty();
            complete.then(|| ossperf.exact_mbit_s(step)).flatten()
        })
        .collect();
    let cell = Cell::figure(Over::mean(&values), mbit);
    match flawed {
        Some(group) => show::marked(group, cell),
        None => cell,
    }
}

fn mbit(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 1000.0 => format!("{v:.1}"),
        v => units::count(v.round() as u64),
    }
}

fn bandwidths(files: &Files, target: &str, label: &str, own: &[&&Group]) -> Table {
    let server = files.target(target).map_or("", |(_, t)| t.server.as_str());
    let like = published::system_like("ossperf", &format!("{target} {label} {server}"));
    // A store of one's own network is nearer to Table 4 than to a cloud.
    let system = like
        .or(Some("MinIO"))
        .filter(|_| files.study.published == "ossperf");
    let mut columns = vec![Column::text("file size", "size_bytes")];
    let ways = [("par", "parallel", true), ("seq", "sequential", false)];
    for (_, step) in MOVES {
        for (short, long, _) in ways {
            columns.push(Column::figure(
                &format!("{step} {short}"),
                &format!("{step}_{long}_mbit_s"),
            ));
        }
    }
    if let Some(system) = system {
        for (_, step) in MOVES {
            for (short, long, _) in ways {
                columns.push(Column::number(
                    &format!("{step} {short} ({system}, published)"),
                    &format!("published_{step}_{long}_mbit_s"),
                ));
            }
        }
    }
    let mut table = Table::new(
        &format!("ossperf-{target}"),
        format!("Bandwidth of {label} by file size (Mbit/s)"),
        columns,
    );
    for size in sizes(own) {
        let mut row = vec![Cell::text(units::bytes(size as f64))];
        for (step, _) in MOVES {
            row.extend(ways.map(|(_, _, parallel)| bandwidth(own, size, parallel, step)));
        }
        if let Some(system) = system {
            for (_, step) in MOVES {
                row.extend(ways.map(|(_, way, _)| ossperf_value(system, step, way, size)));
            }
        }
        table.rows.push(row);
    }
    table.note = format!(
        "10^6 bits per second by OSSperf's formula, size times files times 8 over the time of the step, which OSSperf itself cuts off at milliseconds. par: several clients at once; seq: one. \
         Geometric mean of the repetitions. {}",
        show::NOTE
    );
    if system.is_some() {
        table.note += " ";
        table.note += published::SEE;
    }
    table.compact()
}

fn ossperf_value(system: &str, step: &str, way: &str, size: u64) -> Cell {
    let size = size.to_string();
    let value = published::of("ossperf")
        .find(|v| (&*v.system, &*v.quantity, &*v.variant, &*v.key) == (system, step, way, &size));
    Cell::figure(value.map(|v| Over::plain(v.value)), mbit)
}

/// The six steps' times.
fn times(target: &str, label: &str, own: &[&&Group]) -> Table {
    let steps = bucketload_results::result::ossperf::STEPS;
    let mut columns = vec![
        Column::text("file size", "size_bytes"),
        Column::text("clients", "clients"),
    ];
    for step in steps {
        columns.push(Column::figure(
            step,
            &format!("{}_s", step.replace('-', "_")),
        ));
    }
    columns.push(Column::figure("sum", "sum_s"));
    let mut table = Table::new(
        &format!("ossperf-times-{target}"),
        format!("Times of OSSperf's six steps on {label}"),
        columns,
    );
    for size in sizes(own) {
        for (word, parallel) in [("one", false), ("several", true)] {
            let runs: Vec<_> = own
                .iter()
                .flat_map(|g| &g.extra.ossperf)
                .filter(|(clients, o)| {
                    o.size_bytes == size && (*clients > 1) == parallel && o.incomplete.is_empty()
                })
                .map(|(_, ossperf)| ossperf)
                .collect();
            if runs.is_empty() {
                continue;
            }
            let mut row = vec![Cell::text(units::bytes(size as f64)), Cell::text(word)];
            let figure =
                |values: Vec<f64>| Cell::figure(Over::mean(&values), |s| units::ns(s * 1e9));
            for step in 0..steps.len() {
                let times = runs.iter().filter_map(|o| o.steps.get(step));
                row.push(figure(times.map(|s| s.time_ns as f64 / 1e9).collect()));
            }
            let sum = |o: &&bucketload_results::result::Ossperf| {
                o.steps.iter().map(|s| s.time_ns as f64 / 1e9).sum()
            };
            row.push(figure(runs.iter().map(sum).collect()));
            table.rows.push(row);
        }
    }
    table.note = "From the start of a step to the end of its last operation; verification is not in it. Geometric mean of the repetitions; \
                  in brackets: 95 % interval."
        .to_owned();
    table
}

fn ossperf_published() -> Table {
    let systems = [("MinIO", "Table 4"), ("Amazon S3", "Table 5")];
    let mut columns = vec![Column::text("file size", "size_bytes")];
    for (system, table) in systems {
        for (_, step) in MOVES {
            for (short, long) in [("par", "parallel"), ("seq", "sequential")] {
                columns.push(Column::number(
                    &format!("{system} {step} {short} ({table})"),
                    &format!("{}_{step}_{long}_mbit_s", slug(system)),
                ));
            }
        }
    }
    let mut table = Table::new(
        "ossperf-published",
        "Published by others on another machine: OSSperf, Tables 4 and 5 (Mbit/s)",
        columns,
    );
    let mut sizes: Vec<u64> = published::of("ossperf")
        .filter_map(|v| v.key.parse().ok())
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    for size in sizes {
        let mut row = vec![Cell::text(units::bytes(size as f64))];
        for (system, _) in systems {
            for (_, step) in MOVES {
                row.extend(
                    ["parallel", "sequential"].map(|way| ossperf_value(system, step, way, size)),
                );
            }
        }
        table.rows.push(row);
    }
    table.note = format!(
        "Source: {}. {}",
        published::of("ossperf")
            .next()
            .map_or("", |v| v.source.trim_end_matches(", Table 4")),
        published::note("ossperf")
    );
    table
}

/// The grid: a row per files × bytes, columns per system and number of processes; a table per step.
pub(super) fn grid(files: &Files, measured: &Measured, asked: &model::Table) -> Vec<Table> {
    let groups = &measured.groups;
    let metric = asked.metric.unwrap_or(Metric::Bandwidth);
    let bandwidth = matches!(metric, Metric::Bandwidth | Metric::WallBandwidth);
    let wall = metric.is_of_grids();
    let numbers: Vec<u32> = processes(groups).into_iter().filter(|n| *n > 0).collect();
    let targets = targets(groups);
    let mut rows: Vec<(&str, (u64, u64))> = Vec::new();
    for group in groups {
        if let Some(files) = group.extra.files
            && !rows.iter().any(|(name, _)| *name == group.value)
        {
            rows.push((&group.value, files));
        }
    }
    let mut out = Vec::new();
    for phase in show::phases(groups, &asked.phase) {
        let look = Look { phase, class: "" };
        let mut columns = vec![
            Column::text("row", "row"),
            Column::number("files", "files_per_process"),
            Column::number("bytes", "bytes_per_file"),
        ];
        for (target, label, _) in &targets {
            for n in &numbers {
                columns.push(Column::figure(
                    &format!("{label}, {n}"),
                    &format!(
                        "{target}_{n}_{}{}",
                        if wall { "wall_" } else { "" },
                        if bandwidth {
                            "mib_per_s"
                        } else {
                            "files_per_s"
                        }
                    ),
                ));
            }
        }
        let what = match (bandwidth, wall) {
            (true, false) => "A_mean, MiB/s",
            (false, false) => "R_mean, files/s",
            (true, true) => "A_wall, MiB/s",
            (false, true) => "R_wall, files/s",
        };
        let mut table = Table::new(
            &name(measured, asked, &[show::key(metric), phase]),
            title(
                measured,
                asked,
                &format!("{phase} by row, target and number of processes ({what})"),
            ),
            columns,
        );
        for (row, (count, bytes)) in &rows {
            let factor = if bandwidth { 1.0 / 1_048_576.0 } else { 1.0 };
            let mut cells = vec![Cell::text(*row), Cell::Count(*count), Cell::Count(*bytes)];
            let mut any = false;
            for (target, _, _) in &targets {
                for n in &numbers {
                    let group = groups
                        .iter()
                        .find(|g| g.target == *target && g.value == *row && g.processes == *n);
                    let over = group.and_then(|g| show::over(g, metric, look));
                    any |= over.is_some();
                    let cell = Cell::figure(over.map(|o| o.times(factor)), plain);
                    let unmeasured = || {
                        let mut own = groups.iter().filter(|g| g.runs.is_empty());
                        own.find(|g| g.target == *target && g.value == *row)
                    };
                    cells.push(match group {
                        Some(group) => show::marked(group, cell),
                        None => unmeasured().map_or(Cell::None, |g| Cell::text(g.why_none())),
                    });
                }
            }
            if any {
                table.rows.push(cells);
            }
        }
        table.note = format!(
            "{}. Geometric mean of the repetitions. {}",
            match (bandwidth, wall) {
                (true, false) =>
                    "A_mean: bytes of all processes over the mean of their times, as the study prints it; \
                     more than the store delivered where the processes did not all run at the same time",
                (false, false) => "R_mean: files of all processes over the mean of their times",
                (true, true) =>
                    "A_wall: bytes of all processes over the time from the first start to the last end, \
                     which is what the store delivered",
                (false, true) =>
                    "R_wall: files of all processes over the time from the first start to the last end",
            },
            show::NOTE
        );
        out.push(table);
    }
    // What is published are means.
    if files.study.published == "cs597" && !wall {
        out.extend(grid_quoted(bandwidth));
    }
    out
}

/// The corrected tables of the study.
fn grid_quoted(bandwidth: bool) -> Vec<Table> {
    let mut out = Vec::new();
    let steps: &[&str] = if bandwidth {
        &["write", "read"]
    } else {
        &["write", "read", "touch"]
    };
    for step in steps {
        let mut columns = vec![Column::text("row", "row")];
        for system in grid_published::SYSTEMS {
            for nodes in grid_published::NODES {
                columns.push(Column::number(
                    &format!("{system}, {nodes}"),
                    &format!("{}_{nodes}", slug(system)),
                ));
            }
        }
        let unit = if bandwidth { "MiB/s" } else { "files/s" };
        let mut table = Table::new(
            &format!(
                "cs597-published-{step}-{}",
                if bandwidth { "bandwidth" } else { "files" }
            ),
            format!(
                "Published by others on other machines: {step} by row, system and number of nodes ({unit})"
            ),
            columns,
        );
        let rows: Vec<String> = match (bandwidth, *step) {
            (true, _) => (1..=8).map(|i| format!("g{i}")).collect(),
            (false, "touch") => vec!["touch".to_owned()],
            (false, _) => vec!["g0".to_owned()],
        };
        for row in rows {
            let mut cells = vec![Cell::text(&*row)];
            match grid_published::published(step, &row) {
                Some(values) => cells.extend(
                    values
                        .iter()
                        .map(|v| Cell::figure(Some(Over::plain(*v)), plain)),
                ),
                None => {
                    for system in grid_published::SYSTEMS {
                        for nodes in grid_published::NODES {
                            let nodes = nodes.to_string();
                            let value = published::of("cs597")
                                .find(|v| v.system == system && v.variant == nodes);
                            cells.push(Cell::figure(value.map(|v| Over::plain(v.value)), plain));
                        }
                    }
                }
            }
            table.rows.push(cells);
        }
        table.note = published::SEE.to_owned();
        out.push(table.compact());
    }
    out
}

pub(super) fn plain(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => units::count(value.round().max(0.0) as u64),
        _ => units::number(value),
    }
}
