//! What the recorded times mean: coordinated omission, the mix, caps, timeouts, retries.

use std::sync::Arc;

use crate::common::undisturbed::undisturbed;
use crate::common::*;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{ArrivalLaw, KeyLaw, Plan, RetryPlan};
use bucketload_core::tally::Tally;
use bucketload_run::{RunEnd, RunOptions, StopHandle, now_ns, run};

fn go(
    script: impl Fn(&Call) -> Act + Send + Sync + 'static,
    plan: &Plan,
    options: &RunOptions,
) -> (RunEnd, Kept, Arc<Scripted>) {
    let driver = Arc::new(Scripted::new(script));
    let mut kept = Kept::default();
    let stop = StopHandle::new();
    let end = run(&Arc::clone(&driver).into(), plan, options, &mut kept, &stop).unwrap();
    (end, kept, driver)
}

fn poisson(rate: f64, cap: u32) -> bucketload_core::plan::ModelPlan {
    open(ArrivalLaw::Poisson { rate }, cap)
}

/// A store that answers at once, except that call number 2000 takes `stall`, and every call that arrives meanwhile
/// waits for the end of the stall.
fn stalling(stall_ns: u64) -> impl Fn(&Call) -> Act + Send + Sync {
    let end = std::sync::atomic::AtomicU64::new(0);
    move |call| {
        use std::sync::atomic::Ordering::SeqCst;
        if call.nth == 2_000 {
            end.store(call.now_ns + stall_ns, SeqCst);
        }
        until(end.load(SeqCst))
    }
}

/// With uniform arrivals over a time T and one stall S of an otherwise immediate store, a share S/T of the operations
/// has response times distributed as U(0, S). The q-quantile is S · (1 - (1 - q)·T/S).
fn stalled_quantile(stall_ms: f64, total_ms: f64, q: f64) -> f64 {
    stall_ms * (1.0 - (1.0 - q) * total_ms / stall_ms)
}

#[test]
fn a_stall_shows_in_the_response_times_of_an_open_loop() {
    undisturbed(|| {
        // The reference case (500/s, 60 s, 1 s), ten times faster, with as many operations of each kind.
        let (stall, total) = (100.0, 6_000.0);
        let plan = one(poisson(5_000.0, 2_000), gets(), for_ms(6_000));
        let (end, kept, driver) = go(stalling(ms(100)), &plan, &options(1));
        let tally = kept.total(0);
        let response = &tally.cells[0].response;
        let p = |q| response.quantile_ns(q) as f64 / 1e6;
        // 30 000 operations of which 500 meet the stall: the standard error of the quantile's rank at
        // 0.999 is 5.5 operations, 1.1 ms of the stall; at 0.99, 17 operations, 3.5 ms. A loaded
        // machine only makes responses later; its delays are bounded here by 60 ms.
        for (q, error) in [(0.99, 4.0 * 3.5), (0.999, 4.0 * 1.1)] {
            let expected = stalled_quantile(stall, total, q);
            assert!(p(q) > expected - error, "p{q}: {} for {expected} ms", p(q));
            assert!(
                p(q) < expected + error + 60.0,
                "p{q}: {} for {expected} ms",
                p(q)
            );
        }
        assert_eq!(end.phases[0].totals.ok, end.phases[0].totals.offered);
        assert!(
            driver.sessions() > 300,
            "grew to hold the operations that the stall delayed: {}",
            driver.sessions()
        );
    });
}

#[test]
fn with_one_session_the_stall_shows_in_the_response_not_in_the_service_time() {
    undisturbed(|| {
        let plan = one(poisson(5_000.0, 1), gets(), for_ms(6_000));
        let (_, kept, _) = go(stalling(ms(100)), &plan, &options(1));
        let tally = kept.total(0);
        let cell = &tally.cells[0];
        assert!(
            cell.response.quantile_ns(0.999) > ms(88),
            "{:?}",
            cell.response
        );
        // Only the one operation that met the stall had to wait for the store.
        assert!(
            cell.service.quantile_ns(0.999) < ms(20),
            "{:?}",
            cell.service
        );
        assert!(cell.service.max_ns() > ms(99));
        // About 500 waited for the session, and their waits count as dispatch waits.
        let capped = tally.capped as f64;
        assert!(
            (capped - 500.0).abs() < 4.0 * 500f64.sqrt() + 100.0,
            "{capped}"
        );
        assert!(
            tally.dispatch.quantile_ns(0.9) > ms(75),
            "{:?}",
            tally.dispatch
        );
        // 99 % of the arrivals that the thread could have taken were taken in time.
        let late = tally.late.quantile_ns(0.9);
        assert!(
            late < ms(20),
            "the stall does not count as lateness of the client: {late}"
        );
    });
}

#[test]
fn a_closed_loop_with_one_client_hides_the_stall() {
    undisturbed(|| {
        let plan = one(closed(1), gets(), for_ops(30_000));
        let (_, kept, _) = go(stalling(ms(100)), &plan, &options(1));
        let response = &kept.total(0).cells[0].response;
        assert!(response.quantile_ns(0.999) < ms(20), "{response:?}");
        assert!(response.max_ns() > ms(99));
    });
}

#[test]
fn the_mix_is_by_request_even_when_puts_are_slow() {
    let mix = vec![
        entry(OpClass::Get, 0.7, 0, KeyLaw::Uniform),
        entry(OpClass::Put, 0.3, 1, KeyLaw::Fresh),
    ];
    let plan = one(poisson(2_000.0, 4_000), mix, for_ms(3_000));
    let slow_puts = |call: &Call| match call.class {
        OpClass::Put => until(call.now_ns + ms(100)),
        _ => until(call.now_ns + ms(1)),
    };
    let (end, kept, _) = go(slow_puts, &plan, &options(2));
    let tally = kept.total(0);
    let gets = tally
        .cells
        .iter()
        .find(|c| c.class == OpClass::Get)
        .unwrap();
    let n = tally.ok() as f64;
    assert!(n > 5_000.0);
    let share = gets.ok as f64 / n;
    assert!(
        (share - 0.7).abs() < 4.0 * (0.7f64 * 0.3 / n).sqrt(),
        "{share}"
    );
    assert_eq!(end.phases[0].totals.cancelled, 0);
}

#[test]
fn the_operations_do_not_depend_on_threads_workers_or_agents() {
    let mix = || {
        vec![
            entry(
                OpClass::Get,
                0.6,
                0,
                KeyLaw::Zipf {
                    theta: 0.99,
                    scramble: true,
                },
            ),
            entry(OpClass::Put, 0.4, 1, KeyLaw::Fresh),
        ]
    };
    let closed_log = |threads, workers, share: (u32, u32)| {
        let plan = one(closed(workers), mix(), for_ops(5_000));
        let options = RunOptions {
            share: bucketload_run::Share {
                index: share.0,
                of: share.1,
            },
            ..options(threads)
        };
        let driver = Arc::new(Scripted::new(|_| at_once()).logged());
        let stop = StopHandle::new();
        run(
            &Arc::clone(&driver).into(),
            &plan,
            &options,
            &mut Kept::default(),
            &stop,
        )
        .unwrap();
        driver.log()
    };
    let reference = closed_log(1, 8, (0, 1));
    assert_eq!(reference.len(), 5_000);
    assert_eq!(closed_log(8, 8, (0, 1)), reference);
    assert_eq!(closed_log(3, 5, (0, 1)), reference);
    let mut two: Vec<_> = [closed_log(2, 8, (0, 2)), closed_log(1, 8, (1, 2))].concat();
    two.sort();
    assert_eq!(two, reference);
    let open_log = |threads| {
        let plan = one(poisson(20_000.0, 64), mix(), for_ops(5_000));
        let driver = Arc::new(Scripted::new(|_| at_once()).logged());
        let stop = StopHandle::new();
        run(
            &Arc::clone(&driver).into(),
            &plan,
            &options(threads),
            &mut Kept::default(),
            &stop,
        )
        .unwrap();
        driver.log()
    };
    assert_eq!(
        open_log(1),
        reference,
        "the same operations as in a closed loop"
    );
    assert_eq!(open_log(8), reference);
}

#[test]
fn the_in_flight_cap_holds_and_is_counted() {
    undisturbed(|| {
        let mut plan = one(constant(2_000.0, 8), gets(), for_ms(500));
        plan.phases[0].limits.drain_ns = ms(60_000);
        let slow = |call: &Call| until(call.now_ns + ms(20));
        let (end, kept, driver) = go(slow, &plan, &options(2));
        assert!(driver.peak() <= 8, "{}", driver.peak());
        assert!(driver.sessions() <= 8);
        let totals = end.phases[0].totals;
        // 8 sessions perform at most 8 operations per 20 ms, so 200 of the 1000 in time. All are done in the end.
        assert_eq!((totals.offered, totals.ok), (1_000, 1_000));
        let tally = kept.total(0);
        assert!(tally.capped > 900, "{}", tally.capped);
        let last = &tally.cells[0].response;
        assert!(
            last.max_ns() > ms(1_500),
            "the backlog is in the response times: {last:?}"
        );
        assert!(tally.dispatch.count() >= tally.capped);
    });
}

#[test]
fn sessions_of_an_open_loop_take_turns() {
    undisturbed(|| {
        // Sessions are spread over endpoints, so a favoured session would be a favoured endpoint.
        let plan = one(constant(2_000.0, 64), gets(), for_ms(500));
        let counts = Arc::new(std::sync::Mutex::new(std::collections::BTreeMap::new()));
        let seen = Arc::clone(&counts);
        let script = move |call: &Call| {
            *seen.lock().unwrap().entry(call.session).or_insert(0u32) += 1;
            // The wait makes the leader pass the baton on.
            until(call.now_ns + 1)
        };
        go(script, &plan, &options(1));
        let counts: Vec<u32> = counts.lock().unwrap().values().copied().collect();
        assert!(counts.len() >= 8, "{counts:?}");
        let mean = counts.iter().sum::<u32>() / counts.len() as u32;
        // The first eight were open from the start; none gets more than its share of turns.
        assert!(counts.iter().all(|&n| n < 2 * mean + 4), "{counts:?}");
    });
}

#[test]
fn a_timeout_is_recorded_at_the_timeout_and_the_session_goes_on() {
    undisturbed(|| {
        let mut plan = one(closed(4), gets(), for_ops(400));
        plan.timeout_ns = ms(60);
        let hangs = |call: &Call| {
            if call.seq % 100 == 7 {
                never()
            } else {
                at_once()
            }
        };
        let (end, kept, driver) = go(hangs, &plan, &options(2));
        let totals = end.phases[0].totals;
        assert_eq!((totals.ok, totals.failed, totals.issued), (396, 4, 400));
        let tally = kept.total(0);
        let timeouts: u64 = tally
            .cells
            .iter()
            .map(|c| c.failed[ErrorKind::Timeout as usize])
            .sum();
        assert_eq!(timeouts, 4);
        let times = &tally.cells[0].failed_response;
        assert!(
            times.min_ns() >= ms(60) && times.quantile_ns(0.5) < ms(62),
            "{times:?}"
        );
        assert_eq!(kept.failures(), 4);
        assert_eq!(driver.sessions(), 4);
    });
}

#[test]
fn retries_are_visible_and_part_of_the_response_time() {
    undisturbed(|| {
        let mut plan = one(closed(1), gets(), for_ops(100));
        plan.retry = RetryPlan {
            max_attempts: 3,
            backoff_ns: ms(4),
            max_backoff_ns: ms(100),
        };
        // Every tenth operation fails twice, then succeeds; number 55 fails for good.
        let tries = std::sync::Mutex::new(std::collections::HashMap::new());
        let script = move |call: &Call| {
            let mut tries = tries.lock().unwrap();
            let n = tries.entry(call.seq).or_insert(0u32);
            *n += 1;
            match call.seq {
                55 => fail(ErrorKind::Server),
                s if s % 10 == 0 && *n < 3 => fail(ErrorKind::Throttled),
                s if s % 10 == 1 && *n < 2 => fail(ErrorKind::NotFound),
                _ => at_once(),
            }
        };
        let (end, kept, _) = go(script, &plan, &options(1));
        let totals = end.phases[0].totals;
        assert_eq!(
            (totals.ok, totals.failed),
            (89, 11),
            "`not found` is never retried"
        );
        let tally = kept.total(0);
        let cell = &tally.cells[0];
        assert_eq!(cell.retries, 10 * 2 + 2);
        assert_eq!(cell.failed[ErrorKind::Server as usize], 1);
        assert_eq!(cell.failed[ErrorKind::NotFound as usize], 10);
        assert_eq!(
            cell.failed[ErrorKind::Throttled as usize],
            0,
            "they succeeded in the end"
        );
        // Ten operations paused 4 + 8 ms, which is neither service time nor lateness of the client.
        assert_eq!(
            cell.response.count() - cell.response.count_at_most(ms(12) - 1),
            10
        );
        assert!(cell.service.quantile_ns(0.8) < ms(4));
        assert!(tally.late.quantile_ns(0.8) < ms(4), "{:?}", tally.late);
    });
}

#[test]
fn response_is_lag_plus_service() {
    let plan = one(constant(500.0, 4), gets(), for_ms(400));
    let (_, kept, _) = go(|call| until(call.now_ns + ms(30)), &plan, &options(1));
    let tally: Tally = kept.total(0);
    let cell = &tally.cells[0];
    assert_eq!(
        cell.response.sum_ns(),
        cell.service.sum_ns() + tally.lag.sum_ns()
    );
    assert!(now_ns() > 0);
}
