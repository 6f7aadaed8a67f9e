//! Theoretical shares of the popularity laws (docs/spec/scenarios.md section 3.4) and their limits.

use proptest::prelude::*;

use bucketload_core::generate::popularity::Popularity;
use bucketload_core::generate::rng::{Draws, Purpose, Stream};
use bucketload_core::plan::KeyLaw;

fn law(keys: KeyLaw, n: u64) -> Popularity {
    Popularity::new(&keys, n).unwrap()
}

const ZIPF99: KeyLaw = KeyLaw::Zipf {
    theta: 0.99,
    scramble: true,
};

/// Rows of docs/spec/scenarios.md section 3.4.
#[test]
fn published_concentrations() {
    let zm = |s, v| KeyLaw::ZipfMandelbrot {
        s,
        v,
        scramble: false,
    };
    for (keys, n, top1, top10, effective) in [
        (zm(1.5, 2.0), 1_000_000, 0.220, 0.637, 12.8),
        (zm(1.8, 1.0), 1_000_000, 0.531, 0.899, 3.2),
        (ZIPF99, 100_000, 0.078, 0.23, 98.0),
        (ZIPF99, 2_000_000, 0.062, 0.18, 158.0),
        (
            KeyLaw::Zipf {
                theta: 1.1,
                scramble: true,
            },
            100_000,
            0.135,
            0.36,
            37.0,
        ),
    ] {
        let shares = law(keys.clone(), n).shares();
        assert!((shares.top1 - top1).abs() < 6e-4, "{keys:?} {shares:?}");
        assert!((shares.top10 - top10).abs() < 6e-3, "{keys:?} {shares:?}");
        assert!(
            (shares.effective_keys / effective - 1.0).abs() < 0.015,
            "{keys:?} {shares:?}"
        );
    }
}

#[test]
fn stated_shares_of_hotspot_and_exponential_are_exact() {
    let hotspot = law(
        KeyLaw::Hotspot {
            data: 0.2,
            ops: 0.8,
            scramble: true,
        },
        1000,
    );
    assert!((hotspot.share_of_top(200) - 0.8).abs() < 1e-12);
    let reversed = law(
        KeyLaw::Hotspot {
            data: 0.2,
            ops: 0.1,
            scramble: true,
        },
        1000,
    );
    assert!((reversed.share_of_top(800) - 0.9).abs() < 1e-12);
    let keys = KeyLaw::Exponential {
        percentile: 0.95,
        fraction: 0.857,
        scramble: false,
    };
    assert!((law(keys, 1000).share_of_top(857) - 0.95).abs() < 1e-12);
}

#[test]
fn a_billion_keys_need_no_more_memory_than_a_thousand() {
    for n in [1_000, 1_000_000_000, 1 << 62] {
        let popularity = law(ZIPF99, n);
        assert!(popularity.shares().top1 > 0.015);
        let mut draws = Draws::new(1, Stream::new(Purpose::Key, 0, 0), n);
        assert!(popularity.rank(&mut draws) < n);
    }
}

#[test]
fn bad_parameters_name_the_field() {
    let error = |keys| Popularity::new(&keys, 10).unwrap_err().field;
    assert_eq!(
        error(KeyLaw::Zipf {
            theta: 0.0,
            scramble: true
        }),
        "theta"
    );
    assert_eq!(
        error(KeyLaw::Latest {
            theta: -1.0,
            lag: 0
        }),
        "theta"
    );
    assert_eq!(
        error(KeyLaw::ZipfMandelbrot {
            s: -1.0,
            v: 1.0,
            scramble: true
        }),
        "s"
    );
    assert_eq!(
        error(KeyLaw::Hotspot {
            data: 1.5,
            ops: 0.5,
            scramble: true
        }),
        "data"
    );
    assert_eq!(
        error(KeyLaw::Hotspot {
            data: 0.5,
            ops: 1.5,
            scramble: true
        }),
        "ops"
    );
    let keys = KeyLaw::Exponential {
        percentile: 0.5,
        fraction: 0.8,
        scramble: true,
    };
    assert_eq!(error(keys), "percentile");
    assert_eq!(
        Popularity::new(&KeyLaw::Uniform, 0).unwrap_err().field,
        "count"
    );
}

proptest! {
    #[test]
    fn ranks_stay_in_range_and_shares_are_ordered(n in 1u64..=1 << 63, i in any::<u64>(), pick in 0usize..5) {
        let keys = [
            KeyLaw::Uniform,
            ZIPF99,
            KeyLaw::ZipfMandelbrot { s: 1.5, v: 2.0, scramble: false },
            KeyLaw::Hotspot { data: 0.2, ops: 0.8, scramble: true },
            KeyLaw::Exponential { percentile: 0.95, fraction: 0.857, scramble: false },
        ][pick].clone();
        let popularity = law(keys, n);
        let mut draws = Draws::new(1, Stream::new(Purpose::Key, 0, 0), i);
        prop_assert!(popularity.rank(&mut draws) < n);
        let s = popularity.shares();
        prop_assert!(0.0 < s.top1 && s.top1 <= s.top10 && s.top10 <= s.top100);
        prop_assert!(s.top100 <= 1.0 + 1e-12);
        prop_assert!(s.effective_keys >= 1.0 - 1e-9);
        prop_assert!(s.effective_keys <= n as f64 * (1.0 + 1e-9));
    }
}
