//! Parts of the text for readers: parts of response times, slowest requests, endpoints, nodes, operation
//! log.

use std::fmt::Write as _;

use super::TextOptions;
use crate::kit::Table;
use crate::result::{EndpointBalance, NodeBalance, PhaseResult, RunHeader};
use crate::units;

/// Limit on the endpoints shown.
const ENDPOINTS: usize = 16;

/// One line per class: the relevant parts, largest first.
pub(super) fn anatomy(out: &mut String, phase: &PhaseResult) -> std::fmt::Result {
    for class in phase.classes.iter().filter(|c| !c.anatomy.is_empty()) {
        let mut parts: Vec<_> = class.anatomy.iter().filter(|p| p.share >= 0.005).collect();
        parts.sort_by(|a, b| b.share.total_cmp(&a.share));
        let parts: Vec<String> = parts
            .into_iter()
            .map(|p| format!("{} {}", p.part.name(), units::percent(p.share)))
            .collect();
        writeln!(
            out,
            "  response time of {}: {}",
            phase.class_name(class),
            parts.join(", ")
        )?;
    }
    Ok(())
}

/// The slowest request, and where to find the others.
pub(super) fn slowest(out: &mut String, phase: &PhaseResult) -> std::fmt::Result {
    let Some(first) = phase.slowest.top.first() else {
        return Ok(());
    };
    let mut parts = first.parts.clone();
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let largest: Vec<String> = parts
        .iter()
        .take(2)
        .map(|(part, ns)| format!("{} {}", part.name(), units::ns(*ns as f64)))
        .collect();
    write!(
        out,
        "  slowest: {} of {} took {} ({})",
        first.class,
        first.key,
        units::ns(first.response_ns as f64),
        largest.join(", ")
    )?;
    if let Some(error) = first.error {
        write!(out, ", {error}")?;
    }
    if !first.request_id.is_empty() {
        write!(out, ", request id {}", first.request_id)?;
    }
    writeln!(
        out,
        "; slowest.jsonl has {}",
        units::count(phase.slowest.kept)
    )
}

/// Load of each endpoint.
pub(super) fn endpoints(
    out: &mut String,
    balance: &EndpointBalance,
    on: TextOptions,
) -> std::fmt::Result {
    let head = [
        "endpoint",
        "requests",
        "failed",
        "bytes",
        "service mean",
        "max",
    ];
    let mut table = Table::new(1, head).expending(&["bytes", "max"]);
    for e in balance.endpoints.iter().take(ENDPOINTS) {
        table.row(vec![
            e.name.as_str().into(),
            units::count(e.requests).into(),
            units::count(e.failed).into(),
            units::bytes(e.bytes as f64).into(),
            units::ns(e.service.mean_ns).into(),
            units::ns(e.service.max_ns as f64).into(),
        ]);
    }
    writeln!(out)?;
    table.render_within(on.width, on.colour, out);
    if balance.endpoints.len() > ENDPOINTS {
        let more = balance.endpoints.len() - ENDPOINTS;
        writeln!(out, "  {more} more endpoints are in the report")?;
    }
    let (Some(requests), Some(null)) = (&balance.requests, &balance.null) else {
        return Ok(());
    };
    writeln!(
        out,
        "  balance: peak/mean {} (at most {} by chance), CV {}, effective endpoints {} of {}",
        units::number(requests.peak),
        units::number(null.peak_bound),
        units::number(requests.cv),
        units::number(requests.effective),
        requests.nodes
    )
}

/// Load of each data node.
pub(super) fn nodes(out: &mut String, balance: &NodeBalance, on: TextOptions) -> std::fmt::Result {
    let mut table = Table::new(1, ["data node", "objects", "expected", "observed", "bytes"]);
    for n in &balance.nodes {
        let observed = n.observed.map_or_else(|| "-".to_owned(), units::number);
        table.row(vec![
            n.name.as_str().into(),
            units::number(n.objects).into(),
            units::number(n.expected).into(),
            observed.into(),
            units::bytes(n.bytes).into(),
        ]);
    }
    writeln!(out)?;
    table.render_within(on.width, on.colour, out);
    let a = &balance.attribution;
    for (what, found) in [("expected", a.expected), ("observed", a.observed)] {
        if let Some(i) = found {
            writeln!(
                out,
                "  requests {what}: peak/mean {}, CV {}, Gini {}, Jain {}, effective nodes {} of {}",
                units::number(i.peak),
                units::number(i.cv),
                units::number(i.gini),
                units::number(i.jain),
                units::number(i.effective),
                i.nodes
            )?;
        }
    }
    writeln!(
        out,
        "  the hottest key alone ({} of the requests) makes the peak at least {}{}",
        units::percent(balance.hottest_share),
        units::number(balance.one_key_bound),
        match balance.unknown {
            0 => String::new(),
            n => format!(
                "; {} requests for keys without a placement",
                units::count(n)
            ),
        }
    )
}

/// Whether the operation log is complete.
pub(super) fn op_log(out: &mut String, run: &RunHeader) -> std::fmt::Result {
    let Some(log) = &run.op_log else {
        return Ok(());
    };
    match (log.complete, log.dropped) {
        (false, _) => writeln!(
            out,
            "Operation log: not completed; the finished files are readable"
        ),
        (true, 0) => writeln!(
            out,
            "Operation log: {} operations in {}",
            units::count(log.rows),
            log.files()
        ),
        (true, dropped) => writeln!(
            out,
            "Operation log: {} operations in {}; {} more were dropped because the writer was too slow",
            units::count(log.rows),
            log.files(),
            units::count(dropped)
        ),
    }
}
