//! Figures, each declared once with name, unit, meaning and computation. JSON, CSV, the terminal's tables, the
//! report, metrics, comparisons and the manual's reference are all derived from the declaration.
//!
//! Results that are not plain numbers (distributions, series, verdicts) have their own types in
//! [`crate::result`].

use std::collections::BTreeMap;

use bucketload_core::stats::batch::Estimate;
use bucketload_core::stats::decide::Better;
use serde::{Deserialize, Serialize};

use super::{ClassResult, ClientUse, Latency, PhaseResult, Totals};
pub use crate::kit::Unit;

/// Computation of a figure. `None` if the data for it is missing.
#[derive(Clone, Copy, Debug)]
pub enum Source<T> {
    /// A count, exact.
    Count(fn(&T) -> u64),
    /// A number without an interval.
    Number(fn(&T) -> Option<f64>),
    /// A mean with its 95 % interval.
    Estimate(fn(&T) -> Option<Estimate>),
}

/// The declaration of a figure of `T`.
#[derive(Clone, Copy, Debug)]
pub struct Figure<T> {
    /// Its name in JSON, in CSV and, with a prefix, among metrics. It ends with the unit.
    pub id: &'static str,
    /// Heading in tables for readers; empty for figures that only programs get.
    pub title: &'static str,
    /// Name in the terminal's lines, or by which users ask for it; empty for figures without one.
    pub brief: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// Which direction is better; `None` for descriptive figures.
    pub better: Option<Better>,
    /// Its meaning in one sentence; empty if the doc comment of its field says it.
    pub doc: &'static str,
    /// Whether the result has no field for it. Then it appears in JSON next to the fields, and in the last columns
    /// of CSV.
    pub computed: bool,
    /// Its computation.
    pub value: Source<T>,
}

impl<T> Figure<T> {
    pub(super) const fn new(
        id: &'static str,
        title: &'static str,
        unit: Unit,
        value: Source<T>,
    ) -> Self {
        Self {
            id,
            title,
            brief: "",
            unit,
            better: None,
            doc: "",
            computed: false,
            value,
        }
    }

    const fn count(id: &'static str, title: &'static str, value: fn(&T) -> u64) -> Self {
        Self::new(id, title, Unit::Number, Source::Count(value))
    }

    /// A figure without a field of its own.
    const fn computed(
        id: &'static str,
        title: &'static str,
        unit: Unit,
        doc: &'static str,
        value: fn(&T) -> Option<f64>,
    ) -> Self {
        Self {
            computed: true,
            ..Self::new(id, title, unit, Source::Number(value)).doc(doc)
        }
    }

    pub(super) const fn brief(self, brief: &'static str) -> Self {
        Self { brief, ..self }
    }

    pub(super) const fn better(self, better: Better) -> Self {
        Self {
            better: Some(better),
            ..self
        }
    }

    pub(super) const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }

    /// Whether the value has an interval.
    #[must_use]
    pub const fn has_interval(&self) -> bool {
        matches!(self.value, Source::Estimate(_))
    }

    /// The value in `of`.
    #[must_use]
    pub fn value(&self, of: &T) -> Option<f64> {
        match self.value {
            Source::Count(count) => Some(count(of) as f64),
            Source::Number(number) => number(of),
            Source::Estimate(estimate) => Some(estimate(of)?.mean),
        }
    }

    /// The estimate in `of`; `None` for figures without an interval.
    #[must_use]
    pub fn estimate(&self, of: &T) -> Option<Estimate> {
        match self.value {
            Source::Estimate(estimate) => estimate(of),
            _ => None,
        }
    }

    /// The value in `of` for programs; empty without a value.
    #[must_use]
    pub fn digits(&self, of: &T) -> String {
        match self.value {
            Source::Count(count) => count(of).to_string(),
            _ => decimal(self.value(of)),
        }
    }
}

/// `value` with three decimals; empty without a value.
#[must_use]
pub fn decimal(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.3}"))
}

/// Outcome of operations, of one class or a whole phase. Figures are computed from it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Operations cut off by the end of the run.
    pub cancelled: u64,
    /// Attempts beyond the first.
    pub retries: u64,
    /// Object bytes of operations that succeeded.
    pub bytes: u64,
    /// Operations that succeeded, per second; `None` while the run is in progress.
    pub ops_per_s: Option<Estimate>,
    /// Their object bytes, per second; `None` while the run is in progress.
    pub bytes_per_s: Option<Estimate>,
}

impl Outcome {
    /// The outcome of all operations of `phase`.
    #[must_use]
    pub fn of_phase(phase: &PhaseResult) -> Self {
        let sum = |of: fn(&ClassResult) -> u64| phase.classes.iter().map(of).sum();
        Self {
            ok: sum(|c| c.ok),
            failed: sum(|c| c.failed),
            cancelled: sum(|c| c.cancelled),
            retries: sum(|c| c.retries),
            bytes: sum(|c| c.bytes),
            ops_per_s: Some(phase.rates.ops_per_s),
            bytes_per_s: Some(phase.rates.bytes_per_s),
        }
    }
}

impl From<&ClassResult> for Outcome {
    fn from(class: &ClassResult) -> Self {
        Self {
            ok: class.ok,
            failed: class.failed,
            cancelled: class.cancelled,
            retries: class.retries,
            bytes: class.bytes,
            ops_per_s: Some(class.ops_per_s),
            bytes_per_s: Some(class.bytes_per_s),
        }
    }
}

/// Figures without a field of their own, by their `id`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Computed(BTreeMap<String, f64>);

impl Computed {
    /// The figures of [`CLASS`] that have no field.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        let figures = CLASS.iter().filter(|figure| figure.computed);
        Self(
            figures
                .filter_map(|figure| Some((figure.id.to_owned(), figure.value(outcome)?)))
                .collect(),
        )
    }
}

/// Figures of a class of operations, in the order of the terminal's columns.
pub static CLASS: &[Figure<Outcome>] = &[
    Figure::count("ok", "ok", |o: &Outcome| o.ok).better(Better::Higher),
    Figure::count("failed", "failed", |o: &Outcome| o.failed).better(Better::Lower),
    Figure::count("cancelled", "cancelled", |o: &Outcome| o.cancelled).better(Better::Lower),
    Figure::count("retries", "retries", |o: &Outcome| o.retries)
        .better(Better::Lower)
        .doc("Attempts beyond the first."),
    Figure::new(
        "bytes",
        "",
        Unit::Bytes,
        Source::Count(|o: &Outcome| o.bytes),
    )
    .doc("Object bytes of operations that succeeded."),
    Figure::new(
        "ops_per_s",
        "ops/s",
        Unit::PerS,
        Source::Estimate(|o: &Outcome| o.ops_per_s),
    )
    .better(Better::Higher),
    Figure::new(
        "bytes_per_s",
        "bytes/s",
        Unit::BytesPerS,
        Source::Estimate(|o: &Outcome| o.bytes_per_s),
    )
    .better(Better::Higher),
    Figure::computed(
        "bytes_per_op",
        "bytes/op",
        Unit::Bytes,
        "Object bytes per operation that succeeded.",
        |o: &Outcome| (o.ok > 0).then(|| o.bytes as f64 / o.ok as f64),
    ),
];

/// Counts of a phase that metrics show while it is in progress.
pub static PROGRESS: &[Figure<Totals>] = &[
    Figure::count("offered", "", |t: &Totals| t.offered).doc("Operations that fell due."),
    Figure::count("issued", "", |t: &Totals| t.issued).doc("Operations handed to a worker."),
    Figure::count("capped", "", |t: &Totals| t.capped).doc("Arrivals that hit the in-flight cap."),
    Figure::count("connects", "", |t: &Totals| t.connects).doc("Connections made."),
];

/// Cost of the client, in the order of the terminal's line.
pub static CLIENT: &[Figure<ClientUse>] = &[
    Figure::new(
        "cpu_us_per_op",
        "client CPU per operation",
        Unit::UsPerOp,
        Source::Number(|c: &ClientUse| c.cpu_us_per_op),
    )
    .brief("CPU per operation"),
    Figure::new(
        "load_cpu_us_per_op",
        "of that, load threads",
        Unit::UsPerOp,
        Source::Number(|c: &ClientUse| c.load_cpu_us_per_op),
    ),
    Figure::new(
        "busiest_thread",
        "busiest load thread",
        Unit::Share,
        Source::Number(|c: &ClientUse| c.busiest_thread),
    )
    .brief("busiest load thread"),
    Figure::new(
        "machine_busy",
        "whole machine busy",
        Unit::Share,
        Source::Number(|c: &ClientUse| c.machine_busy),
    )
    .brief("machine"),
    Figure::new(
        "machine_softirq",
        "of that, soft interrupts",
        Unit::Share,
        Source::Number(|c: &ClientUse| c.machine_softirq),
    ),
    Figure::new(
        "machine_steal",
        "stolen by the hypervisor",
        Unit::Share,
        Source::Number(|c: &ClientUse| c.machine_steal),
    ),
    Figure::new(
        "nic",
        "network line rate used",
        Unit::Share,
        Source::Number(|c: &ClientUse| c.nic),
    )
    .brief("network"),
    Figure::new(
        "headroom",
        "rate of the calibration, which sends nothing, over the rate",
        Unit::Times,
        Source::Number(|c: &ClientUse| c.headroom),
    ),
    Figure::new(
        "used_share",
        "used of what limits the client first",
        Unit::Share,
        Source::Number(|c: &ClientUse| c.used_share),
    ),
    Figure::new(
        "headroom_factor",
        "headroom",
        Unit::Times,
        Source::Number(|c: &ClientUse| c.headroom_factor),
    )
    .brief("headroom"),
    Figure::new(
        "rss_max_bytes",
        "largest resident memory",
        Unit::Bytes,
        Source::Count(|c: &ClientUse| c.rss_max_bytes),
    )
    .brief("memory"),
];

/// A duration of a class's operations.
#[derive(Debug)]
pub struct Duration {
    /// Its name in JSON and, with the figure's name appended, in CSV.
    pub id: &'static str,
    /// Its name in tables.
    pub title: &'static str,
    /// Its figures in a class.
    pub of: fn(&ClassResult) -> &Latency,
}

/// The durations of a class of operations, in the order of every table.
pub static DURATIONS: &[Duration] = &[
    Duration {
        id: "response",
        title: "response",
        of: |c| &c.response,
    },
    Duration {
        id: "service",
        title: "service",
        of: |c| &c.service,
    },
    Duration {
        id: "ttfb",
        title: "first byte",
        of: |c| &c.ttfb,
    },
    Duration {
        id: "failed_response",
        title: "failed",
        of: |c| &c.failed_response,
    },
];
