//! The partly open model: what jobs do, leave behind and report (docs/spec/scenarios.md sections 4.1 and 11).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::common::undisturbed::undisturbed;
use crate::common::*;
use bucketload_core::generate::jobs::{JobGen, mix};
use bucketload_core::op::OpClass;
use bucketload_core::plan::{
    ArrivalLaw, JobStart, JobsPlan, KeysetPlan, Limits, ModelPlan, PhaseKind, Plan, SizeKind,
    SizeLaw, StageKind, StagePace, StagePlan,
};
use bucketload_core::sink::PhaseEnd;
use bucketload_run::{RunEnd, StopHandle, run};

/// Jobs of the default structure, sped up for a test.
fn jobs(start: JobStart, pace: StagePace, limit: u64) -> JobsPlan {
    use StageKind::{Read, Write};
    JobsPlan {
        start,
        stages: [Write, Read, Write, Read, Write]
            .map(|kind| StagePlan {
                kind,
                min: 10,
                max: 19,
            })
            .to_vec(),
        pace,
        limit,
        max_jobs: 1000,
        retain: 5,
        max_in_flight: 256,
        temp: 0,
        results: 1,
    }
}

fn open_jobs(limit: u64) -> JobsPlan {
    let arrival = ArrivalLaw::Poisson { rate: 60.0 };
    let pace = StagePace::Poisson { rate: 2_000.0 };
    jobs(JobStart::Open { arrival }, pace, limit)
}

/// A fifth of the objects are empty.
fn sized(name: &str) -> KeysetPlan {
    let parts = vec![
        (0.2, SizeKind::Const { bytes: 0 }),
        (0.8, SizeKind::Uniform { a: 1, b: 2 << 20 }),
    ];
    KeysetPlan {
        size: SizeLaw {
            law: SizeKind::Mixture { parts },
            min: 0,
            max: 2 << 20,
        },
        ..keyset(name, 0)
    }
}

fn plan_of(jobs: JobsPlan, limits: Limits) -> Plan {
    let keysets = vec![sized("temp"), sized("results")];
    let mix = mix(&jobs, &keysets).unwrap();
    Plan {
        keysets,
        ..plan(vec![phase(
            PhaseKind::Run,
            vec![work(ModelPlan::Jobs(jobs), mix)],
            limits,
        )])
    }
}

fn unlimited() -> Limits {
    Limits {
        drain_ns: ms(60_000),
        ..Limits::default()
    }
}

fn go(driver: Scripted, plan: &Plan, threads: usize) -> (RunEnd, Kept, Arc<Scripted>) {
    let driver = Arc::new(driver.logged().strict());
    let mut kept = Kept::default();
    let stop = StopHandle::new();
    let end = run(
        &Arc::clone(&driver).into(),
        plan,
        &options(threads),
        &mut kept,
        &stop,
    );
    (end.unwrap(), kept, driver)
}

/// Index of the object in a key such as `t/temp/0000000000042`.
fn index_of(key: &str) -> u64 {
    key.rsplit('/').next().unwrap().parse().unwrap()
}

/// Number of operations begun and their latest end, by job and stage.
type Stages = BTreeMap<(u64, u64), (u32, u64)>;

/// Objects of a job per slot range: 5 stages of at most 19.
const PER_JOB: u64 = 5 * 19;

#[test]
fn after_the_run_the_store_holds_only_results_and_never_more_than_two_stages_of_a_job() {
    let plan = plan_of(open_jobs(30), unlimited());
    // Temporary objects of each job that are being written or exist.
    let live: Arc<Mutex<(BTreeMap<u64, i64>, i64)>> = Arc::default();
    let watched = Arc::clone(&live);
    let driver = Scripted::new(move |call| {
        if call.key.contains("temp") {
            let (live, most) = &mut *watched.lock().unwrap();
            let count = live.entry(index_of(&call.key) / PER_JOB).or_default();
            match call.class {
                OpClass::Put => *count += 1,
                OpClass::Delete => *count -= 1,
                _ => {}
            }
            *most = (*most).max(*count);
        }
        at_once()
    });
    let (end, kept, driver) = go(driver, &plan, 2);
    assert_eq!(end.phases[0].end, PhaseEnd::Complete);
    let total = kept.total(0);
    assert_eq!((total.failures(), total.ended()), (0, driver.calls()));

    let ops = JobGen::new(&plan, 0, 0).unwrap();
    let ops_in = |job, stage| u64::from(ops.ops_in(job, stage));
    let keys = driver.keys("b");
    assert!(
        keys.iter().all(|key| key.starts_with("t/results/")),
        "{keys:?}"
    );
    // The results of the last five jobs: a job's results are deleted when the fifth job after it arrives.
    let expected: u64 = (25..30).map(|job| ops_in(job, 4)).sum();
    assert_eq!(keys.len() as u64, expected);
    let (left, most) = &*live.lock().unwrap();
    assert!(
        left.values().all(|&n| n == 0) && left.len() == 30,
        "{left:?}"
    );
    assert!((10..=2 * 19).contains(most), "{most}");

    // Every stage and every job has its makespan.
    assert_eq!(
        (total.jobs.begun, total.jobs.ended, total.jobs.delayed),
        (30, 30, 0)
    );
    for part in 0..=5 {
        let span = total.spans.iter().find(|s| s.part == part).unwrap();
        assert_eq!((span.makespan.count(), span.failed), (30, 0), "part {part}");
    }
    let part = |part| total.spans.iter().find(|s| s.part == part).unwrap();
    let stages: f64 = (0..5).map(|i| part(i).makespan.mean_ns()).sum();
    // A job consists of its stages in a row, and for the first job the wait for the start.
    let job = part(5).makespan.mean_ns();
    assert!((stages / job - 1.0).abs() < 0.01, "{stages} {job}");
    // Empty objects are written and read like others: a fifth of some 1 300, within four standard errors.
    let puts = driver
        .log()
        .into_iter()
        .filter(|call| call.1 == OpClass::Put);
    let sizes: Vec<u64> = puts.map(|call| call.3).collect();
    let empty = sizes.iter().filter(|&&size| size == 0).count() as f64 / sizes.len() as f64;
    assert!((empty - 0.2).abs() < 0.05, "{empty}");
    assert!(
        kept.intervals
            .iter()
            .any(|interval| interval.gauges.jobs > 0)
    );
    assert_eq!(kept.intervals.last().unwrap().gauges.jobs, 0);
}

#[test]
fn the_operations_of_jobs_do_not_depend_on_the_number_of_threads() {
    let closed = JobStart::Closed { jobs: 4 };
    for jobs in [
        open_jobs(12),
        jobs(closed.clone(), StagePace::Sequential, 13),
        jobs(closed, StagePace::Burst, 12),
    ] {
        let plan = plan_of(jobs, unlimited());
        let logs = [1, 2, 3].map(|threads| {
            let (_, kept, driver) = go(Scripted::new(|_| at_once()), &plan, threads);
            assert_eq!(kept.total(0).failures(), 0);
            driver.log()
        });
        assert!(logs[0].len() > 1_000);
        assert!(
            logs[0] == logs[1] && logs[0] == logs[2],
            "{:?}",
            plan.phases[0].works[0].model
        );
    }
}

#[test]
fn a_stage_waits_for_the_one_before_it() {
    let plan = plan_of(open_jobs(6), unlimited());
    // Numbers of operations begun and ended, by job and stage.
    let ends: Arc<Mutex<Stages>> = Arc::default();
    let seen = Arc::clone(&ends);
    let driver = Scripted::new(move |call| {
        let until_ns = call.now_ns + ms(2);
        if call.class != OpClass::Delete {
            let slot = call.seq / 2;
            let of = (slot / PER_JOB, slot % PER_JOB / 19);
            let mut seen = seen.lock().unwrap();
            if of.1 > 0 {
                let (_, ended_ns) = seen[&(of.0, of.1 - 1)];
                assert!(call.now_ns >= ended_ns, "{of:?}");
            }
            let stage = seen.entry(of).or_default();
            *stage = (stage.0 + 1, stage.1.max(until_ns));
        }
        until(until_ns)
    });
    let (_, kept, _) = go(driver, &plan, 2);
    assert_eq!(kept.total(0).failures(), 0);
    let ops = JobGen::new(&plan, 0, 0).unwrap();
    let ends = ends.lock().unwrap();
    assert_eq!(ends.len(), 6 * 5);
    for (&(job, stage), &(n, _)) in &*ends {
        assert_eq!(n, ops.ops_in(job, stage as usize));
    }
}

#[test]
fn a_time_limit_ends_the_arrivals_and_lets_the_jobs_end() {
    let mut jobs = open_jobs(0);
    jobs.retain = 0;
    let limits = Limits {
        duration_ns: ms(300),
        drain_ns: ms(60_000),
        ..Limits::default()
    };
    let (end, kept, driver) = go(Scripted::new(|_| at_once()), &plan_of(jobs, limits), 2);
    assert_eq!(end.phases[0].end, PhaseEnd::TimeLimit);
    let total = kept.total(0);
    assert!(total.jobs.begun >= 5, "{:?}", total.jobs);
    assert_eq!(total.jobs.begun, total.jobs.ended);
    assert_eq!(end.phases[0].totals.offered, end.phases[0].totals.ok);
    assert!(
        driver
            .keys("b")
            .iter()
            .all(|key| key.starts_with("t/results/"))
    );
}

#[test]
fn jobs_beyond_the_bound_wait_and_are_counted() {
    undisturbed(|| {
        let mut jobs = open_jobs(8);
        jobs.max_jobs = 1;
        let driver = Scripted::new(|call| until(call.now_ns + ms(5)));
        let (_, kept, _) = go(driver, &plan_of(jobs, unlimited()), 1);
        let total = kept.total(0);
        assert_eq!(total.jobs.ended, 8);
        assert!(
            total.jobs.delayed >= 4 && total.capped >= total.jobs.delayed,
            "{:?}",
            total.jobs
        );
        let most = kept.intervals.iter().map(|i| i.gauges.jobs).max();
        assert!(most > Some(2), "waiting jobs count as under way: {most:?}");
        // The wait is part of the job's makespan but not of its stages' makespans.
        let mean = |part| {
            let span = total.spans.iter().find(|s| s.part == part).unwrap();
            span.makespan.mean_ns()
        };
        assert!(mean(5) > 1.2 * (0..5).map(mean).sum::<f64>());
    });
}
