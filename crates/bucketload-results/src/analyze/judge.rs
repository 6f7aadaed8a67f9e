//! Collects the figures on which the verdict is based.

use bucketload_core::error::ErrorKind;
use bucketload_core::histogram::Histogram;
use bucketload_core::plan::{JobsPlan, PhasePlan};
use bucketload_core::sink::{Calibration, PhaseEnd};
use bucketload_core::stats::batch::{MIN_BATCHES, uncorrelated_means};
use bucketload_core::stats::moments::mean;
use bucketload_core::stats::regress::fit_line;
use bucketload_core::tally::Tally;
use bucketload_core::verdict::{
    Backlog, Client, Completeness, Figures, Reason, Slice, Verdict, Word, judge,
};

use super::bins::Counts;
use super::scan::PhaseScan;
use super::window::is_open;
use crate::result::{PhaseResult, SteadySeries};
use crate::rundir::{Damage, Manifest, Status as RunStatus};

/// Length of a slice of rule V1, nanoseconds.
const SLICE_NS: u64 = 10_000_000_000;
/// Number of bins needed to detect a growing backlog.
const BACKLOG_BINS: usize = 8;

/// The evidence for a phase's verdict.
pub(crate) struct Evidence<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) plan: &'a PhasePlan,
    pub(crate) scan: &'a PhaseScan,
    /// Bins of the measured window.
    pub(crate) bins: &'a [Counts],
    /// Operations from the start of the window to the end of the drain.
    pub(crate) tally: &'a Tally,
    pub(crate) end: Option<PhaseEnd>,
    pub(crate) calibration: Option<Calibration>,
    pub(crate) steadiness: &'a [SteadySeries],
    pub(crate) client: &'a crate::result::ClientUse,
    pub(crate) window_s: f64,
    pub(crate) ok_per_s: f64,
}

/// The verdict on a measuring phase.
pub(crate) fn verdict(e: &Evidence<'_>) -> Verdict {
    let open_loop = is_open(e.plan);
    let merged = |pick: fn(&bucketload_core::tally::Cell) -> &Histogram| {
        let mut all = Histogram::new();
        e.tally.cells.iter().for_each(|c| all.merge(pick(c)));
        all
    };
    let (response, service) = (merged(|c| &c.response), merged(|c| &c.service));
    let absent: u64 = if e.manifest.plan.not_found_is_failure {
        0
    } else {
        let kind = ErrorKind::NotFound as usize;
        e.tally.cells.iter().map(|c| c.failed[kind]).sum()
    };
    let of_kind = |kind: ErrorKind| -> u64 {
        let failed = e.tally.cells.iter().map(|c| c.failed[kind as usize]);
        failed.sum()
    };
    let counts = ErrorKind::ALL.map(|kind| (kind, of_kind(kind)));
    let counted = counts.into_iter().filter(|(kind, count)| {
        *count > 0
            && *kind != ErrorKind::Cancelled
            && (*kind != ErrorKind::NotFound || e.manifest.plan.not_found_is_failure)
    });
    let totals = &e.scan.totals;
    let sent = ScheduleKept::of(e.scan.series.bins(), e.bins);
    judge(&Figures {
        completeness: match e.end {
            None => Completeness::Killed,
            Some(PhaseEnd::Interrupted) => Completeness::Interrupted,
            Some(PhaseEnd::Aborted) => Completeness::Aborted,
            Some(_) => Completeness::Complete,
        },
        open_loop,
        window_s: e.window_s,
        offered: sent.offered,
        unsent: sent.unsent,
        worst_slice: sent.worst.filter(|_| open_loop),
        ok: e.tally.ok(),
        failed: e.tally.failures() - absent,
        main_failure: counted.max_by_key(|(_, count)| *count),
        gave_up: e.end == Some(PhaseEnd::Failing),
        cancelled: e.tally.cells.iter().map(|c| c.cancelled()).sum(),
        issued_in_phase: totals.issued,
        ended_in_phase: totals.ok + totals.failed + totals.cancelled,
        retries: e.tally.cells.iter().map(|c| c.retries).sum(),
        capped: e.tally.capped,
        max_in_flight: e
            .plan
            .works
            .iter()
            .map(|w| u64::from(w.model.open_cap().unwrap_or(0)))
            .sum(),
        ok_per_s: e.ok_per_s,
        late_p99_ns: e.tally.late.quantile_ns(0.99),
        service_p50_ns: service.quantile_ns(0.5),
        service_p99_ns: service.quantile_ns(0.99),
        response_p99_ns: response.quantile_ns(0.99),
        busiest_thread: e.client.busiest_thread,
        program: program(e, service.mean_ns()),
        machine_busy: e.client.machine_busy,
        machine_steal: e.client.machine_steal,
        nic: e.client.nic,
        cpu_ns_per_op: e.client.cpu_us_per_op.map(|us| us * 1e3),
        calibration: e.calibration,
        wall_step_ns: e.scan.wall_step_ns,
        backlog: open_loop
            .then(|| growth(e.bins, Counts::mean_in_flight))
            .flatten(),
        jobs: jobs_growth(e.plan, e.bins),
        steadiness: e
            .steadiness
            .iter()
            .map(|s| (s.name.clone(), s.assessment))
            .collect(),
    })
}

/// CPU time of the program that an operation starts, over the mean service time. That CPU time is what the client
/// used beyond its load threads.
fn program(e: &Evidence<'_>, service_ns: f64) -> Option<f64> {
    let starts_one = e.manifest.driver.engine.starts_with("cli:");
    let all_us = e.client.cpu_us_per_op.filter(|_| starts_one)?;
    let own_us = e.client.load_cpu_us_per_op?;
    (service_ns > 0.0).then(|| (all_us - own_us).max(0.0) * 1e3 / service_ns)
}

/// Growth of the jobs in progress, where jobs arrive independently of the store.
pub(crate) fn jobs_growth(plan: &PhasePlan, bins: &[Counts]) -> Option<Backlog> {
    plan.works
        .iter()
        .filter_map(|work| work.model.jobs())
        .any(JobsPlan::is_open)
        .then(|| growth(bins, Counts::mean_jobs))
        .flatten()
}

/// How well the schedule was kept.
struct ScheduleKept {
    offered: u64,
    unsent: u64,
    worst: Option<Slice>,
}

impl ScheduleKept {
    /// Compares offered and issued operations. `all` are the bins of the phase, `window` the measured ones.
    ///
    /// An operation that falls due at the end of a bin is sent in the next one. Only operations that are still
    /// unsent one bin later count as unsent.
    fn of(all: &[Counts], window: &[Counts]) -> Self {
        let mut offered = 0;
        let mut unsent_after = Vec::with_capacity(all.len() + 1);
        let mut unsent = 0i64;
        unsent_after.push(unsent);
        for bin in all {
            unsent += bin.offered as i64 - bin.issued as i64;
            unsent_after.push(unsent);
        }
        let first = window
            .first()
            .map_or(0, |w| all.partition_point(|bin| bin.start_ns < w.start_ns));
        let growth = |from: usize, to: usize| {
            let settled = unsent_after[to].min(*unsent_after.get(to + 1).unwrap_or(&i64::MAX));
            (settled - unsent_after[from]).max(0) as u64
        };
        let (mut worst, mut begin, mut due, mut length): (Option<Slice>, _, _, _) =
            (None, first, 0, 0);
        for (i, bin) in window.iter().enumerate() {
            offered += bin.offered;
            due += bin.offered;
            length += bin.len_ns;
            let end = first + i + 1;
            if length + bin.len_ns / 2 >= SLICE_NS {
                let slice = Slice {
                    start_ns: all[begin].start_ns,
                    offered: due,
                    unsent: growth(begin, end),
                };
                if worst.is_none_or(|w| slice.ratio() < w.ratio()) {
                    worst = Some(slice);
                }
                (begin, due, length) = (end, 0, 0);
            }
        }
        Self {
            offered,
            unsent: growth(first, first + window.len()),
            worst,
        }
    }
}

/// Growth of a reading over the window.
fn growth(bins: &[Counts], reading: fn(&Counts) -> f64) -> Option<Backlog> {
    if bins.len() < BACKLOG_BINS {
        return None;
    }
    let readings: Vec<f64> = bins.iter().map(reading).collect();
    let (batch, means) = uncorrelated_means(&readings, (readings.len() / MIN_BATCHES).max(1));
    let line = fit_line(&means)?;
    let batch_s = batch as f64 * bins[0].len_ns as f64 / 1e9;
    let (quarter, tenth) = (readings.len() / 4, (readings.len() / 10).max(1));
    Some(Backlog {
        slope_per_s: line.slope / batch_s,
        p_value: line.p_value,
        first_quarter: mean(&readings[..quarter.max(1)]),
        end: mean(&readings[readings.len() - tenth..]),
    })
}

/// The verdict on a run: the worst one of its measuring phases. INCOMPLETE if a planned phase is missing or
/// parts of the run directory are unreadable.
pub(crate) fn overall(
    phases: &[PhaseResult],
    missing: &[String],
    damage: &Damage,
    manifest: &Manifest,
) -> Verdict {
    let judged: Vec<(&PhaseResult, &Verdict)> = phases
        .iter()
        .filter_map(|p| Some((p, p.verdict.as_ref()?)))
        .collect();
    let several = judged.len() > 1;
    let named = |phase: &PhaseResult, text: &str| {
        if several {
            format!("{}: {text}", phase.name)
        } else {
            text.to_owned()
        }
    };
    let unreached = missing.iter().map(|name| match manifest.prepare_only {
        true => incomplete(
            "the run measured something",
            format!("phase {name} was not to be carried out: the run only prepared objects"),
            "Measure on these objects with --data.",
        ),
        false => incomplete(
            "every phase of the plan ran",
            format!("phase {name} was not reached"),
            "The run ended before this phase; see the warnings and errors.",
        ),
    });
    let unreadable = damage.lines.len() as u64 + damage.more_lines + damage.histograms;
    let damaged = (unreadable > 0).then(|| {
        incomplete(
            "every interval of the run is readable",
            format!("{unreadable} lines or histograms of the run directory are unreadable"),
            "Files were damaged after they were written: restore them or repeat the run.",
        )
    });
    let mut reasons: Vec<Reason> = unreached.chain(damaged).collect();
    let mut notes = Vec::new();
    if manifest.status == RunStatus::Running {
        let note = "the end of the run was not recorded; its objects may remain in the target";
        notes.push(note.to_owned());
    }
    for (phase, verdict) in &judged {
        reasons.extend(verdict.reasons.iter().map(|reason| Reason {
            measured: named(phase, &reason.measured),
            ..reason.clone()
        }));
    }
    notes.extend(shared_notes(&judged));
    reasons.sort_by_key(|r| std::cmp::Reverse(r.word));
    Verdict {
        word: reasons.first().map_or(Word::Valid, |r| r.word),
        reasons,
        notes,
        client: client(&judged),
    }
}

/// The client of the phase with most operations, with the headroom of the phase that has least: a verdict that one
/// phase causes must not stand beside the headroom of another.
fn client(judged: &[(&PhaseResult, &Verdict)]) -> Client {
    let most = judged.iter().max_by_key(|(phase, _)| phase.totals.ok);
    let reserves = judged
        .iter()
        .filter_map(|(_, verdict)| verdict.client.reserve);
    Client {
        reserve: reserves.min_by(|a, b| a.factor.total_cmp(&b.factor)),
        ..most.map_or_else(Client::default, |(_, verdict)| verdict.client)
    }
}

/// The notes of all phases, each once. A note that does not concern every phase names those that it concerns.
fn shared_notes(judged: &[(&PhaseResult, &Verdict)]) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for (phase, verdict) in judged {
        for note in &verdict.notes {
            match notes.iter_mut().find(|(text, _)| text == note) {
                Some((_, phases)) => phases.push(&phase.name),
                None => notes.push((note, vec![&phase.name])),
            }
        }
    }
    let text = |(note, phases): (&str, Vec<&str>)| match phases.len() == judged.len() {
        true => note.to_owned(),
        false => format!("{}: {note}", phases.join(", ")),
    };
    notes.into_iter().map(text).collect()
}

fn incomplete(condition: &str, measured: String, advice: &str) -> Reason {
    Reason {
        rule: "incomplete".to_owned(),
        word: Word::Incomplete,
        condition: condition.to_owned(),
        measured,
        advice: advice.to_owned(),
        figures: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{ScheduleKept, growth};
    use crate::analyze::bins::Counts;

    fn bins(offered: &[u64], issued: &[u64]) -> Vec<Counts> {
        offered
            .iter()
            .zip(issued)
            .enumerate()
            .map(|(i, (&offered, &issued))| Counts {
                start_ns: i as u64 * 1_000_000_000,
                end_ns: (i as u64 + 1) * 1_000_000_000,
                len_ns: 1_000_000_000,
                intervals: 1,
                offered,
                issued,
                in_flight: i as u64 * 5,
                ..Counts::default()
            })
            .collect()
    }

    #[test]
    fn operations_sent_one_bin_later_count_as_sent() {
        // A batch at the end of the window is sent in the drain.
        let all = bins(&[100, 100, 100, 0], &[100, 100, 50, 50]);
        assert_eq!(ScheduleKept::of(&all, &all[..3]).unsent, 0);
        let all = bins(&[100, 100, 100, 0, 0], &[100, 100, 50, 20, 30]);
        let sent = ScheduleKept::of(&all, &all[..3]);
        assert_eq!((sent.offered, sent.unsent), (300, 30));
        assert!(sent.worst.is_none());
    }

    #[test]
    fn the_worst_slice_is_found() {
        let mut issued = vec![100; 40];
        issued[20..30].fill(90);
        let all = bins(&[100; 40], &issued);
        let worst = ScheduleKept::of(&all, &all[5..]).worst.unwrap();
        assert_eq!(worst.offered, 1000);
        // Slices begin at 5, 15, 25. The middle one loses 10 a second for half of its time; so does the last
        // whole one.
        assert_eq!((worst.start_ns, worst.unsent), (15_000_000_000, 50));
        assert_eq!(ScheduleKept::of(&all, &all).worst.unwrap().unsent, 100);
    }

    #[test]
    fn a_growing_backlog_has_a_slope() {
        let b = growth(&bins(&[1; 60], &[1; 60]), Counts::mean_in_flight).unwrap();
        assert!((b.slope_per_s - 5.0).abs() < 1e-9 && b.p_value < 1e-6);
        assert!(b.end > 2.0 * b.first_quarter);
        assert_eq!(
            growth(&bins(&[1; 7], &[1; 7]), Counts::mean_in_flight),
            None
        );
    }
}
