//! The band: what it finds, what it leaves alone.

use bucketload_core::drill::Entry;

use super::band::Band;
use super::course::Course;
use super::figures::{longest_gap, recovered};
use super::slots::Slot;

/// Intervals of 100 ms with 20 operations each, of which `bad` gives the slow ones by number of the interval.
fn slots(count: u64, bad: impl Fn(u64) -> u64) -> Vec<Slot> {
    let slot = |i: u64| Slot {
        start_ns: i * 100,
        end_ns: (i + 1) * 100,
        offered: 20,
        ok: 20,
        slow: bad(i),
        good: 20 - bad(i),
        ..Slot::default()
    };
    (0..count).map(slot).collect()
}

/// A number from 0 to 1 that depends on `i` and `seed` alone.
fn chance(seed: u64, i: u64) -> f64 {
    let mixed =
        bucketload_core::generate::rng::mix64(seed ^ bucketload_core::generate::rng::mix64(i));
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

/// How many of 20 operations are slow by chance, each with probability 1 in 200.
fn luck(seed: u64, i: u64) -> u64 {
    (0..20).filter(|j| chance(seed, i * 20 + j) < 0.005).count() as u64
}

#[test]
fn chance_alone_is_never_out() {
    let false_alarms = (0..200).filter(|&seed| {
        let all = slots(900, |i| luck(seed, i));
        let (baseline, rest) = all.split_at(300);
        Band::of(baseline).out(rest).contains(&true)
    });
    assert_eq!(false_alarms.count(), 0);
}

#[test]
fn a_hiccup_is_no_fault_and_a_fault_is_found_at_once() {
    let hiccup = slots(600, |i| if i == 400 { 20 } else { luck(1, i) });
    let (baseline, rest) = hiccup.split_at(300);
    assert!(!Band::of(baseline).out(rest).contains(&true));
    let fault = slots(600, |i| {
        if (400..500).contains(&i) {
            20
        } else {
            luck(1, i)
        }
    });
    let (baseline, rest) = fault.split_at(300);
    let out = Band::of(baseline).out(rest);
    assert_eq!(out.iter().position(|out| *out), Some(100));
    assert_eq!(out.iter().rposition(|out| *out), Some(199));
}

#[test]
fn many_that_are_a_little_slow_are_found() {
    let quarter = |i: u64| (0..20).filter(|j| chance(9, i * 20 + j) < 0.25).count() as u64;
    let late = |late: &dyn Fn(u64) -> u64| -> Vec<Slot> {
        let all = slots(600, |_| 0).into_iter().zip(0..);
        all.map(|(slot, i)| Slot {
            late: late(i),
            ..slot
        })
        .collect()
    };
    let calm = late(&quarter);
    let (baseline, rest) = calm.split_at(300);
    assert!(!Band::of(baseline).out(rest).contains(&true));
    let fault = late(&|i| {
        if (400..500).contains(&i) {
            20
        } else {
            quarter(i)
        }
    });
    let out = Band::of(baseline).out(&fault[300..]);
    assert_eq!(out.iter().filter(|out| **out).count(), 100);
}

#[test]
fn a_pile_and_a_silence_are_out() {
    let quiet = slots(300, |i| luck(2, i));
    let band = Band::of(&quiet);
    let piled = Slot {
        backlog: 30,
        ..quiet[0]
    };
    assert_eq!(band.out(&[quiet[0], piled, piled]), [false, true, true]);
    let silent = Slot {
        ok: 0,
        good: 0,
        slow: 0,
        ..quiet[0]
    };
    assert_eq!(band.out(&[silent, silent, quiet[0]]), [true, true, false]);
}

#[test]
fn a_baseline_that_is_rough_has_a_wide_band() {
    let rough = slots(300, |i| if i % 10 < 3 { 8 } else { 0 });
    assert!(!Band::of(&rough).out(&rough).contains(&true));
}

/// A drill that holds for a second, in intervals of 100 ms.
fn held() -> bucketload_core::drill::DrillPlan {
    bucketload_core::drill::DrillPlan {
        warm_ns: 0,
        steady_ns: 0,
        recover_ns: 3_000_000_000,
        hold_ns: 1_000_000_000,
        interval_ns: 100_000_000,
        deadline_ns: 0,
        faults: Vec::new(),
    }
}

/// Intervals of 100 ms.
fn seconds(count: u64, ok: impl Fn(u64) -> u64) -> Vec<Slot> {
    let slot = |i: u64| Slot {
        start_ns: i * 100_000_000,
        end_ns: (i + 1) * 100_000_000,
        offered: 20,
        ok: ok(i),
        ..Slot::default()
    };
    (0..count).map(slot).collect()
}

#[test]
fn recovery_is_where_the_band_begins_to_hold() {
    let all = seconds(40, |_| 20);
    let out = |range: &[u64]| -> Vec<bool> { (0..40).map(|i| range.contains(&i)).collect() };
    let at = |out: &[bool]| recovered(&all, out, 1_050_000_000, &held());
    // Mended in interval 10; out until 12, and again at 15 and 16.
    let found = at(&out(&[10, 11, 12, 15, 16])).unwrap();
    assert!(
        (found.s - 0.65).abs() < 1e-9 && (found.from_s - 0.55).abs() < 1e-9,
        "{found:?}"
    );
    assert_eq!(at(&out(&[8, 9])).unwrap().s, 0.0);
    // After the last interval that is out, too little is left.
    assert!(recovered(&all, &out(&[10, 32, 33]), 3_250_000_000, &held()).is_none());
}

#[test]
fn the_longest_gap_lies_between_two_successes() {
    let gap = |ok: &dyn Fn(u64) -> u64| longest_gap(&seconds(40, ok), 500_000_000);
    assert_eq!(gap(&|_| 20).s, 0.0);
    let hole = gap(&|i| if (10..20).contains(&i) { 0 } else { 20 });
    assert!(
        (hole.from_s - 1.0).abs() < 1e-9
            && (hole.to_s - 1.2).abs() < 1e-9
            && (hole.s - 1.1).abs() < 1e-9
    );
    let end = gap(&|i| if i >= 30 { 0 } else { 20 });
    assert!((end.from_s - 1.0).abs() < 1e-9, "{end:?}");
    assert!(gap(&|_| 0).s > 3.4);
}

#[test]
fn the_cost_of_preparing_objects_is_not_the_loads() {
    let cost = |cpu_ns, bytes, connections| Entry::Cost {
        cpu_ns,
        bytes,
        connections,
    };
    let plan = Entry::Plan {
        drill: held(),
        seed: 1,
        endpoints: Vec::new(),
    };
    let baseline = Entry::Baseline {
        at_ns: 2,
        valid: true,
        why: String::new(),
    };
    let began = Entry::Began { at_ns: 1 };
    let mut journal = vec![plan, began, cost(100, 10, 2), baseline, cost(400, 50, 3)];
    assert_eq!(Course::of(&journal).unwrap().cost, Some((300, 40, 3)));
    // Journals of earlier versions.
    journal.remove(2);
    assert_eq!(Course::of(&journal).unwrap().cost, Some((400, 50, 3)));
    // A drill that was killed: its total is unknown.
    journal.insert(2, cost(100, 10, 2));
    journal.truncate(4);
    assert_eq!(Course::of(&journal).unwrap().cost, None);
}
