//! The band: what it finds, what it leaves alone.

use super::band::Band;
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
