//! The client's cost of one operation of the online-service workload before any I/O: arrival, operation, key
//! text, record. Prints nanoseconds of CPU time per operation. Linux only: it reads the scheduler's
//! accounting of this thread, which other load on the machine does not disturb.
//!
//!     cargo run --release -p bucketload-core --example generate_cost

use std::hint::black_box;

use bucketload_core::generate::arrivals::{Arrival, Schedule};
use bucketload_core::generate::names::KeyNames;
use bucketload_core::generate::ops::OpGen;
use bucketload_core::generate::sizes::SizeSampler;
use bucketload_core::generate::sizes::emg::Emg;
use bucketload_core::op::{Op, OpClass};
use bucketload_core::payload::PayloadKind;
use bucketload_core::plan::{
    ArrivalLaw, KeyLaw, KeyNaming, KeysetPlan, Limits, MixEntry, ModelPlan, OpenPlan, PhaseKind,
    PhasePlan, Plan, RetryPlan, SizeAssign, SizeKind, SizeLaw, WorkPlan,
};
use bucketload_core::record::OpRecord;
use bucketload_core::tally::Recording;

/// Operations per measurement: enough for the scheduler's accounting, which advances by ticks.
const OPS: u64 = 3_000_000;

fn online_service() -> Plan {
    const MAX: u64 = 64 << 20;
    let emg = SizeKind::Emg {
        mu: 32.0 * 1024.0,
        sigma: 8.0 * 1024.0,
        tau: 93.98 * 1024.0,
    };
    let zipf = SizeKind::Zipf {
        n: 16_384,
        s: 1.5036,
        unit: 4096,
        align: true,
    };
    let keyset = |name: &str, count, law, assign| KeysetPlan {
        name: name.into(),
        prefix: format!("{name}/"),
        shards: 16,
        count,
        size: SizeLaw {
            law,
            min: 1,
            max: MAX,
        },
        assign,
        overwritten: false,
        naming: KeyNaming::Index,
        existing: false,
        buckets: None,
    };
    let entry = |class, weight, keyset, keys| MixEntry {
        weight,
        ..MixEntry::new(class, keyset, keys)
    };
    let popularity = KeyLaw::Zipf {
        theta: 0.99,
        scramble: true,
    };
    Plan {
        workload: "online-service".into(),
        profile: "literal".into(),
        compat: String::new(),
        seed: 1,
        scale: 1.0,
        size_scale: 1.0,
        payload: PayloadKind::Random,
        verify: false,
        timeout_ns: 1,
        retry: RetryPlan::NONE,
        not_found_is_failure: true,
        keysets: vec![
            keyset("r", 100_000, emg, SizeAssign::LowDiscrepancy),
            keyset("w", 0, zipf, SizeAssign::Random),
        ],
        phases: vec![PhasePlan::new(
            "main",
            PhaseKind::Run,
            vec![WorkPlan {
                name: "online".into(),
                model: ModelPlan::Open(OpenPlan {
                    arrival: ArrivalLaw::LognormalGaps {
                        rate: 200.0,
                        cv: 2.0,
                    },
                    max_in_flight: 1000,
                }),
                mix: vec![
                    entry(OpClass::Get, 0.7, 0, popularity),
                    entry(OpClass::Put, 0.3, 1, KeyLaw::Fresh),
                ],
            }],
            Limits::default(),
        )],
    }
}

/// CPU time of this thread, nanoseconds.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|ns| ns.parse().ok()).unwrap_or_default()
}

/// CPU nanoseconds per operation of `body`, the smallest of five measurements.
fn cost(name: &str, mut body: impl FnMut(u64)) -> f64 {
    let once = |body: &mut dyn FnMut(u64)| {
        let start = cpu_ns();
        body(OPS);
        (cpu_ns() - start) as f64 / OPS as f64
    };
    let best = (0..5)
        .map(|_| once(&mut body))
        .fold(f64::INFINITY, f64::min);
    println!("{name:32} {best:7.1} ns/op");
    best
}

fn record(op: &Op, arrival: Arrival) -> OpRecord {
    let due_ns = arrival.due_ns;
    // Instants of a null target; the spread keeps values in more than one histogram bucket.
    let service = 800 + (op.seq & 1023);
    OpRecord {
        class: op.class,
        due_ns,
        taken_ns: due_ns + 50,
        started_ns: due_ns + 150,
        first_byte_ns: due_ns + 150 + service / 2,
        done_ns: due_ns + 150 + service,
        bytes: op.size,
        attempts: 1,
        ..OpRecord::BLANK
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plan = online_service();
    let work = &plan.phases[0].works[0];
    let ModelPlan::Open(OpenPlan { arrival, .. }) = &work.model else {
        return Err("the online service is an open workload".into());
    };
    let schedule = Schedule::new(plan.seed, 0, 0, arrival)?;
    let gen_ops = OpGen::new(&plan, 0, 0)?;
    let names: Vec<KeyNames> = plan
        .keysets
        .iter()
        .map(|keyset| KeyNames::new("bench-0/", keyset))
        .collect::<Result<_, _>>()?;
    let mut key = String::with_capacity(names.iter().map(KeyNames::max_len).max().unwrap_or(0));
    let mut recording = Recording::default();

    cost("arrival (log-normal gaps)", |n| {
        for arrival in schedule.arrivals().take(n as usize) {
            black_box(arrival);
        }
    });
    let poisson = Schedule::new(plan.seed, 0, 0, &ArrivalLaw::Poisson { rate: 200.0 })?;
    cost("arrival (Poisson)", |n| {
        for arrival in poisson.arrivals().take(n as usize) {
            black_box(arrival);
        }
    });
    cost("operation", |n| {
        for seq in 0..n {
            black_box(gen_ops.op(black_box(seq)));
        }
    });
    for (name, class) in [("operation (get)", 0), ("operation (put)", 1)] {
        let mut single = plan.clone();
        let mix = &mut single.phases[0].works[0].mix;
        *mix = vec![mix[class].clone()];
        let gen_ops = OpGen::new(&single, 0, 0)?;
        cost(name, |n| {
            for seq in 0..n {
                black_box(gen_ops.op(black_box(seq)));
            }
        });
    }
    let sizes = SizeSampler::new(&plan.keysets[0].size)?;
    cost("size quantile (emg)", |n| {
        for i in 0..n {
            black_box(sizes.quantile(black_box((i as f64 + 0.5) / n as f64)));
        }
    });
    // Sizes near 0 are tabulated too coarsely for the stated accuracy, so a Newton step refines them.
    let near_zero = Emg::new(0.0, 10.0, 100.0)?;
    cost("size quantile (emg, refined)", |n| {
        for i in 0..n {
            black_box(near_zero.quantile(black_box((i as f64 + 0.5) / n as f64)));
        }
    });
    cost("key text", |n| {
        for index in 0..n {
            names[0].render(black_box(index % 100_000), &mut key);
            black_box(&key);
        }
    });
    cost("record", |n| {
        let get = gen_ops.op(0);
        for seq in 0..n {
            let op = Op { seq, ..get };
            let arrival = Arrival { seq, due_ns: seq };
            recording.record(&record(&op, arrival));
        }
    });
    let generation = cost("arrival + operation + key text", |n| {
        for arrival in schedule.arrivals().take(n as usize) {
            let op = gen_ops.op(arrival.seq);
            names[usize::from(op.keyset)].render(op.key, &mut key);
            black_box(&key);
            black_box(&op);
        }
    });
    let total = cost("all with record", |n| {
        for arrival in schedule.arrivals().take(n as usize) {
            let op = gen_ops.op(arrival.seq);
            names[usize::from(op.keyset)].render(op.key, &mut key);
            black_box(&key);
            recording.record(&record(&op, arrival));
        }
    });
    black_box(recording.settle());
    println!("budget: generation 300, all 1000; used {generation:.0} and {total:.0}");
    Ok(())
}
