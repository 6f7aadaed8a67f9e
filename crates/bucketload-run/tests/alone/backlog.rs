//! Batches keep arriving while the store stops: the backlog that builds up and how it drains
//! (docs/spec/scenarios.md section 11, test 7).

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use crate::common::undisturbed::undisturbed;
use crate::common::*;
use bucketload_core::generate::arrivals::Schedule;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{ArrivalLaw, KeyLaw};
use bucketload_run::{StopHandle, run};

/// The test of the specification, ten times faster: a tick every 500 ms and a stop of 1.2 s. The conformance suite runs
/// it at full length.
const PERIOD_MS: u64 = 500;
const STOP_MS: u64 = 1_200;

#[test]
fn three_ticks_are_outstanding_and_every_request_is_recorded_with_its_true_response_time() {
    undisturbed(|| {
        let law = ArrivalLaw::PeriodicBatch {
            clients: 1,
            period_ns: ms(PERIOD_MS),
            min: 10,
            max: 100,
            spread_ns: 0,
            gap_ns: 0,
        };
        let duration = ms(7 * PERIOD_MS);
        let mix = vec![entry(OpClass::Put, 1.0, 1, KeyLaw::Fresh)];
        let plan = one(open(law.clone(), 1_000), mix, for_ms(7 * PERIOD_MS));
        // The batches of the schedule: due instant and number of requests.
        let mut batches: Vec<(u64, u64)> = Vec::new();
        let schedule = Schedule::new(plan.seed, 0, 0, &law).unwrap();
        for arrival in schedule.arrivals().take_while(|a| a.due_ns < duration) {
            match batches.last_mut() {
                Some((due, n)) if *due == arrival.due_ns => *n += 1,
                _ => batches.push((arrival.due_ns, 1)),
            }
        }
        // The store stops when the first request of the third batch arrives.
        let first_of_third = batches[0].1 + batches[1].1;
        let end = AtomicU64::new(0);
        let script = move |call: &Call| {
            if call.seq >= first_of_third && end.load(SeqCst) == 0 {
                end.store(call.now_ns + ms(STOP_MS), SeqCst);
            }
            until(end.load(SeqCst))
        };
        let driver = Arc::new(Scripted::new(script));
        let mut kept = Kept::default();
        let ended = run(
            &Arc::clone(&driver).into(),
            &plan,
            &options(2),
            &mut kept,
            &StopHandle::new(),
        )
        .unwrap();

        let waiting: Vec<u64> = batches[2..5].iter().map(|(_, n)| *n).collect();
        let offered: u64 = batches.iter().map(|(_, n)| n).sum();
        let totals = ended.phases[0].totals;
        assert_eq!(
            (totals.offered, totals.ok),
            (offered, offered),
            "{batches:?}"
        );
        // All three were under way together, and the oldest grew as old as the stop.
        let gauges = || kept.intervals.iter().map(|interval| interval.gauges);
        let most = gauges().map(|g| g.in_flight).max().unwrap();
        assert!(most >= waiting.iter().sum(), "{most} of {waiting:?}");
        let backlog = gauges().map(|g| g.backlog_ns).max().unwrap();
        assert!(backlog > ms(STOP_MS - 110), "{backlog}");
        assert_eq!(
            gauges().next_back().unwrap().backlog_ns,
            0,
            "nothing is left"
        );
        // True response times: the rest of the stop at the due instant of each batch. A loaded machine only makes them
        // longer.
        let tally = kept.total(0);
        let response = &tally.cells[0].response;
        let longer = |than: u64| response.count() - response.count_at_most(than);
        for (tick, least) in [
            (0, waiting[0]),
            (1, waiting[0] + waiting[1]),
            (2, waiting.iter().sum()),
        ] {
            let left = ms(STOP_MS - tick * PERIOD_MS);
            // The stop began at the first request, which may be a little after its tick.
            assert!(longer(left - ms(2)) >= least, "tick {tick}");
        }
        assert!(response.max_ns() >= ms(STOP_MS));
    });
}

/// Without a stop the backlog is only what the store is working on.
#[test]
fn a_store_that_keeps_up_has_no_backlog() {
    undisturbed(|| {
        let plan = one(constant(200.0, 100), gets(), for_ms(1_000));
        let driver = Arc::new(Scripted::new(|call: &Call| until(call.now_ns + ms(1))));
        let mut kept = Kept::default();
        run(
            &driver.into(),
            &plan,
            &options(1),
            &mut kept,
            &StopHandle::new(),
        )
        .unwrap();
        let mut backlogs: Vec<u64> = kept
            .intervals
            .iter()
            .map(|interval| interval.gauges.backlog_ns)
            .collect();
        backlogs.sort_unstable();
        // The median of eleven readings; a loaded machine may delay single operations.
        assert!(backlogs[backlogs.len() / 2] < ms(50), "{backlogs:?}");
    });
}
