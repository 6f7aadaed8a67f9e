//! The columns of the operation log, in both formats.

use bucketload_core::op::Op;
use bucketload_core::plan::Plan;
use bucketload_core::record::{Outcome, Part};
use bucketload_core::trail::Trail;

/// Content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Int,
    /// Whole numbers or null.
    OptInt,
    /// One of a few texts.
    Name,
    /// Text.
    Text,
    /// Text or null.
    OptText,
}

/// Name and kind of every column, in order. New columns are appended.
pub const COLUMNS: [(&str, Kind); 38] = [
    ("seq", Kind::Int),
    ("phase", Kind::Name),
    ("work", Kind::Name),
    ("class", Kind::Name),
    ("key", Kind::Text),
    ("size", Kind::OptInt),
    ("bytes", Kind::Int),
    ("range_offset", Kind::OptInt),
    ("range_length", Kind::OptInt),
    ("worker", Kind::Int),
    ("thread", Kind::Int),
    ("endpoint", Kind::Name),
    ("connection", Kind::OptInt),
    ("local_port", Kind::OptInt),
    ("due_ns", Kind::Int),
    ("taken_ns", Kind::Int),
    ("started_ns", Kind::Int),
    ("sent_ns", Kind::OptInt),
    ("first_byte_ns", Kind::OptInt),
    ("done_ns", Kind::Int),
    ("dispatch_ns", Kind::Int),
    ("blocked_ns", Kind::Int),
    ("queue_ns", Kind::Int),
    ("retry_ns", Kind::Int),
    ("dns_ns", Kind::Int),
    ("connect_ns", Kind::Int),
    ("tls_ns", Kind::Int),
    ("build_ns", Kind::Int),
    ("send_ns", Kind::Int),
    ("wait_ns", Kind::Int),
    ("body_ns", Kind::Int),
    ("outcome", Kind::Name),
    ("attempts", Kind::Int),
    ("status", Kind::OptInt),
    ("version", Kind::Int),
    ("source_key", Kind::OptText),
    ("request_id", Kind::OptText),
    ("extended_id", Kind::OptText),
];

/// One cell of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Int(i64),
    Null,
    Text(&'a str),
}

/// The names that rows refer to by number.
pub(super) struct Names {
    phases: Vec<(String, Vec<String>)>,
    endpoints: Vec<String>,
}

impl Names {
    /// The names of `plan`'s phases and works.
    pub(super) fn new(plan: &Plan, endpoints: &[String]) -> Self {
        let works = |phase: &bucketload_core::plan::PhasePlan| {
            phase.works.iter().map(|work| work.name.clone()).collect()
        };
        Self {
            phases: plan
                .phases
                .iter()
                .map(|phase| (phase.name.clone(), works(phase)))
                .collect(),
            endpoints: endpoints.to_vec(),
        }
    }

    /// Passes every cell of a row (a trail with its key and source key) to `put`, in the order of [`COLUMNS`].
    pub(super) fn row(
        &self,
        (phase, thread): (u16, u16),
        (trail, key, source): (&Trail, &str, &str),
        mut put: impl FnMut(usize, Value<'_>),
    ) {
        let (r, op) = (&trail.record, &trail.op);
        let (phase_name, works) = match self.phases.get(usize::from(phase)) {
            Some((name, works)) => (name.as_str(), works.as_slice()),
            None => ("", [].as_slice()),
        };
        let int = |value: u64| Value::Int(i64::try_from(value).unwrap_or(i64::MAX));
        let opt = |value: u64| if value == 0 { Value::Null } else { int(value) };
        let text = |value| {
            if str::is_empty(value) {
                Value::Null
            } else {
                Value::Text(value)
            }
        };
        let sized =
            op.size != Op::UNKNOWN_SIZE && (op.class.writes_body() || op.class.reads_body());
        let range = op.range.filter(|_| op.class.reads_range());
        let mut at = 0;
        let mut next = |value: Value<'_>| {
            put(at, value);
            at += 1;
        };
        next(int(op.seq));
        next(Value::Text(phase_name));
        next(Value::Text(
            works.get(usize::from(r.work)).map_or("", String::as_str),
        ));
        next(Value::Text(r.class.name()));
        next(Value::Text(key));
        next(if sized { int(op.size) } else { Value::Null });
        next(int(r.bytes));
        next(range.map_or(Value::Null, |range| int(range.offset)));
        next(range.map_or(Value::Null, |range| int(range.len)));
        next(int(u64::from(r.worker)));
        next(int(u64::from(thread)));
        let endpoint = self.endpoints.get(usize::from(r.endpoint));
        next(Value::Text(endpoint.map_or("", String::as_str)));
        next(opt(trail.route.connection));
        next(opt(u64::from(trail.route.local_port)));
        next(int(r.due_ns));
        next(int(r.taken_ns));
        next(int(r.started_ns));
        next(opt(r.sent_ns));
        next(opt(r.first_byte_ns));
        next(int(r.done_ns));
        next(int(r.dispatch_ns));
        next(int(r.blocked_ns));
        for part in Part::ALL {
            next(int(r.part_ns(part)));
        }
        next(Value::Text(match r.outcome {
            Outcome::Ok => "ok",
            Outcome::Failed(kind) => kind.name(),
        }));
        next(int(u64::from(r.attempts)));
        next(opt(u64::from(trail.status)));
        next(int(u64::from(op.version)));
        next(text(source));
        next(text(trail.ids.request_id.as_str()));
        next(text(trail.ids.extended_id.as_str()));
        debug_assert_eq!(at, COLUMNS.len());
    }
}
