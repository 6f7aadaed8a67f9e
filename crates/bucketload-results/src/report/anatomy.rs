//! Parts of the response time, and the slowest requests individually.

use bucketload_core::record::Part;
use bucketload_core::slowest::SlowRequest;

use crate::kit::svg::{Body, Stack};
use crate::kit::{Axis, Chart, Section, Table, Unit};
use crate::result::{ClassResult, PartResult, PhaseResult};
use crate::units;

/// The section; `None` if no operation succeeded and none was slow. `endpoints` are their names.
pub(super) fn section(phase: &PhaseResult, endpoints: &[String]) -> Option<Section> {
    let any = phase.classes.iter().any(|c| !c.anatomy.is_empty());
    if !any && phase.slowest.kept == 0 {
        return None;
    }
    let intro = "The response time of an operation is the sum of its parts, in order: queue (from the due time until \
                 a worker takes it), earlier attempts, DNS, connect and TLS (only for a new connection), build (the \
                 client renders and signs the request), send, wait (for the first byte of the response), body (the \
                 rest of the response). Queue and build are on the client; the rest is network and store.";
    let evidence = |table: Table| Section {
        title: table.title.clone(),
        tables: vec![table.titled("")],
        folded: true,
        ..Section::default()
    };
    let slowest = (phase.slowest.kept > 0).then(|| slowest(phase, endpoints));
    Some(
        Section::new("", intro)
            .charts([means(phase)])
            .parts([parts(phase)].into_iter().chain(slowest).map(evidence)),
    )
}

/// Name and colour of a part.
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

/// Mean times of the parts: one bar per class, and one for the slowest requests.
fn means(phase: &PhaseResult) -> Chart {
    let classes = phase.classes.iter().filter(|c| !c.anatomy.is_empty());
    let means = |class: &ClassResult| -> Vec<(Part, f64)> {
        let parts = class.anatomy.iter();
        parts.map(|p| (p.part, p.time.mean_ns)).collect()
    };
    let mut rows: Vec<(String, Vec<(Part, f64)>)> =
        classes.map(|c| (phase.class_name(c), means(c))).collect();
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
    // Each bar shows shares of its own total: on a common scale, the slowest would dwarf the others.
    let x = Axis::share("share of the mean response time");
    Chart::new(
        "Mean response time by part",
        x.clone(),
        x,
        Body::Stack(stack),
    )
    .noted("The mean response time is to the right of each bar.")
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
        let name = phase.class_name(class);
        let parts = class.anatomy.iter();
        parts.map(move |part| part_row(&name, part, class.ok))
    });
    Table::new(1, head)
        .titled("Parts of the response time")
        .noted(
            "Over all successful operations; a part that did not occur counts as zero. The means add up to the \
             mean response time; percentiles do not. A request sent with one system call has no send time. With \
             several requests per operation, body covers everything after the first byte of the first response.",
        )
        .with(rows)
}

fn part_row(class: &str, part: &PartResult, ok: u64) -> [String; 9] {
    let time = &part.time;
    let at = |q| time.percentile_text(q);
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

fn slowest(phase: &PhaseResult, endpoints: &[String]) -> Table {
    let slowest = &phase.slowest;
    // One endpoint needs no column.
    let several = slowest
        .top
        .windows(2)
        .any(|w| w[0].endpoint != w[1].endpoint);
    let mut head = vec!["response", "operation", "key", "at", "largest parts"];
    head.extend(several.then_some("endpoint"));
    head.extend(["connection", "outcome", "request id"]);
    let title = format!(
        "The {} slowest of {} requests recorded individually",
        slowest.top.len(),
        units::count(slowest.kept)
    );
    let row = |request: &SlowRequest| {
        let endpoint = endpoints.get(usize::from(request.endpoint));
        let endpoint = endpoint.map_or("", |url| url.split("://").last().unwrap_or(url));
        slow_row(phase, request, several.then_some(endpoint))
    };
    Table::new(head.len(), head)
        .titled(title)
        .noted(
            "From the whole phase, including warm-up and failed requests. slowest.jsonl has all of them. A \
             connection is given by its number in the run and its local port.",
        )
        .with(slowest.top.iter().map(row))
        .dense()
}

fn slow_row(phase: &PhaseResult, request: &SlowRequest, endpoint: Option<&str>) -> Vec<String> {
    let mut parts = request.parts.clone();
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let largest: Vec<String> = parts
        .iter()
        .take(2)
        .map(|(part, ns)| format!("{} {}", shown(*part).0, units::ns(*ns as f64)))
        .collect();
    let outcome = match (request.error, request.status) {
        (None, 0) => "ok".to_owned(),
        (None, status) => format!("ok, {status}"),
        (Some(kind), 0) => kind.to_string(),
        (Some(kind), status) => format!("{kind}, {status}"),
    };
    let mut row = vec![
        units::ns(request.response_ns as f64),
        request.class.to_string(),
        request.key.clone(),
        units::seconds(request.due_ns.saturating_sub(phase.started_ns) as f64 / 1e9),
        largest.join(", "),
    ];
    row.extend(endpoint.map(str::to_owned));
    row.extend([
        match request.connection {
            0 => "–".to_owned(),
            n => format!("{n} (:{})", request.local_port),
        },
        outcome,
        request.request_id.clone(),
    ]);
    row
}
