//! The rules of docs/spec/statistics.md section 2, one function each. A rule returns `None` if it finds no
//! problem.

use super::{Backlog, Completeness, Figure, Figures, Reason, Word};
use crate::sink::Calibration;
use crate::stats::steady::{MIN_BINS, State};

/// V1: minimum share of offered operations that must be sent, over the window and in any slice.
const SENT_WINDOW: f64 = 0.99;
const SENT_SLICE: f64 = 0.95;
/// V1: number of unsent operations attributed to the edges of a slice.
const EDGE_OPS: u64 = 2;
/// V2: maximum p99 of lateness and build time: the larger of this and this share of the median service time.
const LATE_NS: u64 = 1_000_000;
const LATE_SHARE: f64 = 0.05;
/// V3: maximum share of the p99 response time that may be waiting in the client.
const WAIT_SHARE: f64 = 0.10;
/// V4: maximum use of the busiest load thread, of all cores, and of the line rate.
const THREAD_SHARE: f64 = 0.85;
const MACHINE_SHARE: f64 = 0.80;
const NIC_SHARE: f64 = 0.85;
/// V5: minimum headroom, and maximum share of the p99 response time measured against the null target.
const HEADROOM: f64 = 1.5;
pub(super) const NULL_P99_SHARE: f64 = 0.20;
/// V6: step of the wall clock. Slewing (0.5 ms/s) and preemption between reading two clocks stay below it.
const WALL_STEP_NS: u64 = 50_000_000;
/// V7: maximum share of failed operations, for comparison and for exploration.
const FAILED_COMPARE: f64 = 0.001;
const FAILED_EXPLORE: f64 = 0.01;
/// Maximum share of operations cut off by the end of the run.
const UNFINISHED_SHARE: f64 = 0.001;
/// Maximum share of retries and of stolen CPU time.
const RETRY_SHARE: f64 = 0.001;
const STEAL_SHARE: f64 = 0.05;
/// Backlog: significance of the slope, and growth over the first quarter.
const BACKLOG_P: f64 = 0.01;
const BACKLOG_GROWTH: f64 = 2.0;

/// Every rule that does not depend on another rule's outcome.
pub(super) const ALL: [fn(&Figures) -> Option<Reason>; 14] = [
    incomplete,
    conservation,
    schedule,
    generator,
    client_tail,
    saturation,
    null_target,
    steady,
    wall_clock,
    failures,
    unfinished,
    semi_open,
    retries,
    steal,
];

fn figure(name: &str, value: f64, unit: &str) -> Figure {
    Figure {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

fn ms(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

fn reason(
    rule: &str,
    word: Word,
    condition: &str,
    measured: String,
    advice: &str,
    figures: Vec<Figure>,
) -> Option<Reason> {
    Some(Reason {
        rule: rule.to_owned(),
        word,
        condition: condition.to_owned(),
        measured,
        advice: advice.to_owned(),
        figures,
    })
}

fn incomplete(f: &Figures) -> Option<Reason> {
    let (measured, advice) = match f.completeness {
        Completeness::Complete if f.ok > 0 => return None,
        Completeness::Complete => (
            format!("none of {} operations succeeded", f.failed),
            "Read the errors that are listed; nothing was measured.",
        ),
        Completeness::Interrupted => (
            format!("interrupted after {:.1} s of measurement", f.window_s),
            "Run it again without interrupting it.",
        ),
        Completeness::Aborted => (
            format!(
                "aborted by an error after {:.1} s of measurement",
                f.window_s
            ),
            "Read the warnings and errors that are listed.",
        ),
        Completeness::Killed => (
            format!(
                "no end was recorded; the last interval ends after {:.1} s of measurement",
                f.window_s
            ),
            "The process was killed or the disk was full. Objects may be left in the target.",
        ),
    };
    reason(
        "incomplete",
        Word::Incomplete,
        "the run ends by its own limits and some operations succeed",
        measured,
        advice,
        vec![
            figure("ok", f.ok as f64, "ops"),
            figure("window", f.window_s, "s"),
        ],
    )
}

fn conservation(f: &Figures) -> Option<Reason> {
    if f.completeness != Completeness::Complete || f.issued_in_phase == f.ended_in_phase {
        return None;
    }
    reason(
        "conservation",
        Word::Incomplete,
        "every operation handed to a worker is recorded exactly once",
        format!(
            "{} operations were handed to workers, {} are recorded",
            f.issued_in_phase, f.ended_in_phase
        ),
        "Intervals are missing from the run directory, or this is a defect of the tool: report it.",
        vec![
            figure("issued", f.issued_in_phase as f64, "ops"),
            figure("recorded", f.ended_in_phase as f64, "ops"),
        ],
    )
}

fn schedule(f: &Figures) -> Option<Reason> {
    if !f.open_loop || f.offered == 0 {
        return None;
    }
    let window = 1.0 - f.unsent as f64 / f.offered as f64;
    let window_bad = f.unsent > EDGE_OPS && window < SENT_WINDOW;
    let slice = f
        .worst_slice
        .filter(|s| s.unsent > EDGE_OPS && s.ratio() < SENT_SLICE);
    if !window_bad && slice.is_none() {
        return None;
    }
    let mut figures = vec![figure("sent/offered", window, "1")];
    let mut measured = format!("{} of the offered operations were sent", percent(window));
    if let Some(s) = slice {
        figures.push(figure("sent/offered in the worst 10 s", s.ratio(), "1"));
        measured += &format!(
            "; {} in the 10 s starting at {:.0} s",
            percent(s.ratio()),
            s.start_ns as f64 / 1e9
        );
    }
    let advice = if f.capped > 0 {
        "The in-flight cap was reached: raise it, or lower the rate to what the store sustains."
    } else {
        "Add load threads or client machines, or lower the rate."
    };
    reason(
        "V1",
        Word::ClientBound,
        "at least 99 % of the offered operations are sent, and 95 % in any 10 s",
        measured,
        advice,
        figures,
    )
}

fn generator(f: &Figures) -> Option<Reason> {
    let limit = LATE_NS.max((LATE_SHARE * f.service_p50_ns as f64) as u64);
    if f.late_p99_ns <= limit {
        return None;
    }
    reason(
        "V2",
        Word::ClientBound,
        "p99 of timer lateness and build time is at most 1 ms or 5 % of the median service time",
        format!("p99 {}, limit {}", ms(f.late_p99_ns), ms(limit)),
        "Give the client idle cores (other processes compete with it), add load threads, or lower the rate.",
        vec![
            figure("late p99", f.late_p99_ns as f64, "ns"),
            figure("limit", limit as f64, "ns"),
        ],
    )
}

fn client_tail(f: &Figures) -> Option<Reason> {
    let wait = f.response_p99_ns.saturating_sub(f.service_p99_ns);
    if f.capped == 0 || wait as f64 <= WAIT_SHARE * f.response_p99_ns as f64 {
        return None;
    }
    reason(
        "V3",
        Word::ClientBound,
        "p99 response exceeds p99 service by at most 10 % unless the store alone causes the wait",
        format!(
            "p99 response {}, service {}; {} arrivals waited for the in-flight cap of {}",
            ms(f.response_p99_ns),
            ms(f.service_p99_ns),
            f.capped,
            f.max_in_flight
        ),
        "Raise the in-flight cap, or lower the rate.",
        vec![
            figure("response p99", f.response_p99_ns as f64, "ns"),
            figure("service p99", f.service_p99_ns as f64, "ns"),
            figure("capped", f.capped as f64, "ops"),
        ],
    )
}

fn saturation(f: &Figures) -> Option<Reason> {
    let checks = [
        (
            "busiest load thread",
            f.busiest_thread,
            THREAD_SHARE,
            "of one core",
            "Add load threads (--threads) or client machines, or lower the rate.",
        ),
        (
            "program of an operation",
            f.program,
            THREAD_SHARE,
            "of one core",
            "The program is the limit, not the store: measure the store by another engine.",
        ),
        (
            "machine",
            f.machine_busy,
            MACHINE_SHARE,
            "of all cores",
            "Run the store on another machine, stop other processes, or lower the rate.",
        ),
        (
            "network interface",
            f.nic,
            NIC_SHARE,
            "of the line rate",
            "Use a faster interface or several client machines; this is the network's limit.",
        ),
    ];
    let over: Vec<_> = checks
        .iter()
        .filter_map(|&(name, share, limit, of, advice)| {
            share
                .filter(|&s| s > limit)
                .map(|s| (name, s, limit, of, advice))
        })
        .collect();
    let first = over.first()?;
    reason(
        "V4",
        Word::ClientBound,
        "the busiest load thread (or the program of an operation) uses at most 85 % of a core, the machine 80 % of its cores, the network 85 % of its line rate",
        over.iter()
            .map(|(name, share, limit, of, _)| {
                format!(
                    "{name}: {} {of}, limit {}",
                    percent(*share),
                    percent(*limit)
                )
            })
            .collect::<Vec<_>>()
            .join("; "),
        first.4,
        over.iter()
            .map(|(name, share, ..)| figure(name, *share, "1"))
            .collect(),
    )
}

/// Rate against the null target divided by the larger of measured and offered rate.
pub(super) fn null_ratio(f: &Figures) -> Option<f64> {
    let calibration = f.calibration?;
    let rate = f.ok_per_s.max(calibration.offered_ops_per_s);
    (rate > 0.0).then(|| calibration.null_ops_per_s / rate)
}

/// 99th percentile of the response time against the null target, divided by the measured one.
pub(super) fn null_share(f: &Figures) -> Option<f64> {
    let null = f.calibration?.null_p99_ns as f64;
    Some(match f.response_p99_ns {
        0 => 0.0,
        measured => null / measured as f64,
    })
}

/// What the null target showed, as far as it exceeds its limits.
fn null_measured(f: &Figures, ratio: f64, p99_share: f64) -> String {
    let slow = (ratio < HEADROOM)
        .then(|| format!("against the null target the client drove {ratio:.2} times the rate"));
    let null_ns = f
        .calibration
        .map_or(0, |calibration| calibration.null_p99_ns);
    let late = (p99_share > NULL_P99_SHARE).then(|| {
        let (null, measured) = (ms(null_ns), ms(f.response_p99_ns));
        format!("the null target's p99 is {null} against {measured} measured")
    });
    slow.into_iter().chain(late).collect::<Vec<_>>().join("; ")
}

fn null_target(f: &Figures) -> Option<Reason> {
    let ratio = null_ratio(f)?;
    let p99_share = null_share(f)?;
    if ratio >= HEADROOM && p99_share <= NULL_P99_SHARE {
        return None;
    }
    reason(
        "V5",
        Word::ClientBound,
        "the client drives a null target at 1.5 times the rate or more, with a p99 of at most 20 % of the measured one",
        null_measured(f, ratio, p99_share),
        "The client is as slow as the store: add load threads, use a faster client, or lower the rate.",
        vec![
            figure("headroom", ratio, "1"),
            figure("null p99 / measured p99", p99_share, "1"),
        ],
    )
}

pub(super) fn backlog(f: &Figures) -> Option<Reason> {
    let b = f.backlog.filter(|b| f.open_loop && grows(b))?;
    reason(
        "backlog",
        Word::Overloaded,
        "the operations in flight do not keep growing",
        format!(
            "from {:.1} to {:.1} operations in flight, {:+.2} per second (p = {:.2e})",
            b.first_quarter, b.end, b.slope_per_s, b.p_value
        ),
        "The store is saturated at this rate: its throughput is the answer; lower the rate to measure latencies.",
        vec![
            figure("in flight, first quarter", b.first_quarter, "ops"),
            figure("in flight, end", b.end, "ops"),
            figure("slope", b.slope_per_s, "ops/s"),
        ],
    )
}

/// Whether the backlog keeps growing.
fn grows(b: &Backlog) -> bool {
    b.slope_per_s > 0.0
        && b.p_value < BACKLOG_P
        && b.end > BACKLOG_GROWTH * b.first_quarter
        // Growth by less than one operation is not a backlog.
        && b.end - b.first_quarter >= 1.0
}

pub(super) fn unstable(f: &Figures) -> Option<Reason> {
    let b = f.jobs.filter(grows)?;
    reason(
        "unstable",
        Word::Overloaded,
        "the number of active jobs does not keep growing",
        format!(
            "from {:.1} to {:.1} active jobs, {:+.2} per minute (p = {:.2e})",
            b.first_quarter,
            b.end,
            60.0 * b.slope_per_s,
            b.p_value
        ),
        "Jobs arrive faster than they end: their makespans depend on the length of the run; lower the rate of jobs.",
        vec![
            figure("jobs, first quarter", b.first_quarter, "jobs"),
            figure("jobs, end", b.end, "jobs"),
            figure("slope", b.slope_per_s, "jobs/s"),
        ],
    )
}

fn steady(f: &Figures) -> Option<Reason> {
    let unsteady: Vec<_> = f
        .steadiness
        .iter()
        .filter(|(_, a)| a.state == State::NonStationary)
        .collect();
    if unsteady.is_empty() {
        return None;
    }
    let mut figures = Vec::new();
    let measured = unsteady
        .iter()
        .map(|(name, a)| {
            let Some(c) = a.checks else {
                return name.clone();
            };
            figures.push(figure(&format!("{name}: trend"), c.trend, "1"));
            figures.push(figure(&format!("{name}: lag-1"), c.lag1, "1"));
            format!(
                "{name}: trend {:+.1} % (p = {:.2e}), halves {:+.1} %, lag-1 correlation {:.2}",
                c.trend * 100.0,
                c.trend_p,
                c.halves * 100.0,
                c.lag1
            )
        })
        .collect::<Vec<_>>()
        .join("; ");
    reason(
        "steady",
        Word::Unsteady,
        "after the warm-up there is no trend above 5 %, the halves agree within 5 %, and seconds are not correlated",
        measured,
        "Run longer (double the duration), and look at the time series for compaction, cache fill or other tenants.",
        figures,
    )
}

fn wall_clock(f: &Figures) -> Option<Reason> {
    if f.wall_step_ns <= WALL_STEP_NS {
        return None;
    }
    reason(
        "V6",
        Word::Degraded,
        "the wall clock is not set during the run",
        format!("it jumped by {}", ms(f.wall_step_ns)),
        "Latencies are unaffected, but timestamps and request signatures are not. Let time synchronisation settle first.",
        vec![figure("step", f.wall_step_ns as f64, "ns")],
    )
}

fn failures(f: &Figures) -> Option<Reason> {
    let ended = f.ok + f.failed;
    if ended == 0 || f.failed == 0 {
        return None;
    }
    let share = f.failed as f64 / ended as f64;
    if share <= FAILED_COMPARE {
        return None;
    }
    let advice = if f.mostly_failed() {
        "The figures describe failures, not the store: remove the cause of the errors that are listed."
    } else if share > FAILED_EXPLORE {
        "Percentiles of the successful operations do not describe this store: remove the cause of the errors that are listed."
    } else {
        "Good for exploration, not for comparison: remove the cause of the errors that are listed."
    };
    reason(
        "V7",
        Word::Degraded,
        "at most 0.1 % of the operations fail (1 % for exploration)",
        format!(
            "{} of {ended} operations failed ({}){}{}",
            f.failed,
            percent(share),
            f.main_failure
                .map_or_else(String::new, |(kind, count)| format!(
                    ", {count} of them with `{kind}`"
                )),
            match f.gave_up {
                true => "; nearly all did at the end, so the phase ended early",
                false => "",
            }
        ),
        advice,
        vec![figure("failed", share, "1")],
    )
}

fn unfinished(f: &Figures) -> Option<Reason> {
    let all = f.ok + f.failed + f.cancelled;
    if f.cancelled as f64 <= UNFINISHED_SHARE * all as f64 {
        return None;
    }
    let share = f.cancelled as f64 / all as f64;
    reason(
        "unfinished",
        Word::Degraded,
        "at most 0.1 % of the operations are cut off by the end of the run",
        format!(
            "{} operations were still in flight ({})",
            f.cancelled,
            percent(share)
        ),
        "The slowest operations are missing from the percentiles: allow a longer drain.",
        vec![figure("unfinished", share, "1")],
    )
}

fn semi_open(f: &Figures) -> Option<Reason> {
    if f.capped == 0 {
        return None;
    }
    reason(
        "semi-open",
        Word::Degraded,
        "the in-flight cap is never reached",
        format!(
            "{} arrivals found {} operations in flight",
            f.capped, f.max_in_flight
        ),
        "The load was not fully open: raise the in-flight cap, or lower the rate.",
        vec![figure("capped", f.capped as f64, "ops")],
    )
}

fn retries(f: &Figures) -> Option<Reason> {
    let ended = f.ok + f.failed;
    if f.retries as f64 <= RETRY_SHARE * ended as f64 {
        return None;
    }
    let share = f.retries as f64 / ended.max(1) as f64;
    reason(
        "retries",
        Word::Degraded,
        "retries are at most 0.1 % of the operations",
        format!("{} retries ({})", f.retries, percent(share)),
        "Latencies of retried operations contain several attempts: allow one attempt to see the failures.",
        vec![figure("retries", share, "1")],
    )
}

fn steal(f: &Figures) -> Option<Reason> {
    let steal = f.machine_steal.filter(|&s| s > STEAL_SHARE)?;
    reason(
        "steal",
        Word::Degraded,
        "the hypervisor takes at most 5 % of the CPU time",
        format!("it took {}", percent(steal)),
        "Use a machine with dedicated cores.",
        vec![figure("steal", steal, "1")],
    )
}

/// Checks that could not be made.
pub(super) fn notes(f: &Figures) -> Vec<String> {
    let mut notes = Vec::new();
    match f.calibration {
        None => notes.push("V5 was not checked: the client was not calibrated".to_owned()),
        Some(Calibration {
            age_s: Some(age), ..
        }) => notes.push(format!(
            "V5 was checked with a calibration from the cache, measured {} min ago; --no-calibration-cache measures \
             it again",
            age / 60
        )),
        Some(_) => {}
    }
    if f.machine_busy.is_none() || f.busiest_thread.is_none() {
        notes.push("saturation (V4) was checked in part: some CPU figures are missing".to_owned());
    }
    for (name, a) in &f.steadiness {
        if a.state == State::TooShort {
            notes.push(format!(
                "steadiness of {name} was not assessed: fewer than {MIN_BINS} intervals"
            ));
        }
    }
    if !f.open_loop {
        notes.push(
            "closed loop: operations wait for the store, so response times are service times"
                .to_owned(),
        );
    }
    notes
}
