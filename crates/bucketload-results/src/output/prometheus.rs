//! A run in progress as Prometheus metrics (text exposition format 0.0.4).
//!
//! Latencies are histograms with fixed buckets: unlike percentiles, they can be added over clients and time.
//! Counters only grow; the figures of a phase remain when the next one starts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bucketload_core::error::ErrorKind;
use bucketload_core::histogram::Histogram;
use bucketload_core::op::OpClass;
use bucketload_core::plan::Plan;
use bucketload_core::tally::{Gauges, Interval};

use crate::result::Totals;
use crate::result::figure::{CLASS, Figure, Outcome, PROGRESS};

/// Upper bounds of the latency buckets, nanoseconds.
const BOUNDS_NS: [u64; 20] = [
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
    300_000_000_000,
];

/// A latency histogram with fixed buckets.
#[derive(Clone, Debug, Default, PartialEq)]
struct Buckets {
    /// Values of each bucket, not cumulative; the last bucket is above all bounds.
    counts: [u64; BOUNDS_NS.len() + 1],
    count: u64,
    sum_ns: u128,
}

impl Buckets {
    /// Adds `h`. A value counts as at most a bound if the lower edge of its histogram bucket is, so bounds are
    /// accurate to 0.1 %.
    fn add(&mut self, h: &Histogram) {
        for (index, count) in h.buckets() {
            let value = Histogram::lowest_of(index);
            self.counts[BOUNDS_NS.partition_point(|&bound| bound < value)] += count;
        }
        self.count += h.count();
        self.sum_ns += h.sum_ns();
    }
}

/// Figures of one phase, work and class.
#[derive(Clone, Debug, Default, PartialEq)]
struct Series {
    outcome: Outcome,
    failed: BTreeMap<ErrorKind, u64>,
    response: Buckets,
    service: Buckets,
}

/// The cumulative state of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    run_id: String,
    workload: String,
    scenario_hash: String,
    version: String,
    /// Names of phases and of their works.
    names: Vec<(String, Vec<String>)>,
    phases: BTreeMap<u16, Totals>,
    series: BTreeMap<(u16, u16, OpClass), Series>,
    gauges: Gauges,
}

impl Snapshot {
    /// The state of a run of `plan` that has not started.
    #[must_use]
    pub fn new(run_id: &str, version: &str, plan: &Plan) -> Self {
        Self {
            run_id: run_id.to_owned(),
            workload: plan.workload.clone(),
            scenario_hash: plan.scenario_hash(),
            version: version.to_owned(),
            names: plan
                .phases
                .iter()
                .map(|p| {
                    (
                        p.name.clone(),
                        p.works.iter().map(|w| w.name.clone()).collect(),
                    )
                })
                .collect(),
            phases: BTreeMap::new(),
            series: BTreeMap::new(),
            gauges: Gauges::default(),
        }
    }

    /// Adds an interval.
    pub fn interval(&mut self, interval: &Interval) {
        let tally = &interval.tally;
        self.gauges = interval.gauges;
        let counters = self.phases.entry(interval.phase).or_default();
        counters.offered += tally.offered;
        counters.issued += tally.issued;
        counters.capped += tally.capped;
        counters.connects += tally.connects;
        for cell in tally.cells.iter().filter(|cell| cell.ended() > 0) {
            let key = (interval.phase, cell.work, cell.class);
            let series = self.series.entry(key).or_default();
            series.outcome.ok += cell.ok;
            series.outcome.failed += cell.failures();
            series.outcome.cancelled += cell.cancelled();
            series.outcome.retries += cell.retries;
            series.outcome.bytes += cell.bytes;
            for kind in ErrorKind::ALL {
                let n = cell.failed[kind as usize];
                if n > 0 {
                    *series.failed.entry(kind).or_default() += n;
                }
            }
            series.response.add(&cell.response);
            series.service.add(&cell.service);
        }
    }

    fn labels(&self, &(phase, work, class): &(u16, u16, OpClass)) -> String {
        let names = self.names.get(usize::from(phase));
        let work = names.and_then(|n| n.1.get(usize::from(work)));
        format!(
            "phase=\"{}\",work=\"{}\",operation=\"{class}\"",
            self.phase_name(phase),
            escape(work.map_or("", String::as_str))
        )
    }

    fn phase_name(&self, phase: u16) -> String {
        self.names
            .get(usize::from(phase))
            .map_or_else(String::new, |(name, _)| escape(name))
    }
}

/// Renders the state for a scrape.
#[must_use]
pub fn render(snapshot: &Snapshot) -> String {
    let mut page = Page::default();
    let s = snapshot;
    let identity = format!(
        "run_id=\"{}\",workload=\"{}\",scenario_hash=\"{}\",version=\"{}\"",
        escape(&s.run_id),
        escape(&s.workload),
        s.scenario_hash,
        escape(&s.version)
    );
    page.family("run_info", "gauge", "Identity of the run.")
        .sample(&identity, 1);
    for figure in PROGRESS {
        let mut family = page.family(&format!("{}_total", figure.id), "counter", figure.doc);
        for (&phase, totals) in &s.phases {
            let labels = format!("phase=\"{}\"", s.phase_name(phase));
            family.sample(&labels, figure.digits(totals));
        }
    }
    classes(&mut page, s);
    let response = "Time from intended start to end, for operations that succeeded.";
    histograms(&mut page, s, "response_seconds", response, |series| {
        &series.response
    });
    let service = "Time from actual start to end, for operations that succeeded.";
    histograms(&mut page, s, "service_seconds", service, |series| {
        &series.service
    });
    for (name, kind, help, value) in &GAUGES {
        page.family(name, kind, help).sample("", value(&s.gauges));
    }
    page.0
}

/// Counts of operations, then figures computed from them, which may decrease.
fn classes(page: &mut Page, s: &Snapshot) {
    let help = "Ended operations, by outcome.";
    let mut family = page.family("operations_total", "counter", help);
    for (key, series) in &s.series {
        let labels = s.labels(key);
        family.sample(&format!("{labels},outcome=\"ok\""), series.outcome.ok);
        for (kind, n) in &series.failed {
            family.sample(&format!("{labels},outcome=\"{kind}\""), *n);
        }
    }
    let mut each = |name: &str, kind: &str, figure: &Figure<Outcome>| {
        let mut family = page.family(name, kind, figure.doc);
        for (key, series) in &s.series {
            if figure.value(&series.outcome).is_some() {
                family.sample(&s.labels(key), figure.digits(&series.outcome));
            }
        }
    };
    for id in ["bytes", "retries"] {
        let counters = CLASS.iter().filter(|figure| figure.id == id);
        counters.for_each(|figure| each(&format!("{id}_total"), "counter", figure));
    }
    let computed = CLASS.iter().filter(|figure| figure.computed);
    computed.for_each(|figure| each(figure.id, "gauge", figure));
}

fn histograms(
    page: &mut Page,
    s: &Snapshot,
    name: &str,
    help: &str,
    pick: fn(&Series) -> &Buckets,
) {
    let mut family = page.family(name, "histogram", help);
    for (key, series) in &s.series {
        let (labels, b) = (s.labels(key), pick(series));
        let mut seen = 0;
        for (bound, count) in BOUNDS_NS.iter().zip(b.counts) {
            seen += count;
            let le = *bound as f64 / 1e9;
            family.part("_bucket", &format!("{labels},le=\"{le}\""), seen);
        }
        family.part("_bucket", &format!("{labels},le=\"+Inf\""), b.count);
        family.part("_sum", &labels, b.sum_ns as f64 / 1e9);
        family.part("_count", &labels, b.count);
    }
}

/// A reading of the client and its machine: name, type, help text, value.
type Reading = (&'static str, &'static str, &'static str, fn(&Gauges) -> f64);

const GAUGES: [Reading; 7] = [
    (
        "in_flight",
        "gauge",
        "Operations that are due but have not ended.",
        |g| g.in_flight as f64,
    ),
    ("sessions", "gauge", "Open sessions.", |g| g.sessions as f64),
    (
        "resident_bytes",
        "gauge",
        "Resident memory of the client.",
        |g| g.rss_bytes as f64,
    ),
    (
        "process_cpu_seconds_total",
        "counter",
        "CPU time of the client process.",
        |g| g.process_cpu_ns as f64 / 1e9,
    ),
    (
        "load_cpu_seconds_total",
        "counter",
        "CPU time of the load threads.",
        |g| g.load_cpu_ns as f64 / 1e9,
    ),
    (
        "machine_busy_seconds_total",
        "counter",
        "Busy CPU time of the machine, including soft interrupts.",
        |g| g.machine_busy_ns as f64 / 1e9,
    ),
    (
        "machine_cpu_seconds_total",
        "counter",
        "Total CPU time of the machine, busy and idle.",
        |g| g.machine_total_ns as f64 / 1e9,
    ),
];

/// Escapes a label value.
#[must_use]
pub fn escape(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// A page of metrics. All names start with `bucketload_`.
#[derive(Debug, Default)]
pub struct Page(pub String);

/// The samples of one metric.
#[derive(Debug)]
pub struct Family<'a> {
    name: String,
    page: &'a mut String,
}

impl Page {
    /// Starts the metric `name` of type `kind`.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) -> Family<'_> {
        let name = format!("bucketload_{name}");
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family {
            name,
            page: &mut self.0,
        }
    }
}

impl Family<'_> {
    /// Adds the value with these labels.
    pub fn sample(&mut self, labels: &str, value: impl std::fmt::Display) {
        self.part("", labels, value);
    }

    /// Adds a value of a histogram, whose name ends in `part`.
    fn part(&mut self, part: &str, labels: &str, value: impl std::fmt::Display) {
        let name = &self.name;
        let _ = if labels.is_empty() {
            writeln!(self.page, "{name}{part} {value}")
        } else {
            writeln!(self.page, "{name}{part}{{{labels}}} {value}")
        };
    }
}
