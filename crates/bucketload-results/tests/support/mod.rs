//! Synthetic runs: plans, intervals and events with seeded noise, without any clock.
#![allow(dead_code, reason = "each test binary uses a part")]

use bucketload_core::error::ErrorKind;
use bucketload_core::generate::rng::mix64;
use bucketload_core::op::OpClass;
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::{
    Accounting, ArrivalLaw, ClosedPlan, GapLaw, KeyLaw, KeyNaming, KeysetPlan, Limits, MixEntry,
    ModelPlan, OpenPlan, PhaseKind, PhasePlan, Plan, RetryPlan, SizeAssign, SizeKind, SizeLaw,
    WorkPlan,
};
use bucketload_core::record::{OpRecord, Outcome};
use bucketload_core::sink::{Calibration, Event, PhaseEnd, RunSink};
use bucketload_core::tally::{Gauges, Interval, Tally};
use bucketload_results::rundir::Manifest;

pub(crate) const SECOND: u64 = 1_000_000_000;

/// A reproducible stream of random numbers.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix64(seed))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix64(mix64(self.0))
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.word() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

fn size(bytes: u64) -> SizeLaw {
    SizeLaw {
        law: SizeKind::Const { bytes },
        min: 0,
        max: u64::MAX,
    }
}

fn entry(class: OpClass, weight: f64, keys: KeyLaw, size: Option<SizeLaw>) -> MixEntry {
    MixEntry {
        class,
        weight,
        keyset: 0,
        keys,
        size,
        range: None,
        count: 0,
        pages: 0,
        delimiter: String::new(),
    }
}

/// Prepares 1000 objects, then 70 % reads and 30 % writes at `rate` for `seconds`; a closed loop of 16 workers if the rate
/// is 0.
pub(crate) fn plan(rate: f64, seconds: u64) -> Plan {
    let model = if rate > 0.0 {
        ModelPlan::Open(OpenPlan {
            arrival: ArrivalLaw::Poisson { rate },
            max_in_flight: 1024,
        })
    } else {
        closed()
    };
    let sizes = SizeLaw {
        law: SizeKind::Uniform { a: 1000, b: 9000 },
        min: 1,
        max: 1 << 20,
    };
    Plan {
        workload: "sample".to_owned(),
        profile: String::new(),
        compat: String::new(),
        seed: 7,
        scale: 1.0,
        size_scale: 1.0,
        payload: PayloadKind::Random,
        verify: false,
        timeout_ns: 30 * SECOND,
        retry: RetryPlan {
            max_attempts: 1,
            backoff_ns: 0,
            max_backoff_ns: 0,
        },
        not_found_is_failure: true,
        keysets: vec![KeysetPlan {
            name: "objects".to_owned(),
            prefix: "r/".to_owned(),
            shards: 1,
            count: 1000,
            size: sizes.clone(),
            assign: SizeAssign::Random,
            overwritten: false,
            naming: KeyNaming::Index,
            existing: false,
            buckets: None,
        }],
        phases: vec![
            PhasePlan {
                name: "prepare".to_owned(),
                kind: PhaseKind::Prepare,
                works: vec![WorkPlan {
                    name: "fill".to_owned(),
                    model: closed(),
                    mix: vec![entry(OpClass::Put, 1.0, KeyLaw::Sequential, None)],
                }],
                limits: Limits {
                    ops: 1000,
                    ..Limits::default()
                },
                steady_state: false,
                stop: None,
                accounting: Accounting::default(),
            },
            PhasePlan {
                name: "main".to_owned(),
                kind: PhaseKind::Run,
                works: vec![WorkPlan {
                    name: "mixed".to_owned(),
                    model,
                    mix: vec![
                        entry(
                            OpClass::Get,
                            70.0,
                            KeyLaw::Zipf {
                                theta: 0.99,
                                scramble: true,
                            },
                            None,
                        ),
                        entry(OpClass::Put, 30.0, KeyLaw::Fresh, Some(size(4096))),
                    ],
                }],
                limits: Limits {
                    duration_ns: seconds * SECOND,
                    drain_ns: 10 * SECOND,
                    ..Limits::default()
                },
                steady_state: true,
                stop: None,
                accounting: Accounting::default(),
            },
        ],
    }
}

fn closed() -> ModelPlan {
    ModelPlan::Closed(ClosedPlan {
        workers: 16,
        think: GapLaw::None,
    })
}

pub(crate) fn manifest(plan: Plan) -> Manifest {
    let mut m = Manifest::new("20260102-030405-abcd", "0.1.0", plan);
    m.started_unix_ns = 1_767_323_045 * SECOND;
    m.target = "http://127.0.0.1:9000/bench".to_owned();
    m.workload_source = "name = \"sample\"\n".to_owned();
    m.command_line = vec![
        "bucketload".to_owned(),
        "run".to_owned(),
        "sample".to_owned(),
    ];
    m.driver.driver = "s3".to_owned();
    m.driver.engine = "native".to_owned();
    m.driver.endpoints = vec!["http://127.0.0.1:9000".to_owned()];
    m.client.threads = 1;
    m.host.platform = "linux x86_64".to_owned();
    m.host.kernel = "6.1.0".to_owned();
    m.host.cpu_model = "Example CPU".to_owned();
    m.host.cores = 4;
    m.host.memory_bytes = 8 << 30;
    m
}

pub(crate) fn record(class: OpClass, due_ns: u64, service_ns: u64, outcome: Outcome) -> OpRecord {
    OpRecord {
        class,
        due_ns,
        taken_ns: due_ns + 30_000,
        started_ns: due_ns + 50_000,
        sent_ns: due_ns + 50_000 + service_ns / 8,
        first_byte_ns: due_ns + 50_000 + service_ns / 2,
        done_ns: due_ns + 50_000 + service_ns,
        bytes: if outcome == Outcome::Ok { 4096 } else { 0 },
        outcome,
        attempts: 1,
        ..OpRecord::BLANK
    }
}

/// Parameters of a synthetic measuring phase; times are seconds since its start.
pub(crate) struct Shape {
    pub(crate) seconds: u64,
    pub(crate) rate: f64,
    /// Median service time in ms as a function of time.
    pub(crate) service_ms: fn(f64) -> f64,
    /// Factor of all service times.
    pub(crate) slowness: f64,
    /// Operations in flight as a function of time.
    pub(crate) in_flight: fn(f64) -> f64,
    pub(crate) failed_share: f64,
    pub(crate) failure: ErrorKind,
    pub(crate) closed: bool,
    /// Factor of the rate as a function of time.
    pub(crate) rate_at: fn(f64) -> f64,
    pub(crate) load_cpu_share: f64,
    /// Share of one core that the process uses besides its load threads.
    pub(crate) other_cpu_share: f64,
    /// Share of offered operations that is sent.
    pub(crate) sent: f64,
    pub(crate) seed: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            seconds: 60,
            rate: 200.0,
            service_ms: |_| 2.0,
            slowness: 1.0,
            in_flight: |_| 3.0,
            failed_share: 0.0,
            failure: ErrorKind::Server,
            closed: false,
            rate_at: |_| 1.0,
            load_cpu_share: 0.2,
            other_cpu_share: 0.01,
            sent: 1.0,
            seed: 1,
        }
    }
}

/// Feeds a whole run (prepare and main) to `sink`, without ending the main phase.
pub(crate) fn feed(sink: &mut dyn RunSink, shape: &Shape) {
    let mut noise = Noise::new(shape.seed);
    sink.event(&Event::PhaseStarted { phase: 0, at_ns: 0 });
    let mut tally = Tally::new();
    for i in 0..1000u64 {
        tally.record(&record(
            OpClass::Put,
            i * 900_000,
            1_500_000 + i * 100,
            Outcome::Ok,
        ));
    }
    (tally.offered, tally.issued, tally.offered_bytes) = (1000, 1000, 4_096_000);
    let mut gauges = Gauges::default();
    advance(&mut gauges, SECOND, (0.5, 0.01), 0.0);
    sink.interval(&Interval {
        phase: 0,
        index: 0,
        start_ns: 0,
        end_ns: SECOND,
        tally,
        gauges,
    });
    sink.event(&Event::PhaseEnded {
        phase: 0,
        at_ns: 900_000_000,
        end: PhaseEnd::Complete,
        drained_ns: SECOND,
    });
    sink.event(&Event::Calibrated(Calibration {
        offered_ops_per_s: if shape.closed { 0.0 } else { shape.rate },
        null_ops_per_s: shape.rate * 100.0,
        null_p99_ns: 60_000,
        null_cpu_ns_per_op: 900.0,
        age_s: None,
    }));
    sink.event(&Event::PhaseStarted {
        phase: 1,
        at_ns: SECOND,
    });
    let mut interval = Interval {
        phase: 1,
        index: 0,
        start_ns: 0,
        end_ns: 0,
        tally: Tally::new(),
        gauges,
    };
    for s in 0..=shape.seconds {
        main_interval(shape, s, &mut interval, &mut noise);
        sink.interval(&interval);
    }
}

/// Ends the main phase of [`feed`].
pub(crate) fn end(sink: &mut dyn RunSink, shape: &Shape, end: PhaseEnd) {
    sink.event(&Event::PhaseEnded {
        phase: 1,
        at_ns: (1 + shape.seconds) * SECOND,
        end,
        drained_ns: (1 + shape.seconds) * SECOND + 500_000_000,
    });
}

/// Second `s` of the main phase; the one after the last is the drain.
fn main_interval(shape: &Shape, s: u64, interval: &mut Interval, noise: &mut Noise) {
    let start = (1 + s) * SECOND;
    let t = s as f64 + 0.5;
    let drain = s == shape.seconds;
    let tally = &mut interval.tally;
    tally.clear();
    let mean = if drain {
        2.0
    } else {
        shape.rate * (shape.rate_at)(t)
    };
    let n = (mean + mean.sqrt() * noise.normal()).round().max(1.0) as u64;
    let sent = (n as f64 * shape.sent) as u64;
    for i in 0..sent {
        let (class, factor) = if noise.uniform() < 0.7 {
            (OpClass::Get, 1.0)
        } else {
            (OpClass::Put, 2.0)
        };
        let ms = (shape.service_ms)(t) * shape.slowness * factor * (0.4 * noise.normal()).exp();
        let outcome = if noise.uniform() < shape.failed_share {
            Outcome::Failed(shape.failure)
        } else {
            Outcome::Ok
        };
        let due_ns = start + i * SECOND / (n + 1);
        tally.record(&record(class, due_ns, (ms * 1e6) as u64, outcome));
    }
    if !drain {
        tally.offered = n;
        tally.offered_bytes = n * 4096;
    }
    tally.issued = sent;
    let length = if drain { SECOND / 2 } else { SECOND };
    let in_flight = (shape.in_flight)(t);
    advance(
        &mut interval.gauges,
        length,
        (shape.load_cpu_share, shape.other_cpu_share),
        in_flight,
    );
    interval.index = s;
    interval.start_ns = start;
    interval.end_ns = start + length;
}

fn advance(gauges: &mut Gauges, ns: u64, (share, other): (f64, f64), in_flight: f64) {
    let cpu = (ns as f64 * share) as u64;
    gauges.in_flight = in_flight as u64;
    gauges.sessions = 16;
    gauges.load_cpu_ns += cpu;
    gauges.busiest_thread_cpu_ns += cpu;
    gauges.process_cpu_ns += cpu + (ns as f64 * other) as u64;
    gauges.machine_busy_ns += cpu * 2;
    gauges.machine_softirq_ns += ns / 50;
    gauges.machine_total_ns += ns * 4;
    gauges.rss_bytes = 30 << 20;
}
