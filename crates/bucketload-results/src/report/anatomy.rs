//! Where the response time goes, and the slowest requests one by one.

use bucketload_core::record::Part;
use bucketload_core::slowest::SlowRequest;

use super::summary::{class_name, percentile};
use crate::kit::svg::{Body, Stack};
use crate::kit::{Axis, Chart, Section, Table, Unit};
use crate::result::{ClassResult, PartResult, PhaseResult};
use crate::units;

/// The section; nothing when no operation succeeded and none was slow.
pub(super) fn section(phase: &PhaseResult) -> Option<Section> {
    let any = phase.classes.iter().any(|c| !c.anatomy.is_empty());
    if !any && phase.slowest.kept == 0 {
        return None;
    }
    let mut tables = vec![parts(phase)];
    if phase.slowest.kept > 0 {
        tables.push(slowest(phase));
    }
    let intro = "The parts of an operation's response time follow each other and add up to it: queue (due until \
                 a worker takes it), earlier attempts, connecting where a connection had to be made, build (the \
                 client renders and signs), send, wait (for the first byte of the answer), body (the rest of the \
                 answer). Queue and build are the client's side, the rest is network and store.";
    Some(
        Section::new("Where the response time goes", intro)
            .tables(tables)
            .charts([means(phase)]),
    )
}

/// What a part is called on the page, and its colour.
const fn shown(part: Part) -> (&'static str, usize) {
    match part {
        Part::Wait => ("wait", 0),
        Part::Send => ("send", 1),
        Part::Body => ("body", 2),
        Part::Build => ("build", 3),
        Part::Tls => ("TLS", 4),
        Part::Queue => ("queue", 5),
        Part::Connect => ("connect", 6),
        Part::Dns => ("DNS", 7),
        Part::Retry => ("earlier attempts", 8),
    }
}

/// Mean times of the parts: a bar per class, and one for the slowest requests.
fn means(phase: &PhaseResult) -> Chart {
    let classes = phase.classes.iter().filter(|c| !c.anatomy.is_empty());
    let means = |class: &ClassResult| -> Vec<(Part, f64)> {
        let parts = class.anatomy.iter();
        parts.map(|p| (p.part, p.time.mean_ns)).collect()
    };
    let mut rows: Vec<(String, Vec<(Part, f64)>)> =
        classes.map(|c| (class_name(phase, c), means(c))).collect();
    if phase.slowest.kept > 0 {
        let name = format!("slowest {}", units::count(phase.slowest.kept));
        rows.push((name, phase.slowest.parts.clone()));
    }
    let value = |row: &[(Part, f64)], part: Part| {
        let found = row.iter().find(|(p, _)| *p == part);
        found.map_or(0.0, |(_, ns)| *ns)
    };
    let occurs = |part: &Part| rows.iter().any(|(_, row)| value(row, *part) > 0.0);
    let parts: Vec<Part> = Part::ALL.into_iter().filter(occurs).collect();
    let sizes = |row: &[(Part, f64)]| parts.iter().map(|part| value(row, *part)).collect();
    let stack = Stack {
        parts: parts
            .iter()
            .map(|part| (shown(*part).0.to_owned(), shown(*part).1))
            .collect(),
        rows: rows
            .iter()
            .map(|(name, row)| (name.clone(), sizes(row)))
            .collect(),
        unit: Unit::Ns,
    };
    // Each bar in shares of its own length: the slowest would dwarf the others.
    let x = Axis::share("share of the mean response time");
    Chart::new(
        "Mean response time by part",
        x.clone(),
        x,
        Body::Stack(stack),
    )
    .noted("Mean response time behind each bar.")
    .wide()
}

fn parts(phase: &PhaseResult) -> Table {
    let head = [
        "",
        "share",
        "occurred in",
        "mean",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
    ];
    let rows = phase.classes.iter().flat_map(|class| {
        let name = class_name(phase, class);
        let parts = class.anatomy.iter();
        parts.map(move |part| part_row(&name, part, class.ok))
    });
    Table::new(1, head)
        .titled("Parts of the response time")
        .noted(
            "Over all operations that succeeded; an operation in which a part did not occur counts as zero. \
             The means add up to the mean response time, percentiles do not. A request that leaves in one \
             system call has no send time. With several requests per operation, body holds all that \
             follows the first answer's first byte.",
        )
        .with(rows)
}

fn part_row(class: &str, part: &PartResult, ok: u64) -> [String; 9] {
    let time = &part.time;
    let at = |q| percentile(time, q);
    [
        format!("{class} {}", shown(part.part).0),
        units::percent(part.share),
        units::percent(part.occurred as f64 / ok.max(1) as f64),
        units::ns(time.mean_ns),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        units::ns(time.max_ns as f64),
    ]
}

fn slowest(phase: &PhaseResult) -> Table {
    let slowest = &phase.slowest;
    let head = [
        "response",
        "operation",
        "key",
        "at",
        "largest parts",
        "endpoint",
        "connection",
        "outcome",
        "request id",
    ];
    let title = format!(
        "The slowest {} of {} requests kept one by one",
        slowest.top.len(),
        units::count(slowest.kept)
    );
    Table::new(head.len(), head)
        .titled(title)
        .noted(
            "Of the whole phase, warm-up and failed requests included. All of them stand in slowest.jsonl. \
             The connection is its number within the run and its local port.",
        )
        .with(slowest.top.iter().map(|request| slow_row(phase, request)))
}

fn slow_row(phase: &PhaseResult, request: &SlowRequest) -> Vec<String> {
    let mut parts = request.parts.clone();
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let largest: Vec<String> = parts
        .iter()
        .take(2)
        .map(|(part, ns)| format!("{} {}", shown(*part).0, units::ns(*ns as f64)))
        .collect();
    let endpoint = phase.endpoints.as_ref().map_or_else(
        || request.endpoint.to_string(),
        |balance| {
            let named = balance.endpoints.get(usize::from(request.endpoint));
            named.map_or_else(String::new, |e| e.name.clone())
        },
    );
    let outcome = match (request.error, request.status) {
        (None, 0) => "ok".to_owned(),
        (None, status) => format!("ok, {status}"),
        (Some(kind), 0) => kind.to_string(),
        (Some(kind), status) => format!("{kind}, {status}"),
    };
    vec![
        units::ns(request.response_ns as f64),
        request.class.to_string(),
        request.key.clone(),
        units::seconds(request.due_ns.saturating_sub(phase.started_ns) as f64 / 1e9),
        largest.join(", "),
        endpoint,
        match request.connection {
            0 => "–".to_owned(),
            n => format!("{n} (:{})", request.local_port),
        },
        outcome,
        request.request_id.clone(),
    ]
}
