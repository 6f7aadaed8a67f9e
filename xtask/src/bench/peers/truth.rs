//! What each tool reports of a server whose delays are known.
//!
//! *Delays*: the server draws a delay for each answer. Its log says what it drew and kept for the very requests of the
//! tool, so the truth has no sampling error. Ours is compared with the law as well, so that the log cannot be wrong
//! with it.
//!
//! *Stall*: the server stops answering for one second in each ten. The truth is what users who arrive at a steady rate
//! see, whoever measures it: one who arrives `t` seconds into a stall waits for its end, `1 - t`. A tool that sends
//! nothing while it waits does not see most of them.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::tools::{Pace, Paced, Reported};
use super::{Call, Peer};
use crate::conformance::delays::{Answer, answers, lognormal};
use crate::files::{self, TempDir};
use crate::machine::{TimeLimits, undisturbed};
use crate::process::Process;
use crate::program::{Serve, percentile_ns, quoted, run_phase, whole};
use crate::sh::{Result, cmd, ensure};

/// Requests per second.
const RATE: u32 = 500;
/// Delay of every answer beside the stalls, in seconds.
const PLAIN_S: f64 = 0.020;
/// Length and period of the stalls, and when the first begins after the first request, in seconds.
const STALL_S: f64 = 1.0;
const PERIOD_S: f64 = 10.0;
const FIRST_S: f64 = 4.0;
/// Mean and coefficient of variation of the drawn delays.
const MEAN_S: f64 = 0.020;
const CV: f64 = 1.0;
/// Largest relative error of a percentile of ours.
const TOLERANCE: f64 = 0.02;
/// Measurements of ours, as long as the machine stands still during the earlier ones.
const CHANCES: u32 = 3;
/// Largest distance of the log from the law, in standard errors.
const ERRORS: f64 = 4.0;

/// A server with known delays.
struct Case {
    name: &'static str,
    title: &'static str,
    faults: &'static str,
    is_stall: bool,
}

const CASES: [Case; 2] = [
    Case {
        name: "delays",
        title: "Every answer is delayed by a log-normal time (mean 20 ms, coefficient of variation 1)",
        faults: "--fault delay,dist=lognormal(mean=20ms,cv=1),op=get",
        is_stall: false,
    },
    Case {
        name: "stall",
        title: "Every answer is delayed by 20 ms, and the server stops for 1 s in each 10 s",
        faults: "--fault delay,ms=20,op=get --fault stall,at=4s,for=1s,period=10s,op=get",
        is_stall: true,
    },
];

/// The percentiles of a table, and the largest.
type Figures = [Option<f64>; 5];
const QUANTILES: [f64; 4] = [0.5, 0.95, 0.99, 0.999];
const NAMES: [&str; 5] = ["p50", "p95", "p99", "p99.9", "max"];

/// Measures both cases with every tool. Returns the tables, and adds to `missed` what is wrong with ours.
pub(super) fn table(peers: &[Peer], seconds: u32, missed: &mut Vec<String>) -> Result<String> {
    let mut text = String::new();
    for case in &CASES {
        let offered = RATE * seconds;
        let _ = write!(
            text,
            "{}. {RATE} requests per second for {seconds} s.\n\n| tool | answers | p50 | p95 | p99 | p99.9 | max |\n\
             |---|--:|--:|--:|--:|--:|--:|\n",
            case.title
        );
        let truth = case.by_law(seconds);
        let _ = writeln!(text, "| **truth** | {offered} |{}", shown(truth, truth));
        let mut ours = None;
        let judged = undisturbed(&format!("truth, {}", case.name), CHANCES, || {
            let (reported, truth) = case.ours(seconds)?;
            let outcome = judge(case, &reported, truth);
            ours = Some((reported, truth));
            Ok(outcome)
        });
        missed.extend(judged.err());
        if let Some((reported, truth)) = &ours {
            text += &row("Bucketload", reported, *truth);
        }
        for peer in peers {
            let Call::Known(tool, program) = &peer.call else {
                continue;
            };
            for pace in tool.paces {
                let name = format!("{}, {}", tool.name, pace.how);
                match case.theirs(program, pace, seconds) {
                    Ok((reported, truth)) => text += &row(&name, &reported, truth),
                    Err(why) => {
                        eprintln!("FAILED: {name}, {}: {why}", case.name);
                        let _ = writeln!(text, "| {name} | failed | | | | | |");
                    }
                }
            }
        }
        text.push('\n');
    }
    Ok(text)
}

/// Compares ours with the truth.
fn judge(case: &Case, reported: &Reported, truth: Figures) -> TimeLimits {
    let missed: Vec<String> = (NAMES.iter().zip(figures(reported)).zip(truth))
        .filter_map(|((name, got), truth)| {
            let (got, truth) = (got?, truth?);
            let off = got / truth - 1.0;
            (off.abs() > TOLERANCE).then(|| {
                format!(
                    "{}: {name} is {got:.4} s, the truth {truth:.4} s",
                    case.name
                )
            })
        })
        .collect();
    match missed.is_empty() {
        true => TimeLimits::Kept,
        false => TimeLimits::Missed(missed.join("; ")),
    }
}

fn figures(reported: &Reported) -> Figures {
    [
        reported.p50,
        reported.p95,
        reported.p99,
        reported.p999,
        reported.max,
    ]
}

fn row(name: &str, reported: &Reported, truth: Figures) -> String {
    let answers = reported
        .answers
        .map_or("–".to_owned(), |answers| answers.to_string());
    let line = format!(
        "| {name} | {answers} |{}\n",
        shown(figures(reported), truth)
    );
    eprint!("{line}");
    line
}

/// Formats figures and how far they are from the truth.
fn shown(figures: Figures, truth: Figures) -> String {
    let mut text = String::new();
    for (figure, truth) in figures.into_iter().zip(truth) {
        let _ = match (figure, truth) {
            (None, _) => write!(text, " – |"),
            (Some(figure), Some(truth)) if figure != truth => {
                let off = (figure / truth - 1.0) * 100.0;
                write!(text, " {:.1} ms ({off:+.1} %) |", figure * 1e3)
            }
            (Some(figure), _) => write!(text, " {:.1} ms |", figure * 1e3),
        };
    }
    text
}

impl Case {
    /// The truth by the law: for stalls, of every arrival of the schedule; for delays, of the distribution, which has
    /// no largest.
    fn by_law(&self, seconds: u32) -> Figures {
        match self.is_stall {
            true => of_sorted(&stalled(seconds)),
            false => {
                let [a, b, c, d] = QUANTILES.map(|q| Some(inverse(q)));
                [a, b, c, d, None]
            }
        }
    }

    /// The truth about the requests that a tool has sent.
    fn truth(&self, seconds: u32, log: &str) -> Result<Figures> {
        match self.is_stall {
            true => Ok(self.by_law(seconds)),
            false => {
                let mut held: Vec<f64> = answers(log)?.iter().map(Answer::held_s).collect();
                held.sort_unstable_by(f64::total_cmp);
                ensure(!held.is_empty(), || "the server delayed no answer")?;
                Ok(of_sorted(&held))
            }
        }
    }

    fn serve(&self, log: &str) -> Result<Serve> {
        Serve::start(&format!(
            "--store null --null-size 4KiB --threads 1 --no-signature-check {} --fault-log {log}",
            quoted_rules(self.faults)
        ))
    }

    fn ours(&self, seconds: u32) -> Result<(Reported, Figures)> {
        let dir = TempDir::new("bench-truth")?;
        let (file, log) = (dir.file("workload.toml"), dir.file("log.csv"));
        files::write(
            &file,
            format!(
                "name = \"truth\"\ndescription = \"reads at a steady rate\"\n[keysets.objects]\ncount = 100\n\
                 size = \"4KiB\"\n[phases.run]\nduration = \"{seconds}s\"\nrate = \"{RATE}/s\"\n\
                 arrival = \"constant\"\nmax-in-flight = 4000\nsteady-state = false\ndrain = \"10s\"\n\
                 mix = {{ get = 100 }}\n"
            ),
        )?;
        let server = self.serve(&log)?;
        let result = server.measured(&format!(
            "run {file} --target s3://truth/t --create-bucket --no-calibration --out {}",
            dir.file("run")
        ))?;
        let phase = run_phase(&result)?;
        let response = &phase["classes"][0]["response"];
        let at = |q| percentile_ns(response, q).map(|ns| ns / 1e9);
        let (answers, failed) = (whole(&phase["totals"]["ok"]), &phase["totals"]["failed"]);
        ensure(*failed == 0 && answers == u64::from(RATE * seconds), || {
            format!("{answers} answers, {failed} failed: {}", phase["totals"])
        })?;
        drop(server);
        let text = files::read(&log)?;
        if !self.is_stall {
            follows_law(&text)?;
        }
        let reported = Reported {
            answers: Some(answers),
            p50: Some(at(0.5)?),
            p95: Some(at(0.95)?),
            p99: Some(at(0.99)?),
            p999: Some(at(0.999)?),
            max: response["max_ns"].as_f64().map(|ns| ns / 1e9),
        };
        Ok((reported, self.truth(seconds, &text)?))
    }

    fn theirs(&self, program: &Path, pace: &Pace, seconds: u32) -> Result<(Reported, Figures)> {
        let dir = TempDir::new("bench-truth")?;
        let log = dir.file("log.csv");
        let server = self.serve(&log)?;
        let place = dir.file("");
        let (address, access_key, secret_key) = server.endpoint();
        let paced = Paced {
            address,
            access_key,
            secret_key,
            rate: RATE,
            seconds,
            closed: (f64::from(RATE) * PLAIN_S) as u32,
            dir: place.trim_end_matches('/'),
        };
        files::write(
            dir.file("target"),
            format!("GET http://{address}/bench/k\n"),
        )?;
        let line = (pace.line)(&quoted(program)?, &paced);
        let mut command = cmd("sh", ["-c", &line]);
        let process = Process::recorded(command.current_dir(dir.path()))?;
        let outcome = process.end(Duration::from_secs(u64::from(seconds) * 3 + 60))?;
        outcome.expect_code(0)?;
        let reported = (pace.read)(&outcome.stdout)
            .ok_or_else(|| format!("no report that can be read: {}", outcome.said()))?;
        drop(server);
        Ok((reported, self.truth(seconds, &files::read(&log)?)?))
    }
}

/// Rules in quotes, because brackets mean something to a shell.
fn quoted_rules(faults: &str) -> String {
    let words = faults.split(' ').map(|word| format!("'{word}'"));
    words.collect::<Vec<_>>().join(" ")
}

/// The response time of every arrival of the schedule, sorted, in seconds.
fn stalled(seconds: u32) -> Vec<f64> {
    let mut times: Vec<f64> = (0..RATE * seconds)
        .map(|arrival| {
            let ready = f64::from(arrival) / f64::from(RATE) + PLAIN_S;
            let into = (ready - FIRST_S).rem_euclid(PERIOD_S);
            // An answer that would leave during a stall leaves at its end.
            PLAIN_S + if into < STALL_S { STALL_S - into } else { 0.0 }
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times
}

/// The percentiles of sorted times, by the nearest rank, and the largest.
fn of_sorted(times: &[f64]) -> Figures {
    let at = |q: f64| {
        let rank = (q * times.len() as f64 - 1e-9).ceil() as usize;
        times.get(rank.max(1) - 1).copied()
    };
    let [a, b, c, d] = QUANTILES.map(at);
    [a, b, c, d, times.last().copied()]
}

/// The delay that a share `q` of the answers does not exceed, by bisection.
fn inverse(q: f64) -> f64 {
    let (mut low, mut high) = (0.0, 100.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        match lognormal(middle, MEAN_S, CV) < q {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// Fails if the delays in the log are not drawn from the law.
fn follows_law(log: &str) -> Result {
    let mut held: Vec<f64> = answers(log)?.iter().map(Answer::drawn_s).collect();
    held.sort_unstable_by(f64::total_cmp);
    let n = held.len() as f64;
    for q in QUANTILES {
        let share = held.partition_point(|&x| x <= inverse(q)) as f64 / n;
        let error = ERRORS * (q * (1.0 - q) / n).sqrt();
        ensure((share - q).abs() <= error, || {
            format!(
                "the server's log has a share of {share:.4} below the law's p{}",
                q * 100.0
            )
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_arrivals_waits_uniformly_up_to_the_stall() {
        let [p50, p95, p99, p999, max] = of_sorted(&stalled(10)).map(Option::unwrap);
        assert_eq!(p50, PLAIN_S);
        for (got, truth) in [(p95, 0.52), (p99, 0.92), (p999, 1.01), (max, 1.02)] {
            assert!((got - truth).abs() < 0.005, "{got} is not {truth}");
        }
        let waiting = stalled(10).iter().filter(|&&time| time > PLAIN_S).count();
        assert!((498..=502).contains(&waiting), "{waiting}");
    }

    #[test]
    fn the_inverse_of_the_law_meets_it() {
        // The median of a log-normal distribution is its mean over the root of 1 + cv².
        assert!((inverse(0.5) / (MEAN_S / 2f64.sqrt()) - 1.0).abs() < 1e-4);
        assert!((lognormal(inverse(0.99), MEAN_S, CV) - 0.99).abs() < 1e-9);
    }

    #[test]
    fn a_percentile_of_ours_that_is_off_by_more_than_two_per_cent_is_missed() {
        let truth = [Some(0.02), None, Some(0.92), None, Some(1.0)];
        let reported = |p99| Reported {
            answers: None,
            p50: Some(0.0203),
            p95: Some(0.5),
            p99: Some(p99),
            p999: Some(1.0),
            max: Some(1.01),
        };
        let case = &CASES[1];
        assert!(matches!(
            judge(case, &reported(0.93), truth),
            TimeLimits::Kept
        ));
        assert!(matches!(
            judge(case, &reported(0.95), truth),
            TimeLimits::Missed(_)
        ));
        assert!(matches!(
            judge(case, &reported(0.02), truth),
            TimeLimits::Missed(_)
        ));
    }
}
