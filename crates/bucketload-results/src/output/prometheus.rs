//! A run under way as Prometheus metrics (text exposition format 0.0.4).
//!
//! Latencies are histograms with fixed buckets: they can be added over clients and time, which
//! percentiles cannot. Counters only grow; the figures of a phase stay when the next one begins.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bucketload_core::error::ErrorKind;
use bucketload_core::histogram::Histogram;
use bucketload_core::op::OpClass;
use bucketload_core::plan::Plan;
use bucketload_core::tally::{Gauges, Interval};

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
    /// Values of each bucket, not cumulative; the last one is above all bounds.
    counts: [u64; BOUNDS_NS.len() + 1],
    count: u64,
    sum_ns: u128,
}

impl Buckets {
    /// Adds `h`. A value counts as at most a bound when the lower edge of its histogram bucket is:
    /// bounds are exact to 0.1 %.
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
    ok: u64,
    failed: BTreeMap<ErrorKind, u64>,
    retries: u64,
    bytes: u64,
    response: Buckets,
    service: Buckets,
}

/// Figures of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PhaseCounters {
    offered: u64,
    issued: u64,
    capped: u64,
    connects: u64,
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
    phases: BTreeMap<u16, PhaseCounters>,
    series: BTreeMap<(u16, u16, OpClass), Series>,
    gauges: Gauges,
}

impl Snapshot {
    /// The state of a run of `plan` that has not begun.
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
            series.ok += cell.ok;
            series.retries += cell.retries;
            series.bytes += cell.bytes;
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
    let mut page = Page(String::new());
    let s = snapshot;
    page.family("bucketload_run_info", "gauge", "Identity of the run.");
    let identity = format!(
        "run_id=\"{}\",workload=\"{}\",scenario_hash=\"{}\",version=\"{}\"",
        escape(&s.run_id),
        escape(&s.workload),
        s.scenario_hash,
        escape(&s.version)
    );
    page.sample("bucketload_run_info", &identity, 1);
    phase_counters(&mut page, s);
    class_counters(&mut page, s);
    let response = "Time from intended start to end of operations that succeeded.";
    histograms(
        &mut page,
        s,
        "bucketload_response_seconds",
        response,
        |series| &series.response,
    );
    let service = "Time from actual start to end of operations that succeeded.";
    histograms(
        &mut page,
        s,
        "bucketload_service_seconds",
        service,
        |series| &series.service,
    );
    gauges(&mut page, &s.gauges);
    page.0
}

fn phase_counters(page: &mut Page, s: &Snapshot) {
    type Field = fn(&PhaseCounters) -> u64;
    let families: [(&str, &str, Field); 4] = [
        (
            "bucketload_offered_total",
            "Operations that fell due.",
            |c| c.offered,
        ),
        (
            "bucketload_issued_total",
            "Operations handed to a worker.",
            |c| c.issued,
        ),
        (
            "bucketload_capped_total",
            "Arrivals that found the in-flight cap reached.",
            |c| c.capped,
        ),
        ("bucketload_connects_total", "Connections made.", |c| {
            c.connects
        }),
    ];
    for (name, help, field) in families {
        page.family(name, "counter", help);
        for (&phase, counters) in &s.phases {
            let labels = format!("phase=\"{}\"", s.phase_name(phase));
            page.sample(name, &labels, field(counters));
        }
    }
}

fn class_counters(page: &mut Page, s: &Snapshot) {
    let name = "bucketload_operations_total";
    page.family(name, "counter", "Operations that ended, by outcome.");
    for (key, series) in &s.series {
        let labels = s.labels(key);
        page.sample(name, &format!("{labels},outcome=\"ok\""), series.ok);
        for (kind, n) in &series.failed {
            page.sample(name, &format!("{labels},outcome=\"{kind}\""), *n);
        }
    }
    let name = "bucketload_bytes_total";
    page.family(
        name,
        "counter",
        "Object bytes of operations that succeeded.",
    );
    for (key, series) in &s.series {
        page.sample(name, &s.labels(key), series.bytes);
    }
    let name = "bucketload_retries_total";
    page.family(name, "counter", "Attempts beyond the first.");
    for (key, series) in &s.series {
        page.sample(name, &s.labels(key), series.retries);
    }
}

fn histograms(
    page: &mut Page,
    s: &Snapshot,
    name: &str,
    help: &str,
    pick: fn(&Series) -> &Buckets,
) {
    page.family(name, "histogram", help);
    let bucket = format!("{name}_bucket");
    for (key, series) in &s.series {
        let (labels, b) = (s.labels(key), pick(series));
        let mut seen = 0;
        for (bound, count) in BOUNDS_NS.iter().zip(b.counts) {
            seen += count;
            let le = *bound as f64 / 1e9;
            page.sample(&bucket, &format!("{labels},le=\"{le}\""), seen);
        }
        page.sample(&bucket, &format!("{labels},le=\"+Inf\""), b.count);
        page.sample(&format!("{name}_sum"), &labels, b.sum_ns as f64 / 1e9);
        page.sample(&format!("{name}_count"), &labels, b.count);
    }
}

fn gauges(page: &mut Page, g: &Gauges) {
    for (name, help, value) in [
        (
            "bucketload_in_flight",
            "Operations due but not ended.",
            g.in_flight,
        ),
        ("bucketload_sessions", "Open sessions.", g.sessions),
        (
            "bucketload_resident_bytes",
            "Resident memory of the client.",
            g.rss_bytes,
        ),
    ] {
        page.family(name, "gauge", help);
        page.sample(name, "", value);
    }
    for (name, help, ns) in [
        (
            "bucketload_process_cpu_seconds_total",
            "CPU time of the client process.",
            g.process_cpu_ns,
        ),
        (
            "bucketload_load_cpu_seconds_total",
            "CPU time of the load threads.",
            g.load_cpu_ns,
        ),
        (
            "bucketload_machine_busy_seconds_total",
            "Busy CPU time of the machine, soft interrupts included.",
            g.machine_busy_ns,
        ),
        (
            "bucketload_machine_cpu_seconds_total",
            "CPU time that the machine had.",
            g.machine_total_ns,
        ),
    ] {
        page.family(name, "counter", help);
        page.sample(name, "", ns as f64 / 1e9);
    }
}

/// A label value as the format wants it.
fn escape(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = if labels.is_empty() {
            writeln!(self.0, "{name} {value}")
        } else {
            writeln!(self.0, "{name}{{{labels}}} {value}")
        };
    }
}
