//! Arrival processes: rates, burstiness, determinism under sharding, absence of drift
//! (docs/spec/scenarios.md sections 1.3, 5 and 11, tests 2 and 3).

use bucketload_core::generate::arrivals::{Arrival, Schedule, Shard};
use bucketload_core::plan::ArrivalLaw;

const SECOND: u64 = 1_000_000_000;

fn schedule(law: ArrivalLaw) -> Schedule {
    Schedule::new(42, 1, 0, &law).unwrap()
}

/// Arrivals per window over `windows` windows from the start.
fn counts(law: ArrivalLaw, window_ns: u64, windows: usize) -> Vec<f64> {
    let mut counts = vec![0.0; windows];
    for arrival in schedule(law).arrivals() {
        let Some(count) = counts.get_mut((arrival.due_ns / window_ns) as usize) else {
            break;
        };
        *count += 1.0;
    }
    counts
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, variance)
}

fn laws() -> Vec<ArrivalLaw> {
    vec![
        ArrivalLaw::Constant { rate: 777.0 },
        ArrivalLaw::Poisson { rate: 1000.0 },
        ArrivalLaw::LognormalGaps {
            rate: 200.0,
            cv: 2.0,
        },
        ArrivalLaw::LognormalRate {
            rate: 200.0,
            cv: 0.5,
            slot_ns: SECOND,
        },
        ArrivalLaw::PeriodicBatch {
            clients: 8,
            period_ns: 5 * SECOND,
            min: 10,
            max: 100,
            spread_ns: 0,
            gap_ns: 0,
        },
        ArrivalLaw::PeriodicBatch {
            clients: 3,
            period_ns: SECOND,
            min: 0,
            max: 40,
            spread_ns: SECOND,
            gap_ns: 0,
        },
        ArrivalLaw::Ramp {
            from: 100.0,
            to: 2000.0,
            over_ns: 8 * SECOND,
        },
        ArrivalLaw::Steps {
            rates: vec![500.0, 0.0, 100.0],
            step_ns: SECOND,
        },
    ]
}

/// Test 3: index of dispersion of counts over 10 000 s at 1000 per second, windows of 1 s.
#[test]
fn index_of_dispersion() {
    let lognormal_rate = ArrivalLaw::LognormalRate {
        rate: 1000.0,
        cv: 0.5,
        slot_ns: SECOND,
    };
    for (law, idc, tolerance, cv) in [
        (ArrivalLaw::Poisson { rate: 1000.0 }, 1.0, 0.15, 0.032),
        (
            ArrivalLaw::LognormalGaps {
                rate: 1000.0,
                cv: 2.0,
            },
            4.0,
            0.6,
            0.063,
        ),
        (lognormal_rate, 240.0, 60.0, 0.49),
    ] {
        let counts = counts(law.clone(), SECOND, 10_000);
        let (mean, variance) = mean_and_variance(&counts);
        assert!(
            (variance / mean - idc).abs() <= tolerance,
            "{law:?}: IDC {}",
            variance / mean
        );
        // The count of 10^4 windows has a standard error of sd/100.
        assert!(
            (mean - 1000.0).abs() <= 4.0 * variance.sqrt() / 100.0,
            "{law:?}: mean {mean}"
        );
        let count_cv = variance.sqrt() / mean;
        assert!((count_cv / cv - 1.0).abs() < 0.06, "{law:?}: CV {count_cv}");
    }
    let (mean, variance) =
        mean_and_variance(&counts(ArrivalLaw::Constant { rate: 1000.0 }, SECOND, 1000));
    assert_eq!((mean, variance), (1000.0, 0.0));
}

/// Within a slot of the random-rate process, arrivals form a Poisson process: in windows of 1/100 of a slot
/// the conditional dispersion is 1.
#[test]
fn random_rates_are_poisson_within_a_slot() {
    let law = ArrivalLaw::LognormalRate {
        rate: 1000.0,
        cv: 0.5,
        slot_ns: SECOND,
    };
    let counts = counts(law, SECOND / 100, 100_000);
    let mut within = 0.0;
    let mut total = 0.0;
    for slot in counts.chunks_exact(100) {
        let (mean, variance) = mean_and_variance(slot);
        within += variance;
        total += mean;
    }
    // Relative standard error of the pooled variance: √(2/99 000) = 0.45 %.
    assert!((within / total - 1.0).abs() < 0.02, "{}", within / total);
}

#[test]
fn gaps_have_their_moments() {
    for (law, mean, cv) in [
        (ArrivalLaw::Poisson { rate: 500.0 }, 2e6, 1.0),
        (
            ArrivalLaw::LognormalGaps {
                rate: 500.0,
                cv: 1.5,
            },
            2e6,
            1.5,
        ),
    ] {
        let due: Vec<u64> = schedule(law)
            .arrivals()
            .take(1_000_001)
            .map(|a| a.due_ns)
            .collect();
        let gaps: Vec<f64> = due.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let (got, variance) = mean_and_variance(&gaps);
        assert!(
            (got / mean - 1.0).abs() < 4.0 * cv / 1000.0,
            "mean gap {got}"
        );
        assert!(
            (variance.sqrt() / got / cv - 1.0).abs() < 0.03,
            "cv {}",
            variance.sqrt() / got
        );
        // docs/spec/scenarios.md section 1.3: the 99th percentile at cv 1.5 is 6.9 times the mean.
        if cv == 1.5 {
            let above = gaps.iter().filter(|&&g| g > 6.9 * mean).count() as f64 / 1e6;
            assert!((above - 0.01).abs() < 5e-4, "{above}");
        }
    }
}

/// Test 2, schedule part: the shares of any number of workers add up to the whole schedule.
#[test]
fn shares_make_up_the_whole_schedule() {
    for law in laws() {
        let schedule = schedule(law.clone());
        let whole: Vec<Arrival> = schedule.arrivals().take(3000).collect();
        assert!(whole.is_sorted_by_key(|a| a.due_ns), "{law:?}");
        assert!(whole.iter().enumerate().all(|(i, a)| a.seq == i as u64));
        for of in [1, 3, 8] {
            let mut merged: Vec<Arrival> = (0..of)
                .flat_map(|index| {
                    schedule
                        .shard(Shard { index, of })
                        .take_while(|a| a.seq < whole.len() as u64)
                })
                .collect();
            merged.sort_by_key(|a| a.seq);
            assert_eq!(merged, whole, "{law:?} in {of} shares");
        }
    }
}

#[test]
fn seeds_phases_and_works_have_different_schedules() {
    let law = ArrivalLaw::Poisson { rate: 1.0 };
    let first = |seed, phase, work| {
        let schedule = Schedule::new(seed, phase, work, &law).unwrap();
        schedule.arrivals().next().unwrap().due_ns
    };
    let mut all = vec![
        first(1, 0, 0),
        first(2, 0, 0),
        first(1, 1, 0),
        first(1, 0, 1),
    ];
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4);
    assert_eq!(first(1, 0, 0), first(1, 0, 0));
}

#[test]
fn constant_rates_do_not_drift() {
    for rate in [3.0, 777.0, 1000.0, 1e6 / 3.0] {
        let schedule = schedule(ArrivalLaw::Constant { rate });
        let seq = 1_000_000_000 - 1;
        let last = Shard {
            index: seq as u32,
            of: 1_000_000_000,
        };
        let arrival = schedule.shard(last).next().unwrap();
        assert_eq!(arrival.seq, seq);
        let exact = seq as f64 / rate * 1e9;
        assert!(
            (arrival.due_ns as f64 - exact).abs() <= 1.0 + exact * f64::EPSILON,
            "{rate}"
        );
    }
    let schedule = schedule(ArrivalLaw::Constant { rate: 1000.0 });
    let last = Shard {
        index: 999_999_999,
        of: 1_000_000_000,
    };
    assert_eq!(
        schedule.shard(last).next().unwrap().due_ns,
        999_999_999_000_000
    );
}

/// A Poisson process adds millions of gaps; a step law of constant rate passes through the same instants in
/// segments, so any drift of either would show as a difference.
#[test]
fn sums_do_not_drift() {
    let rate = 100_000.0;
    let whole = schedule(ArrivalLaw::Poisson { rate });
    let cut = schedule(ArrivalLaw::Steps {
        rates: vec![rate; 40],
        step_ns: SECOND,
    });
    let pairs = whole.arrivals().zip(cut.arrivals()).take(3_000_000);
    let worst = pairs
        .map(|(a, b)| a.due_ns.abs_diff(b.due_ns))
        .max()
        .unwrap();
    assert!(worst <= 1, "{worst} ns");
}

#[test]
fn ramps_and_steps_follow_their_intensity() {
    for (law, total) in [
        (
            ArrivalLaw::Ramp {
                from: 0.0,
                to: 20_000.0,
                over_ns: 10 * SECOND,
            },
            300_000.0,
        ),
        (
            ArrivalLaw::Ramp {
                from: 20_000.0,
                to: 5_000.0,
                over_ns: 10 * SECOND,
            },
            175_000.0,
        ),
        (
            ArrivalLaw::Ramp {
                from: 7_000.0,
                to: 9_000.0,
                over_ns: 0,
            },
            180_000.0,
        ),
        (
            ArrivalLaw::Steps {
                rates: vec![5_000.0, 0.0, 20_000.0],
                step_ns: 5 * SECOND,
            },
            225_000.0,
        ),
    ] {
        let schedule = schedule(law.clone());
        let windows = counts(law.clone(), SECOND, 20);
        assert_eq!(
            schedule.offered_between(0, 20 * SECOND) as f64,
            windows.iter().sum::<f64>()
        );
        assert!((schedule.expected_between(0, 20 * SECOND) - total).abs() < 1e-6 * total);
        assert!((schedule.mean_rate(20 * SECOND) - total / 20.0).abs() < 1e-6 * total);
        for (second, &count) in (0..).zip(&windows) {
            let expected = schedule.expected_between(second * SECOND, (second + 1) * SECOND);
            let four_se = 4.0 * expected.sqrt();
            assert!(
                (count - expected).abs() <= four_se,
                "{law:?} second {second}: {count}"
            );
        }
    }
}

#[test]
fn a_rate_that_stays_0_ends_the_schedule() {
    let down = schedule(ArrivalLaw::Ramp {
        from: 1000.0,
        to: 0.0,
        over_ns: SECOND,
    });
    let count = down
        .arrivals()
        .inspect(|a| assert!(a.due_ns <= SECOND))
        .count() as f64;
    assert!((count - 500.0).abs() < 4.0 * 500f64.sqrt(), "{count}");
    let steps = schedule(ArrivalLaw::Steps {
        rates: vec![100.0, 0.0],
        step_ns: SECOND,
    });
    assert!(steps.arrivals().count() > 50);
}

#[test]
fn counting_agrees_with_iterating() {
    for law in laws() {
        let schedule = schedule(law.clone());
        let (from, to) = (1_234_567_890, 4_321_098_765);
        let walked = schedule
            .arrivals()
            .take_while(|a| a.due_ns < to)
            .filter(|a| a.due_ns >= from)
            .count() as u64;
        assert_eq!(schedule.offered_between(from, to), walked, "{law:?}");
    }
    let constant = schedule(ArrivalLaw::Constant { rate: 1000.0 });
    assert_eq!(constant.offered_between(0, SECOND), 1000);
    assert_eq!(constant.offered_between(1, SECOND + 1), 1000);
    assert_eq!(constant.offered_between(SECOND, SECOND), 0);
}

/// Section 5: k ~ U{10..100} per 5 s and client: mean 55 (11 per second), standard deviation 26.2.
#[test]
fn backup_batches() {
    let law = ArrivalLaw::PeriodicBatch {
        clients: 1,
        period_ns: 5 * SECOND,
        min: 10,
        max: 100,
        spread_ns: 0,
        gap_ns: 0,
    };
    let periods = counts(law.clone(), 5 * SECOND, 20_000);
    let (mean, variance) = mean_and_variance(&periods);
    assert!((mean - 55.0).abs() < 4.0 * 26.2 / 141.0, "{mean}");
    assert!((variance.sqrt() - 26.2).abs() < 0.4, "{}", variance.sqrt());
    assert!(periods.iter().all(|k| (10.0..=100.0).contains(k)));
    assert!((schedule(law.clone()).mean_rate(5 * SECOND) - 11.0).abs() < 1e-9);
    // A whole batch is due at the tick, and ticks are exactly one period apart.
    let mut ticks: Vec<u64> = schedule(law)
        .arrivals()
        .take(5000)
        .map(|a| a.due_ns)
        .collect();
    ticks.dedup();
    assert!(ticks.windows(2).all(|w| w[1] - w[0] == 5 * SECOND));
}

/// Spread batches: uniform over the spread, starting at the tick.
#[test]
fn spread_batches_are_uniform() {
    let law = ArrivalLaw::PeriodicBatch {
        clients: 1,
        period_ns: 5 * SECOND,
        min: 50,
        max: 50,
        spread_ns: SECOND,
        gap_ns: 0,
    };
    let due: Vec<u64> = schedule(law)
        .arrivals()
        .take(200_000)
        .map(|a| a.due_ns)
        .collect();
    // The tick is not an arrival here; find it as the common start of all batches.
    let phases: Vec<u64> = due.iter().map(|d| d % (5 * SECOND)).collect();
    let start = *phases.iter().min().unwrap();
    let mut cells = [0.0; 10];
    for phase in &phases {
        cells[((phase - start) / (SECOND / 10)).min(9) as usize] += 1.0;
    }
    // 9 degrees of freedom, 0.999 quantile 27.9.
    let chi2: f64 = cells.iter().map(|c: &f64| (c - 2e4).powi(2) / 2e4).sum();
    assert!(chi2 < 27.9, "{chi2} {cells:?}");
    for batch in phases.chunks_exact(50) {
        assert!(batch.is_sorted() && batch[49] - batch[0] < SECOND);
    }
}

/// Paced batches: a fixed gap starting at the tick, even if batches of several clients overlap.
#[test]
fn paced_batches_keep_their_gap() {
    let law = |clients| ArrivalLaw::PeriodicBatch {
        clients,
        period_ns: 5 * SECOND,
        min: 10,
        max: 100,
        spread_ns: 0,
        gap_ns: SECOND / 25,
    };
    let due: Vec<u64> = schedule(law(1))
        .arrivals()
        .take(50_000)
        .map(|a| a.due_ns)
        .collect();
    let mut length = 1;
    for pair in due.windows(2) {
        match pair[1] - pair[0] {
            gap if gap == SECOND / 25 => length += 1,
            // From the end of one batch to the next tick.
            gap => {
                assert!((10..=100).contains(&length), "{length}");
                assert_eq!(gap, 5 * SECOND - (length - 1) * SECOND / 25);
                length = 1;
            }
        }
    }
    let several = schedule(law(8));
    assert!(
        several
            .arrivals()
            .take(50_000)
            .is_sorted_by_key(|a| a.due_ns)
    );
    let expected = several.expected_between(0, 5000 * SECOND);
    let walked = several.offered_between(0, 5000 * SECOND) as f64;
    // 8000 batches of standard deviation 26.2.
    assert!(
        (walked - expected).abs() < 4.0 * 26.2 * 8000f64.sqrt(),
        "{walked} {expected}"
    );
}

#[test]
fn clients_have_different_phases() {
    let law = ArrivalLaw::PeriodicBatch {
        clients: 1000,
        period_ns: 10 * SECOND,
        min: 1,
        max: 1,
        spread_ns: 0,
        gap_ns: 0,
    };
    let per_second = counts(law, SECOND, 10);
    // Multinomial: 100 ± 4·√90 in each second.
    assert!(
        per_second.iter().all(|c| (c - 100.0).abs() < 38.0),
        "{per_second:?}"
    );
    assert_eq!(per_second.iter().sum::<f64>(), 1000.0);
}

#[test]
fn impossible_laws_are_rejected() {
    let batch = |clients, period_ns, min, max, spread_ns| ArrivalLaw::PeriodicBatch {
        clients,
        period_ns,
        min,
        max,
        spread_ns,
        gap_ns: 0,
    };
    let paced = |spread_ns, gap_ns| ArrivalLaw::PeriodicBatch {
        clients: 1,
        period_ns: 10,
        min: 1,
        max: 3,
        spread_ns,
        gap_ns,
    };
    for (law, field) in [
        (ArrivalLaw::Constant { rate: 0.0 }, "rate"),
        (ArrivalLaw::Poisson { rate: f64::NAN }, "rate"),
        (ArrivalLaw::Poisson { rate: 1e10 }, "rate"),
        (ArrivalLaw::LognormalGaps { rate: 1.0, cv: 0.0 }, "cv"),
        (
            ArrivalLaw::LognormalRate {
                rate: 1.0,
                cv: 1.0,
                slot_ns: 0,
            },
            "slot_ns",
        ),
        (batch(0, 1, 1, 1, 0), "clients"),
        (batch(1, 0, 1, 1, 0), "period_ns"),
        (batch(1, 1, 0, 0, 0), "max"),
        (batch(1, 1, 2, 1, 0), "min"),
        (batch(1, 1, 1, 1, 2), "spread_ns"),
        (paced(0, 6), "gap_ns"),
        (paced(5, 1), "gap_ns"),
        (
            ArrivalLaw::Ramp {
                from: 0.0,
                to: 0.0,
                over_ns: 1,
            },
            "from + to",
        ),
        (
            ArrivalLaw::Ramp {
                from: -1.0,
                to: 2.0,
                over_ns: 1,
            },
            "from",
        ),
        (
            ArrivalLaw::Steps {
                rates: vec![],
                step_ns: 1,
            },
            "rates",
        ),
        (
            ArrivalLaw::Steps {
                rates: vec![1.0, -1.0],
                step_ns: 1,
            },
            "rates[1]",
        ),
        (
            ArrivalLaw::Steps {
                rates: vec![1.0],
                step_ns: 0,
            },
            "step_ns",
        ),
    ] {
        let error = Schedule::new(1, 0, 0, &law).unwrap_err();
        assert_eq!(error.field, format!("arrival.{field}"), "{law:?}");
    }
}
