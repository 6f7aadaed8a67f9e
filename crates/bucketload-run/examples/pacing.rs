//! Prints the cost and the punctuality of the runner itself, against a driver that does nothing:
//! CPU time per operation of a closed loop, and the lateness of an open loop at 10 000 arrivals/s.
//!
//! `cargo run --release -p bucketload-run --example pacing [seconds] [rate] [which]`. The figures are
//! meaningful on an idle machine only. The goals are 1.0 µs per operation, a median lateness of 50 µs and a 99th
//! percentile of 200 µs.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/null.rs"]
mod null;

use std::sync::Arc;

use bucketload_core::op::OpClass;
use bucketload_core::plan::{ArrivalLaw, KeyLaw, ModelPlan};
use bucketload_core::sink::{Event, RunSink};
use bucketload_core::tally::{Gauges, Interval, Tally};
use bucketload_run::{Cores, Pacing, StopHandle, run};
use common::{closed, entry, for_ms, one, open, options};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(3);
    let rate: f64 = arguments
        .next()
        .and_then(|a| a.parse().ok())
        .unwrap_or(10_000.0);
    let which = arguments.next().unwrap_or_default();
    let wanted = |name: &str| name.contains(&which);
    let loops = [
        ("closed, 1 worker", closed(1)),
        ("closed, 64 workers", closed(64)),
    ];
    for (name, model) in loops.into_iter().filter(|l| wanted(l.0)) {
        measure(name, model, seconds, Pacing::Timer);
    }
    for pacing in [Pacing::Timer, Pacing::Precise, Pacing::BusyPoll] {
        let model = open(ArrivalLaw::Poisson { rate }, 256);
        let name = format!("open, {rate}/s, {pacing:?}");
        if wanted(&name) {
            measure(&name, model, seconds, pacing);
        }
    }
}

fn measure(name: &str, model: ModelPlan, seconds: u64, pacing: Pacing) {
    let zipf = KeyLaw::Zipf {
        theta: 0.99,
        scramble: true,
    };
    let mix = vec![
        entry(OpClass::Get, 0.7, 0, zipf),
        entry(OpClass::Put, 0.3, 1, KeyLaw::Fresh),
    ];
    let mut plan = one(model, mix, for_ms(seconds * 1_000));
    plan.keysets[0].count = 100_000;
    let mut options = options(1);
    options.pacing = pacing;
    options.cores = Cores::First;
    options.interval = std::time::Duration::from_secs(1);
    let mut sums = Sums::default();
    let driver = Arc::new(null::Null);
    let end = run(
        &driver.into(),
        &plan,
        &options,
        &mut sums,
        &StopHandle::new(),
    )
    .expect("the run works");
    let (total, gauges) = (sums.total, sums.last);
    let ok = end.phases[0].totals.ok;
    println!(
        "{name:28} {ok:9} ops  {:7.3} µs CPU/op  late p50 {:7.1} p90 {:7.1} p99 {:7.1} p99.9 {:8.1} \
         max {:8.1} µs  RSS {:4.1} MiB",
        gauges.load_cpu_ns as f64 / 1e3 / ok as f64,
        total.late.quantile_ns(0.5) as f64 / 1e3,
        total.late.quantile_ns(0.9) as f64 / 1e3,
        total.late.quantile_ns(0.99) as f64 / 1e3,
        total.late.quantile_ns(0.999) as f64 / 1e3,
        total.late.max_ns() as f64 / 1e3,
        gauges.rss_bytes as f64 / f64::from(1 << 20),
    );
}

/// Keeps the sum of all intervals and the last readings.
#[derive(Default)]
struct Sums {
    total: Tally,
    last: Gauges,
}

impl RunSink for Sums {
    fn event(&mut self, _: &Event) {}

    fn interval(&mut self, interval: &Interval) {
        self.total.merge(&interval.tally);
        self.last = interval.gauges;
    }
}
