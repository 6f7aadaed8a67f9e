//! Tables for all kinds of runs: summaries, ladders, latencies, multiples, cost of the client.

use bucketload_results::kit::{Cell, Column, Table, Unit};
use bucketload_results::units;

use super::super::digest::Figures;
use super::super::estimate::{Estimate, ratio};
use super::super::figures::{line_name, multiples_of, processes, targets};
use super::super::groups::{Group, Measured};
use super::super::published;
use super::super::show::{self, Ops, distinct};
use super::{Request, Sheet};
use crate::model::Metric;

/// A row: a cell of the study in one phase, of one class.
pub(super) struct Row<'a> {
    pub(super) group: &'a Group,
    pub(super) ops: Ops<'a>,
}

/// Name of the swept values; empty if nothing was swept.
fn heading(measured: &Measured) -> &str {
    let swept = measured.groups.iter().any(|g| !g.value.is_empty());
    let field = measured.experiment.field.as_str();
    match (swept, field) {
        (false, _) => "",
        (true, "") => "value",
        (true, field) => field.rsplit('.').next().unwrap_or(field),
    }
}

impl<'a> Sheet<'a, Row<'a>> {
    /// The columns that identify groups: target, value, processes, phase.
    pub(super) fn keys(self, measured: &Measured, phases: &[&str]) -> Self {
        let mut sheet = self.text("target", |row| row.group.label.clone());
        let value = heading(measured);
        if !value.is_empty() {
            sheet = sheet.text(value, |row| row.group.value.clone());
        }
        if processes(&measured.groups).len() > 1 {
            let column = Column::number("processes", "processes");
            sheet = sheet.column(column, |row| Cell::Count(u64::from(row.group.processes)));
        }
        if phases.iter().any(|phase| !phase.is_empty()) {
            sheet = sheet.text("phase", |row| row.ops.phase.to_owned());
        }
        sheet
    }

    /// One column per metric, without marks, for tables with a verdict column.
    pub(super) fn metrics(self, metrics: &[(&str, Metric)]) -> Self {
        metrics.iter().fold(self, |sheet, &(title, metric)| {
            let column = Column::figure(title, metric.id);
            sheet.column(column, move |row| show::figure(row.group, metric, row.ops))
        })
    }

    /// A column with the extreme of a figure in nanoseconds over the runs.
    fn extreme(
        self,
        title: &str,
        key: &str,
        of: fn(&Figures) -> f64,
        more: fn(f64, f64) -> f64,
    ) -> Self {
        self.column(Column::number(title, key), move |row| {
            let value = row.each(of).into_iter().reduce(more);
            Estimate::cell(value.map(Estimate::plain), |v| Unit::Ns.show(v))
        })
    }

    pub(super) fn runs(self) -> Self {
        self.text("runs", |row| {
            format!("{} of {}", row.group.runs.len(), row.group.planned)
        })
    }

    pub(super) fn verdict(self) -> Self {
        self.text("verdict", |row| match row.group.word() {
            Some(word) => word.name().to_owned(),
            None => row.group.why_none().to_owned(),
        })
    }
}

impl Row<'_> {
    /// A figure of each run that has operations.
    fn each(&self, of: fn(&Figures) -> f64) -> Vec<f64> {
        show::each(self.group, self.ops, |f| (f.ok > 0).then(|| of(f)))
    }
}

/// The metrics with their names as titles.
fn titled<const N: usize>(metrics: [Metric; N]) -> [(&'static str, Metric); N] {
    metrics.map(|metric| (metric.title, metric))
}

/// A table with one row per group and phase.
fn by_group<'a>(
    request: &Request<'a>,
    what: &str,
    note: &str,
    columns: impl FnOnce(Sheet<'a, Row<'a>>, &[&str]) -> Sheet<'a, Row<'a>>,
    phase_first: bool,
) -> Table {
    let (measured, table) = (request.measured, request.table);
    let mut phases = show::phases(&measured.groups, &table.phase);
    if phases.is_empty() {
        phases.push("");
    }
    let row = |group, phase| Row {
        group,
        ops: Ops {
            phase,
            class: &table.class,
        },
    };
    let groups = || measured.groups.iter();
    let rows: Vec<Row<'a>> = match phase_first {
        true => phases
            .iter()
            .flat_map(|phase| groups().map(|group| row(group, *phase)))
            .collect(),
        false => groups()
            .flat_map(|group| phases.iter().map(move |phase| row(group, *phase)))
            .collect(),
    };
    let sheet = columns(Sheet(Vec::new()).keys(measured, &phases), &phases);
    let (columns, rows) = sheet.parts(rows);
    let parts = [table.class.as_str(), &table.phase];
    let made = request.table(&parts, what, columns).noted(note);
    Table { rows, ..made }.compact()
}

/// One row per target, value and phase.
pub(super) fn summary(request: &Request<'_>) -> Table {
    let metrics = titled([
        Metric::Throughput,
        Metric::Bandwidth,
        Metric::Mean,
        Metric::P50,
        Metric::P99,
        Metric::Errors,
        Metric::ClientCpu,
    ]);
    by_group(
        request,
        &show::titled("summary", &request.table.phase, &request.table.class),
        "Rates and means: geometric mean of the repetitions; percentiles: median of the repetitions' percentiles. \
         In brackets: 95 % interval over the repetitions. CPU time is for the whole client, per operation.",
        |sheet, _| sheet.metrics(&metrics).runs().verdict(),
        false,
    )
}

/// Cost of the client: one row per value (engine) and target.
pub(super) fn clients(request: &Request<'_>) -> Table {
    let metrics = titled([
        Metric::Throughput,
        Metric::Bandwidth,
        Metric::P50,
        Metric::P99,
        Metric::ClientCpu,
    ]);
    let groups = &request.measured.groups;
    let multiple = move |row: &Row<'_>| {
        let cpu = |group: &Group| show::blocks(group, Metric::ClientCpu, row.ops);
        // The first value of the same target is the reference client.
        let first = groups.iter().find(|g| g.target == row.group.target);
        let other = first.filter(|first| !std::ptr::eq(*first, row.group));
        let estimate = other.and_then(|first| ratio(&cpu(first), &cpu(row.group)));
        Estimate::cell(estimate, |v| Unit::Times.show(v))
    };
    by_group(
        request,
        "cost of the client",
        "CPU time of the client per operation, user and system, including programs that it starts for operations. Multiples are relative to the \
         first row of the same target, inside the blocks, with 95 % intervals if two blocks hold both. A row whose verdict is CLIENT-BOUND shows \
         what the client can do, not the store, which is the question here.",
        |sheet, _| {
            let column = Column::figure("CPU × the first", "cpu_multiple");
            let sheet = sheet.metrics(&metrics).column(column, multiple);
            sheet.runs().verdict()
        },
        true,
    )
}

/// One row per class and target: minimum, mean, percentiles, maximum.
pub(super) fn latency(request: &Request<'_>) -> Table {
    let (measured, table) = (request.measured, request.table);
    let phases = show::phases(&measured.groups, &table.phase);
    let mut rows = Vec::new();
    for phase in &phases {
        for class in show::classes(&measured.groups, phase, &table.class) {
            let ops = Ops { phase, class };
            let selected = measured.groups.iter().map(|group| Row { group, ops });
            rows.extend(
                selected
                    .filter(|row| row.group.runs.is_empty() || !row.each(|f| f.min_ns).is_empty()),
            );
        }
    }
    let operation = |row: &Row<'_>| match row.ops.class {
        "" => Cell::text("all"),
        class => Cell::text(class),
    };
    let operations = |row: &Row<'_>| {
        let counts = row.each(|f| f.ok as f64);
        match counts.iter().map(|n| *n as u64).sum() {
            0 => Cell::None,
            n => Cell::Count(n),
        }
    };
    let metrics = [
        ("mean", Metric::Mean),
        ("p50", Metric::P50),
        ("p95", Metric::P95),
        ("p99", Metric::P99),
        ("p99.9", Metric::P999),
    ];
    let (columns, rows) = Sheet(Vec::new())
        .column(Column::text("operation", "class"), operation)
        .keys(measured, &phases)
        .column(Column::number("operations", "operations"), operations)
        .extreme("minimum", "min_ns", |f| f.min_ns, f64::min)
        .metrics(&metrics)
        .extreme("maximum", "max_ns", |f| f.max_ns, f64::max)
        .verdict()
        .parts(rows);
    let what = show::titled("response time", &table.phase, &table.class);
    let made = request.table(&[&table.class, &table.phase], &what, columns).noted(
        "Response time: from the due time of the operation to its end. Percentiles are medians of the repetitions' percentiles, \
         omitted with fewer than ten operations beyond them; means are geometric means of the repetitions' means; in brackets: 95 % \
         intervals over the repetitions.",
    );
    Table { rows, ..made }.compact()
}

/// One row per value, one column per target; one table per phase.
pub(super) fn ladder(request: &Request<'_>) -> Vec<Table> {
    let (groups, class) = (&request.measured.groups, request.table.class.as_str());
    let metric = request.table.metric.unwrap_or(Metric::Throughput);
    let several = processes(groups).len() > 1;
    let targets = targets(groups);
    let mut rows = distinct(groups.iter().map(|g| (g.value.as_str(), g.processes)));
    rows.sort_by_key(|(value, _)| groups.iter().position(|g| g.value == *value));
    let heading = match heading(request.measured) {
        "" => "value",
        heading => heading,
    };
    let made = |phase| {
        let ops = Ops { phase, class };
        let mut columns = vec![Column::text(heading, "value")];
        columns.extend(
            targets
                .iter()
                .map(|(name, label, _)| Column::figure(label, &format!("{name}_{}", metric.id))),
        );
        let shown = match request.table.phase.as_str() {
            "" => phase,
            name => name,
        };
        let what = show::titled(metric.title, phase, class);
        let mut table = request.table(&[metric.id, class, shown], &what, columns);
        for (value, processes) in &rows {
            let mut row = vec![Cell::Text(line_name(value, *processes, several))];
            row.extend(targets.iter().map(|(target, _, _)| {
                let own = |g: &&Group| {
                    g.target == *target && g.value == *value && g.processes == *processes
                };
                show::cell(groups.iter().find(own), metric, ops)
            }));
            table.row(row);
        }
        let how = match show::is_percentile(metric) {
            true => "Median of the repetitions' percentiles",
            false => "Geometric mean of the repetitions",
        };
        table.noted(format!("{how}. {}", show::NOTE))
    };
    let known = |phase: &&str| {
        let ops = Ops { phase, class };
        let mut each = groups.iter().map(|g| show::values(g, metric, ops));
        each.any(|values| !values.is_empty())
    };
    let phases = show::phases_of(groups, &request.table.phase, metric);
    phases.into_iter().filter(known).map(made).collect()
}

/// The baseline's values, multiples per target, and published ones; one table per phase.
pub(super) fn multiples(request: &Request<'_>) -> Vec<Table> {
    let (files, measured, class) = (
        request.files,
        request.measured,
        request.table.class.as_str(),
    );
    let groups = &measured.groups;
    let baseline = files.baseline();
    let base_label = files.label(baseline);
    let mut others = targets(groups);
    others.retain(|(name, _, _)| *name != baseline);
    let heading = heading(measured);
    let scenario = published::scenario(&measured.experiment.workload)
        .filter(|_| files.study.published == "ostorebench");
    let systems: &[&str] = match scenario {
        Some(_) => &["SeaweedFS", "Swift", "Ceph"],
        None => &[],
    };
    let mut columns = vec![Column::text("figure", "figure")];
    if !heading.is_empty() {
        columns.push(Column::text(heading, heading));
    }
    columns.push(Column::figure(&base_label, &format!("{baseline}_value")));
    columns.extend(others.iter().map(|(name, label, _)| {
        Column::figure(&format!("{label} ×"), &format!("{name}_multiple"))
    }));
    columns.extend(systems.iter().enumerate().map(|(i, system)| {
        let times = if i > 0 { " ×" } else { "" };
        let key = format!("published_{}", system.to_ascii_lowercase());
        Column::number(&format!("{system}{times} (published)"), &key)
    }));
    let mut note = format!(
        "Multiples are geometric means of the ratios inside the blocks, whose runs had the same seed, with 95 % intervals (t, \
         logarithms) if two blocks hold both sides. Times: lower is better; throughput: higher is better. {}",
        show::NOTE
    );
    if scenario.is_some() {
        note += " Published: SeaweedFS as printed, the others as multiples of SeaweedFS. ";
        note += published::SEE;
    }
    let values = measured.values();
    let made = |phase| {
        let what = show::titled(&format!("multiples of {base_label}"), phase, class);
        let mut table = request.table(&[class, phase], &what, columns.clone());
        let figures = multiples_of(groups, phase, class, request.table.metric);
        for value in &values {
            for (what, metric, class) in &figures {
                let ops = Ops { phase, class };
                let of = |target: &str| measured.group(target, value);
                let blocks = |group: &Group| show::blocks(group, *metric, ops);
                let base = of(baseline);
                let base_values = base.map_or_else(Vec::new, blocks);
                let mut row = vec![Cell::text(what)];
                if !heading.is_empty() {
                    row.push(Cell::text(*value));
                }
                row.push(show::cell(base, *metric, ops));
                row.extend(others.iter().map(|(target, _, _)| {
                    let Some(group) = of(target) else {
                        return Cell::None;
                    };
                    match ratio(&base_values, &blocks(group)) {
                        None if group.runs.is_empty() => Cell::text(group.why_none()),
                        estimate => Estimate::cell(estimate, |v| Unit::Times.show(v))
                            .marked(&show::mark(group)),
                    }
                }));
                let quoted = |system| quoted(scenario.unwrap_or(""), *metric, class, system);
                row.extend(systems.iter().map(quoted));
                let figure = |cell: &Cell| matches!(cell, Cell::Figure { .. });
                if row.iter().any(figure) {
                    table.row(row);
                }
            }
        }
        table.noted(&*note).compact()
    };
    let phases = show::phases(groups, &request.table.phase);
    phases.into_iter().map(made).collect()
}

/// A value of OStoreBench: SeaweedFS in its unit, others as multiples of it.
fn quoted(scenario: &str, metric: Metric, class: &str, system: &&str) -> Cell {
    let quantity = match metric {
        Metric::Throughput if class.is_empty() => "throughput",
        Metric::Mean => "latency-mean",
        _ => return Cell::None,
    };
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
        // Throughput is printed in MB/s for all three: the multiple is the quotient of two printed values.
        ("MB/s", Some(base)) if *system != "SeaweedFS" => value.value / base.value,
        _ => value.value,
    };
    let unit = match (*system, &*value.unit) {
        ("SeaweedFS", unit) => format!(" {unit}"),
        _ => "×".to_owned(),
    };
    Cell::figure(multiple, None, |v| format!("{}{unit}", units::number(v)))
}
