//! Tables of any runs: summaries, ladders, latencies, multiples, cost of the client.

use super::super::digest::Figures;
use super::super::estimate::{Over, ratio};
use super::super::figures::{line_name, processes, targets};
use super::super::groups::{Group, Measured};
use super::super::published;
use super::super::read::Files;
use super::super::show::{self, Look};
use super::super::svg::Unit;
use super::super::table::{Cell, Column, Table};
use super::{name, title};
use crate::model::{self, Metric};

/// The columns that tell groups apart: target, value, processes, phase.
struct Keys {
    value: String,
    phases: bool,
    processes: bool,
}

impl Keys {
    fn of(measured: &Measured, phases: &[&str]) -> Self {
        let groups = &measured.groups;
        let swept = groups.iter().any(|g| !g.value.is_empty());
        let field = measured.experiment.field.as_str();
        Self {
            value: match (swept, field) {
                (false, _) => String::new(),
                (true, "") => "value".to_owned(),
                (true, field) => field.rsplit('.').next().unwrap_or(field).to_owned(),
            },
            phases: phases.iter().any(|phase| !phase.is_empty()),
            processes: processes(groups).len() > 1,
        }
    }

    fn columns(&self) -> Vec<Column> {
        let mut out = vec![Column::text("target", "target")];
        if !self.value.is_empty() {
            out.push(Column::text(&self.value, &self.value));
        }
        if self.processes {
            out.push(Column::number("processes", "processes"));
        }
        if self.phases {
            out.push(Column::text("phase", "phase"));
        }
        out
    }

    fn cells(&self, group: &Group, phase: &str) -> Vec<Cell> {
        let mut out = vec![Cell::text(&*group.label)];
        if !self.value.is_empty() {
            out.push(Cell::text(&*group.value));
        }
        if self.processes {
            out.push(Cell::Count(u64::from(group.processes)));
        }
        if self.phases {
            out.push(Cell::text(phase));
        }
        out
    }
}

fn column(metric: Metric) -> Column {
    Column::figure(show::name(metric), show::key(metric))
}

/// A figure without mark: tables with a column of verdicts.
fn figure(group: &Group, metric: Metric, look: Look<'_>) -> Cell {
    Cell::figure(show::over(group, metric, look), |v| {
        show::unit(metric).show(v)
    })
}

fn verdict(group: &Group) -> Cell {
    match group.word() {
        Some(word) => Cell::text(word.name()),
        None => Cell::text(group.why_none()),
    }
}

fn runs(group: &Group) -> Cell {
    Cell::text(format!("{} of {}", group.runs.len(), group.planned))
}

/// A row per target, value and phase.
pub(super) fn summary(measured: &Measured, asked: &model::Table) -> Table {
    let groups = &measured.groups;
    let phases = show::phases(groups, &asked.phase);
    let phases = if phases.is_empty() { vec![""] } else { phases };
    let keys = Keys::of(measured, &phases);
    let metrics = [
        Metric::Throughput,
        Metric::Bandwidth,
        Metric::Mean,
        Metric::P50,
        Metric::P99,
        Metric::Errors,
        Metric::ClientCpu,
    ];
    let mut columns = keys.columns();
    columns.extend(metrics.map(column));
    columns.extend([
        Column::text("runs", "runs"),
        Column::text("verdict", "verdict"),
    ]);
    let mut table = Table::new(
        &name(measured, asked, &[&asked.class, &asked.phase]),
        title(
            measured,
            asked,
            &show::titled("summary", &asked.phase, &asked.class),
        ),
        columns,
    );
    for group in groups {
        for phase in &phases {
            let look = Look {
                phase,
                class: &asked.class,
            };
            let mut row = keys.cells(group, phase);
            row.extend(metrics.map(|metric| figure(group, metric, look)));
            row.extend([runs(group), verdict(group)]);
            table.rows.push(row);
        }
    }
    table.note = "Rates and means: geometric mean of the repetitions; percentiles: median of the repetitions' percentiles. \
                  In brackets: 95 % interval over the repetitions. CPU time is that of the whole client per operation."
        .to_owned();
    table.compact()
}

/// A row per value, a column per target; a table per phase.
pub(super) fn ladder(measured: &Measured, asked: &model::Table) -> Vec<Table> {
    let groups = &measured.groups;
    let metric = asked.metric.unwrap_or(Metric::Throughput);
    let several = processes(groups);
    let keys = Keys::of(measured, &[]);
    let targets = targets(groups);
    let mut rows: Vec<(&str, u32)> = Vec::new();
    for group in groups {
        if !rows.contains(&(&group.value, group.processes)) {
            rows.push((&group.value, group.processes));
        }
    }
    rows.sort_by_key(|(value, _)| groups.iter().position(|g| g.value == *value));
    let phases = show::phases(groups, &asked.phase);
    let tables = phases.into_iter().filter_map(|phase| {
        let look = Look {
            phase,
            class: &asked.class,
        };
        let any = groups
            .iter()
            .any(|g| !show::values(g, metric, look).is_empty());
        if !any {
            return None;
        }
        let heading = if keys.value.is_empty() {
            "value"
        } else {
            &keys.value
        };
        let mut columns = vec![Column::text(heading, "value")];
        for (name, label, _) in &targets {
            columns.push(Column::figure(
                label,
                &format!("{name}_{}", show::key(metric)),
            ));
        }
        let shown = if asked.phase.is_empty() {
            phase
        } else {
            &asked.phase
        };
        let mut table = Table::new(
            &name(measured, asked, &[show::key(metric), &asked.class, shown]),
            title(
                measured,
                asked,
                &show::titled(show::name(metric), phase, &asked.class),
            ),
            columns,
        );
        for (value, processes) in &rows {
            let mut row = vec![Cell::text(line_name(value, *processes, several.len() > 1))];
            for (target, _, _) in &targets {
                let group = groups.iter().find(|g| {
                    g.target == *target && g.value == *value && g.processes == *processes
                });
                row.push(show::cell(group, metric, look));
            }
            table.rows.push(row);
        }
        table.note = format!("{}. {}", how(metric), show::NOTE);
        Some(table)
    });
    tables.collect()
}

/// How a figure comes from the repetitions.
fn how(metric: Metric) -> &'static str {
    match show::is_percentile(metric) {
        true => "Median of the repetitions' percentiles",
        false => "Geometric mean of the repetitions",
    }
}

/// A row per class and target: minimum, mean, percentiles, maximum.
pub(super) fn latency(measured: &Measured, asked: &model::Table) -> Table {
    let groups = &measured.groups;
    let phases = show::phases(groups, &asked.phase);
    let keys = Keys::of(measured, &phases);
    let mut columns = vec![Column::text("operation", "class")];
    columns.extend(keys.columns());
    columns.extend([
        Column::number("operations", "operations"),
        Column::number("minimum", "min_ns"),
        Column::figure("mean", "mean_ns"),
        Column::figure("p50", "p50_ns"),
        Column::figure("p95", "p95_ns"),
        Column::figure("p99", "p99_ns"),
        Column::figure("p99.9", "p999_ns"),
        Column::number("maximum", "max_ns"),
        Column::text("verdict", "verdict"),
    ]);
    let mut table = Table::new(
        &name(measured, asked, &[&asked.class, &asked.phase]),
        title(
            measured,
            asked,
            &show::titled("response time", &asked.phase, &asked.class),
        ),
        columns,
    );
    for phase in &phases {
        for class in show::classes(groups, phase, &asked.class) {
            let look = Look { phase, class };
            for group in groups {
                let each = |of: fn(&Figures) -> f64| {
                    show::each(group, look, |f| (f.ok > 0).then(|| of(f)))
                };
                let (low, high) = (each(|f| f.min_ns), each(|f| f.max_ns));
                if low.is_empty() && !group.runs.is_empty() {
                    continue;
                }
                let extreme = |value: f64| {
                    let plain = Some(Over::plain(value)).filter(|o| o.value.is_finite());
                    Cell::figure(plain, |v| Unit::Ns.show(v))
                };
                let operations: u64 = each(|f| f.ok as f64).iter().map(|n| *n as u64).sum();
                let mut row = vec![Cell::text(if class.is_empty() { "all" } else { class })];
                row.extend(keys.cells(group, phase));
                row.push(if operations > 0 {
                    Cell::Count(operations)
                } else {
                    Cell::None
                });
                row.push(extreme(low.iter().copied().fold(f64::INFINITY, f64::min)));
                let metrics = [
                    Metric::Mean,
                    Metric::P50,
                    Metric::P95,
                    Metric::P99,
                    Metric::P999,
                ];
                row.extend(metrics.map(|metric| figure(group, metric, look)));
                row.push(extreme(
                    high.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                ));
                row.push(verdict(group));
                table.rows.push(row);
            }
        }
    }
    table.note = "Response time: from the instant at which the operation was due to its end. Percentiles are medians of the \
                  repetitions' percentiles and are left out with fewer than ten operations beyond them; means are geometric means of the \
                  repetitions' means; in brackets 95 % intervals over the repetitions."
        .to_owned();
    table.compact()
}

/// The baseline's values, multiples per target, and published ones; a table per phase.
pub(super) fn multiples(files: &Files, measured: &Measured, asked: &model::Table) -> Vec<Table> {
    let groups = &measured.groups;
    let baseline = files.baseline();
    let targets = targets(groups);
    let base_label = files.label(baseline);
    let others: Vec<_> = targets
        .iter()
        .filter(|(name, _, _)| *name != baseline)
        .collect();
    let keys = Keys::of(measured, &[]);
    let set = files.study.published.as_str();
    let scenario =
        published::scenario(&measured.experiment.workload).filter(|_| set == "ostorebench");
    let mut values: Vec<&str> = Vec::new();
    for group in groups {
        if !values.contains(&&*group.value) {
            values.push(&group.value);
        }
    }
    let mut out = Vec::new();
    for phase in show::phases(groups, &asked.phase) {
        let mut columns = vec![Column::text("figure", "figure")];
        if !keys.value.is_empty() {
            columns.push(Column::text(&keys.value, &keys.value));
        }
        columns.push(Column::figure(&base_label, &format!("{baseline}_value")));
        for (name, label, _) in &others {
            columns.push(Column::figure(
                &format!("{label} ×"),
                &format!("{name}_multiple"),
            ));
        }
        let systems: &[&str] = match scenario {
            Some(_) => &["SeaweedFS", "Swift", "Ceph"],
            None => &[],
        };
        for system in systems {
            let multiple = *system != systems[0];
            let key = format!("published_{}", system.to_ascii_lowercase());
            let heading = if multiple {
                format!("{system} × (published)")
            } else {
                format!("{system} (published)")
            };
            columns.push(Column::number(&heading, &key));
        }
        let mut table = Table::new(
            &name(measured, asked, &[&asked.class, phase]),
            title(
                measured,
                asked,
                &show::titled(&format!("multiples of {base_label}"), phase, &asked.class),
            ),
            columns,
        );
        let rows = metrics(groups, phase, asked);
        for value in &values {
            for (what, metric, class) in &rows {
                let look = Look { phase, class };
                let of = |target: &str| {
                    groups
                        .iter()
                        .find(|g| g.target == target && g.value == *value)
                };
                let base = of(baseline);
                let base_values =
                    base.map_or_else(Vec::new, |group| show::blocks(group, *metric, look));
                let mut row = vec![Cell::text(what)];
                if !keys.value.is_empty() {
                    row.push(Cell::text(*value));
                }
                row.push(show::cell(base, *metric, look));
                for (target, _, _) in &others {
                    row.push(match of(target) {
                        Some(group) => {
                            let over = ratio(&base_values, &show::blocks(group, *metric, look));
                            match over {
                                Some(_) => {
                                    show::marked(group, Cell::figure(over, |v| Unit::Times.show(v)))
                                }
                                None if group.runs.is_empty() => Cell::text(group.why_none()),
                                None => Cell::None,
                            }
                        }
                        None => Cell::None,
                    });
                }
                if let Some(scenario) = scenario {
                    row.extend(
                        systems
                            .iter()
                            .map(|system| quoted(scenario, *metric, class, system)),
                    );
                }
                if row
                    .iter()
                    .skip(1)
                    .any(|cell| matches!(cell, Cell::Figure { .. }))
                {
                    table.rows.push(row);
                }
            }
        }
        table.note = format!(
            "Multiples are geometric means of the ratios inside the blocks, whose runs had the same seed, with 95 % intervals (t, \
             logarithms) where two blocks hold both sides. Times: less is better; throughput: more is better. {}",
            show::NOTE
        );
        if scenario.is_some() {
            table.note +=
                " Published: SeaweedFS as printed, the others as multiples of SeaweedFS. ";
            table.note += published::SEE;
        }
        out.push(table.compact());
    }
    out
}

/// What multiples are of: throughput, and times of each class.
fn metrics(groups: &[Group], phase: &str, asked: &model::Table) -> Vec<(String, Metric, String)> {
    super::super::figures::multiples_of(groups, phase, &asked.class, asked.metric)
}

/// A value of OStoreBench: SeaweedFS in its unit, others as multiples of it.
fn quoted(scenario: &str, metric: Metric, class: &str, system: &str) -> Cell {
    let quantity = match metric {
        Metric::Throughput => "throughput",
        Metric::Mean => "latency-mean",
        _ => return Cell::None,
    };
    if metric == Metric::Throughput && !class.is_empty() {
        return Cell::None;
    }
    let of = |system: &str| {
        published::of("ostorebench").find(|v| {
            (&*v.quantity, &*v.system, &*v.key) == (quantity, system, scenario)
                && (v.variant == class || metric == Metric::Throughput)
        })
    };
    let Some(value) = of(system) else {
        return Cell::None;
    };
    let multiple = match (&*value.unit, of("SeaweedFS")) {
        // Throughput is printed in MB/s for all three: the multiple is a quotient of two printed values.
        ("MB/s", Some(base)) if system != "SeaweedFS" => value.value / base.value,
        _ => value.value,
    };
    let unit = match (system, &*value.unit) {
        ("SeaweedFS", unit) => format!(" {unit}"),
        _ => "×".to_owned(),
    };
    Cell::figure(Some(Over::plain(multiple)), |v| {
        format!("{}{unit}", bucketload_results::units::number(v))
    })
}

/// What the client costs: a row per value (engine) and target.
pub(super) fn clients(measured: &Measured, asked: &model::Table) -> Table {
    let groups = &measured.groups;
    let phases = show::phases(groups, &asked.phase);
    let phases = if phases.is_empty() { vec![""] } else { phases };
    let keys = Keys::of(measured, &phases);
    let metrics = [
        Metric::Throughput,
        Metric::Bandwidth,
        Metric::P50,
        Metric::P99,
        Metric::ClientCpu,
    ];
    let mut columns = keys.columns();
    columns.extend(metrics.map(column));
    columns.push(Column::figure("CPU × the first", "cpu_multiple"));
    columns.extend([
        Column::text("runs", "runs"),
        Column::text("verdict", "verdict"),
    ]);
    let mut table = Table::new(
        &name(measured, asked, &[&asked.class, &asked.phase]),
        title(measured, asked, "what the client costs"),
        columns,
    );
    for phase in &phases {
        let look = Look {
            phase,
            class: &asked.class,
        };
        let cpu = |group: &Group| show::blocks(group, Metric::ClientCpu, look);
        for group in groups {
            // The first value of the same target: the client that others are measured against.
            let first = groups.iter().find(|g| g.target == group.target);
            let over = first.and_then(|first| match std::ptr::eq(first, group) {
                true => None,
                false => ratio(&cpu(first), &cpu(group)),
            });
            let mut row = keys.cells(group, phase);
            row.extend(metrics.map(|metric| figure(group, metric, look)));
            row.push(Cell::figure(over, |v| Unit::Times.show(v)));
            row.extend([runs(group), verdict(group)]);
            table.rows.push(row);
        }
    }
    table.note = "CPU time of the client per operation, user and system, with that of the programs that it starts for each operation. Multiples are against the first \
                  row of the same target, inside the blocks, with 95 % intervals where two blocks hold both. A row whose verdict is CLIENT-BOUND says what \
                  the client can do, not the store: that is the question here."
        .to_owned();
    table.compact()
}
