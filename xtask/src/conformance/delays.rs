//! Ground truth: a server that holds back every answer by a law that is known and writes down what
//! it really did; what the client reports has to be that.
//!
//! The server's timer is late now and then, and its answers leave one after the other: that is its own
//! doing and part of the truth, so each reported percentile is compared with the same percentile of
//! the fault log, over exactly the same operations. The log in turn is compared with the law, so
//! that the two cannot be wrong together. The way to the server and back is the floor: the same
//! percentile of the service time of the same server without faults.
//!
//! How long a stall holds an answer back follows from the instant of the request, and a machine that
//! stands still moves the instants of all requests after it. The shares of such a law are times, then,
//! like those that the client reports; what no machine can change is that each answer waits for its own
//! delay or for the end of a stall.

use serde_json::Value;

use crate::files::{self, TempDir};
use crate::machine::{Times, undisturbed};
use crate::own::{Serve, percentile_ns, run_phase, whole};
use crate::sh::{Result, ensure, none_of};

/// Offered load, operations per second.
const RATE: u32 = 1000;
/// Largest relative error of a percentile.
const TOLERANCE: f64 = 0.02;
/// Share of the answers that may have passed a percentile because the machine was late, at most a tenth of those
/// beyond it.
const LATE: f64 = 0.002;
/// Measurements of a law, where the machine stands still during the earlier ones.
const CHANCES: u32 = 3;
/// Relative width of a histogram step.
const STEP: f64 = 1.0 / 1024.0;
/// The percentiles that are compared.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];
/// Name of the run's ownership marker.
const MARKER: &str = ".bucketload-run.json";
/// Standard errors that a share in the log may lie from the law.
const ERRORS: f64 = 4.0;

/// A law of delays: its rules, and P(delay ≤ x seconds).
struct Law {
    name: &'static str,
    rules: &'static [&'static str],
    cdf: fn(f64) -> f64,
    /// Delays, seconds, at which the log is compared with the law.
    at: &'static [f64],
    stalls: Option<Stalls>,
}

/// What a law of stalls does to every single answer.
struct Stalls {
    delay_ns: u64,
    period_ns: u64,
}

impl Stalls {
    /// Answers that waited neither for their delay nor for the end of a stall, one period after another.
    fn wrong(&self, answers: &[Answer]) -> usize {
        let own = |answer: &&Answer| answer.due_ns == answer.ready_ns + self.delay_ns;
        let ends = || {
            answers
                .iter()
                .filter(|answer| !own(answer))
                .map(|answer| answer.due_ns)
        };
        let first = ends().min().unwrap_or(0);
        ends()
            .filter(|end| (end - first) % self.period_ns != 0)
            .count()
    }
}

const LAWS: [Law; 3] = [
    Law {
        name: "lognormal",
        rules: &["delay,dist=lognormal(mean=20ms,cv=1),op=get"],
        cdf: |x| lognormal(x, 0.020, 1.0),
        at: &[0.005, 0.010, 0.014, 0.020, 0.040, 0.080],
        stalls: None,
    },
    Law {
        name: "bimodal",
        rules: &["delay,dist=bimodal(low=5ms,high=50ms,share=0.08,cv=0.1),op=get"],
        cdf: |x| 0.92 * lognormal(x, 0.005, 0.1) + 0.08 * lognormal(x, 0.050, 0.1),
        at: &[0.0045, 0.005, 0.0055, 0.020, 0.045, 0.055],
        stalls: None,
    },
    Law {
        // Three seconds of 40: arrivals of such a second wait for its end, uniformly up to 1 s. None
        // of the percentiles lies where the law jumps, so that each has one value.
        name: "stalls",
        rules: &["delay,ms=5,op=get", "stall,at=6s,for=1s,period=12s,op=get"],
        cdf: |x| 0.925 + 0.075 * x.min(1.0),
        at: &[0.25, 0.5, 0.75],
        stalls: Some(Stalls {
            delay_ns: 5_000_000,
            period_ns: 12_000_000_000,
        }),
    },
];

/// Distribution function of a log-normal law with this mean and coefficient of variation.
fn lognormal(x: f64, mean: f64, cv: f64) -> f64 {
    let variance = (1.0 + cv * cv).ln();
    normal((x.ln() - mean.ln() + variance / 2.0) / variance.sqrt())
}

/// Φ(z) to 7 digits (Abramowitz and Stegun 7.1.26 for the error function).
fn normal(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let series = [
        1.061_405_429,
        -1.453_152_027,
        1.421_413_741,
        -0.284_496_736,
        0.254_829_592,
    ];
    let erf = 1.0 - series.iter().fold(0.0, |sum, a| (sum + a) * t) * (-x * x).exp();
    if z < 0.0 {
        (1.0 - erf) / 2.0
    } else {
        (1.0 + erf) / 2.0
    }
}

/// Measures every law for 40 s and compares.
pub(crate) fn all() -> Result {
    let dir = TempDir::new("delays")?;
    let floor = measure(&dir, "floor", &[], 20)?;
    let mut failures = Vec::new();
    for law in &LAWS {
        let mut chance = 0;
        let what = format!("delays, {}", law.name);
        let outcome = undisturbed(&what, CHANCES, || {
            chance += 1;
            let name = format!("{}-{chance}", law.name);
            compare(&dir, &name, law, &floor)
        });
        if let Err(what) = outcome {
            failures.push(format!("{}: {what}", law.name));
        }
    }
    none_of(&failures)
}

fn compare(dir: &TempDir, name: &str, law: &Law, floor: &Measured) -> Result<Times> {
    let measured = measure(dir, name, law.rules, 40)?;
    let answers = answers(&files::read(dir.file(&format!("{name}.csv")))?)?;
    let (held_back, seen) = (answers.len(), measured.operations);
    ensure(held_back as u64 == seen, || {
        format!("the server held back {held_back} answers, the client saw {seen}")
    })?;
    let sorted = |seconds: fn(&Answer) -> f64| {
        let mut sorted: Vec<f64> = answers.iter().map(seconds).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
    };
    let (drawn, held) = (sorted(Answer::drawn_s), sorted(Answer::held_s));
    let n = held.len() as f64;
    let (mut wrong, mut late) = (Vec::new(), Vec::new());
    if let Some(stalls) = &law.stalls
        && let count @ 1.. = stalls.wrong(&answers)
    {
        wrong.push(format!(
            "{count} answers waited neither for their delay nor for the end of a stall"
        ));
    }
    for &x in law.at {
        let share = drawn.partition_point(|&h| h <= x) as f64 / n;
        let expected = (law.cdf)(x);
        // Stalls come to all arrivals of a second at once: what varies is the Poisson number of
        // arrivals in three such seconds, which is no less certain than a binomial one.
        let error = ERRORS * (expected * (1.0 - expected) / n).sqrt() + 0.002;
        if (share - expected).abs() > error {
            let line = format!("the log has {share:.4} up to {x} s, the law {expected:.4}");
            match law.stalls {
                Some(_) => late.push(line),
                None => wrong.push(line),
            }
        }
    }
    let held_at = |q: f64| held[((q * n - 1e-9).ceil() as usize).clamp(1, held.len()) - 1];
    for q in QUANTILES {
        let truth = held_at(q);
        let got = measured.percentile(q)?;
        // Where a law has a gap, a few answers that the machine was late for move the quantile across it.
        let beyond = held_at(q + LATE.min((1.0 - q) / 10.0)) - truth;
        let allowed = beyond + truth * TOLERANCE.max(STEP) + floor.percentile(q)?;
        let line = format!(
            "p{:<5} truth {:9.3} ms, service {:9.3} ms, difference {:+.3} ms of {:.3} ms allowed",
            q * 100.0,
            truth * 1e3,
            got * 1e3,
            (got - truth) * 1e3,
            allowed * 1e3
        );
        eprintln!("{:10} {line}", law.name);
        // The client cannot see an answer before it left, however busy the machine is.
        if got < truth * (1.0 - STEP) {
            wrong.push(line);
        } else if got - truth > allowed {
            late.push(line);
        }
    }
    match (wrong.is_empty(), late.is_empty()) {
        (false, _) => Err(wrong.join("; ")),
        (true, false) => Ok(Times::Missed(late.join("; "))),
        (true, true) => Ok(Times::Kept),
    }
}

/// An answer in the fault log, nanoseconds since the server started.
struct Answer {
    ready_ns: u64,
    due_ns: u64,
    released_ns: u64,
}

impl Answer {
    /// What the law gave, before timers were late, seconds.
    fn drawn_s(&self) -> f64 {
        self.due_ns.saturating_sub(self.ready_ns) as f64 / 1e9
    }

    /// How long it was held back, seconds.
    fn held_s(&self) -> f64 {
        self.released_ns.saturating_sub(self.ready_ns) as f64 / 1e9
    }
}

/// The lines of a fault log, without those of the run's ownership marker, which is read before and
/// after the measurement.
fn answers(log: &str) -> Result<Vec<Answer>> {
    log.lines()
        .skip(1)
        .filter(|line| !line.ends_with(MARKER))
        .map(|line| {
            let mut fields = line.split(',').skip(1).map(|field| field.parse::<u64>());
            match (fields.next(), fields.next(), fields.next()) {
                (Some(Ok(ready_ns)), Some(Ok(due_ns)), Some(Ok(released_ns))) => Ok(Answer {
                    ready_ns,
                    due_ns,
                    released_ns,
                }),
                _ => Err(format!("no line of a fault log: {line}")),
            }
        })
        .collect()
}

/// What the client reported of its measured phase.
struct Measured {
    operations: u64,
    service: Value,
}

impl Measured {
    /// A percentile of the service time, seconds.
    fn percentile(&self, q: f64) -> Result<f64> {
        percentile_ns(&self.service, q).map(|ns| ns / 1e9)
    }
}

fn measure(dir: &TempDir, name: &str, rules: &[&str], seconds: u32) -> Result<Measured> {
    let file = dir.file(&format!("{name}.toml"));
    // The whole phase is measured: nothing is cut off, so that client and server speak of the same
    // operations.
    let workload = format!(
        "name = \"{name}\"\ndescription = \"reads that are held back\"\n\
         [keysets.objects]\ncount = 100\nsize = \"1KiB\"\n\
         [phases.run]\nduration = \"{seconds}s\"\nrate = \"{RATE}/s\"\narrival = \"poisson\"\n\
         max-in-flight = 4000\nsteady-state = false\ndrain = \"10s\"\nmix = {{ get = 100 }}\n"
    );
    files::write(&file, workload)?;
    let log = dir.file(&format!("{name}.csv"));
    let mut args = "--store memory".to_owned();
    for rule in rules {
        args += &format!(" --fault '{rule}'");
    }
    if !rules.is_empty() {
        args += &format!(" --fault-log {log}");
    }
    let server = Serve::start(&args)?;
    let out = dir.file(&format!("{name}-run"));
    let result = server.measured(&format!(
        "run {file} --target s3://delays/t --create-bucket --no-calibration --out {out}"
    ))?;
    let phase = run_phase(&result)?;
    Ok(Measured {
        operations: whole(&phase["totals"]["ok"]),
        service: phase["classes"][0]["service"].clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_a_stall_wait_for_its_end_and_no_other_instant() {
        let stalls = Stalls {
            delay_ns: 5,
            period_ns: 100,
        };
        let answer = |ready_ns, due_ns| Answer {
            ready_ns,
            due_ns,
            released_ns: due_ns,
        };
        let mut answers = vec![
            answer(1, 6),
            answer(40, 61),
            answer(50, 61),
            answer(160, 161),
            answer(170, 175),
        ];
        assert_eq!(stalls.wrong(&answers), 0);
        answers.extend([answer(180, 186), answer(290, 294)]);
        assert_eq!(stalls.wrong(&answers), 2);
        assert_eq!(stalls.wrong(&[]), 0);
    }
}
