//! Ground truth: a server delays every answer by a known distribution and logs the actual delays; the client must
//! report the same.
//!
//! The server's timer is sometimes late, and its answers leave one after the other. Both are real delays, so each
//! reported percentile is compared with the same percentile of the fault log over exactly the same operations. The
//! log is compared with the distribution, so that the two cannot be wrong together. The path to the server and back
//! is the floor: the same percentile of the service time of the same server without faults.
//!
//! How long a stall delays an answer depends on when its request arrives, and a pause of the machine shifts all later
//! requests. So for stalls, the shares in the log may fail because of the machine, as the client's times may. But
//! each answer must wait either for its own delay or for the end of a stall; no pause can change that.

use serde_json::Value;

use crate::files::{self, TempDir};
use crate::machine::{TimeLimits, undisturbed};
use crate::program::{Serve, percentile_ns, run_phase, whole};
use crate::sh::{Result, ensure, none_of};

/// Offered load, operations per second.
const RATE: u32 = 1000;
/// Largest relative error of a percentile.
const TOLERANCE: f64 = 0.02;
/// Share of answers that may have crossed a percentile because the machine was late; at most a tenth of the answers
/// beyond it.
const LATE: f64 = 0.002;
/// Measurements of a distribution, as long as the machine stands still during the earlier ones.
const CHANCES: u32 = 3;
/// Relative width of a histogram step.
const STEP: f64 = 1.0 / 1024.0;
/// Quantiles to compare.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];
/// Name of the run's ownership marker.
const MARKER: &str = ".bucketload-run.json";
/// Largest distance, in standard errors, between a share in the log and the distribution.
const ERRORS: f64 = 4.0;

/// A distribution of delays: fault rules, and P(delay ≤ x seconds).
struct Law {
    name: &'static str,
    rules: &'static [&'static str],
    cdf: fn(f64) -> f64,
    /// Delays, in seconds, at which the log is compared with the distribution.
    at: &'static [f64],
    stalls: Option<Stalls>,
}

/// How stalls delay a single answer.
struct Stalls {
    delay_ns: u64,
    period_ns: u64,
}

impl Stalls {
    /// Number of answers that waited neither for their own delay nor for the end of a periodic stall.
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
        // Stalls take three of 40 seconds: arrivals in such a second wait for its end, uniformly up to 1 s. No
        // compared percentile lies at a jump of the distribution, so each has one value.
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

/// Distribution function of a log-normal distribution with this mean and coefficient of variation.
pub(crate) fn lognormal(x: f64, mean: f64, cv: f64) -> f64 {
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

/// Measures every distribution for 40 s and compares.
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

fn compare(dir: &TempDir, name: &str, law: &Law, floor: &Measured) -> Result<TimeLimits> {
    let measured = measure(dir, name, law.rules, 40)?;
    let answers = answers(&files::read(dir.file(&format!("{name}.csv")))?)?;
    let (held_back, seen) = (answers.len(), measured.operations);
    ensure(held_back as u64 == seen, || {
        format!("the server delayed {held_back} answers, the client saw {seen}")
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
        // A stall hits all arrivals of a second. The number of arrivals in three such seconds is Poisson, and no less
        // certain than a binomial one.
        let error = ERRORS * (expected * (1.0 - expected) / n).sqrt() + 0.002;
        if (share - expected).abs() > error {
            let line =
                format!("the log has a share of {share:.4} up to {x} s, expected {expected:.4}");
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
        // If the distribution has a gap, a few answers that were late because of the machine move the quantile across
        // it.
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
        (true, false) => Ok(TimeLimits::Missed(late.join("; "))),
        (true, true) => Ok(TimeLimits::Kept),
    }
}

/// An answer in the fault log, nanoseconds since the server started.
pub(crate) struct Answer {
    ready_ns: u64,
    due_ns: u64,
    released_ns: u64,
}

impl Answer {
    /// The intended delay, before timers were late, in seconds.
    pub(crate) fn drawn_s(&self) -> f64 {
        self.due_ns.saturating_sub(self.ready_ns) as f64 / 1e9
    }

    /// The actual delay, in seconds.
    pub(crate) fn held_s(&self) -> f64 {
        self.released_ns.saturating_sub(self.ready_ns) as f64 / 1e9
    }
}

/// The answers in a fault log, without those for the run's ownership marker, which is read before and after the
/// measurement.
pub(crate) fn answers(log: &str) -> Result<Vec<Answer>> {
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
                _ => Err(format!("not a line of a fault log: {line}")),
            }
        })
        .collect()
}

/// The client's report of its measured phase.
struct Measured {
    operations: u64,
    service: Value,
}

impl Measured {
    /// A percentile of the service time, in seconds.
    fn percentile(&self, q: f64) -> Result<f64> {
        percentile_ns(&self.service, q).map(|ns| ns / 1e9)
    }
}

fn measure(dir: &TempDir, name: &str, rules: &[&str], seconds: u32) -> Result<Measured> {
    let file = dir.file(&format!("{name}.toml"));
    // The whole phase is measured with nothing cut off, so client and server count the same operations.
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
    fn stalled_answers_wait_for_the_end_of_a_stall() {
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
