//! Random numbers as functions of seed, fault and connection, so that a drill repeats exactly.

use bucketload_core::generate::rng::mix64;
use bucketload_core::plan::GapLaw;

/// What a draw decides. Draws for different purposes are independent.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Strike = 1,
    Delay = 2,
    Answer = 3,
}

/// A number from 0 to below 1.
pub(crate) fn uniform(seed: u64, purpose: Purpose, fault: usize, round: u32, n: u64) -> f64 {
    let words = [purpose as u64, fault as u64, u64::from(round), n];
    let mixed = words
        .into_iter()
        .fold(mix64(seed), |state, word| mix64(state ^ mix64(word)));
    // 53 bits fit exactly.
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

/// A delay of `law`, nanoseconds, for a uniform number `u`.
pub(crate) fn delay(law: GapLaw, u: f64) -> u64 {
    match law {
        GapLaw::None => 0,
        GapLaw::Constant { ns } => ns,
        GapLaw::Exponential { mean_ns } => (-(mean_ns as f64) * (1.0 - u).ln()) as u64,
        GapLaw::Uniform { min_ns, max_ns } => min_ns + ((max_ns - min_ns) as f64 * u) as u64,
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::plan::GapLaw;

    use super::{Purpose, delay, uniform};

    #[test]
    fn draws_are_even_and_repeat() {
        let draw = |n| uniform(7, Purpose::Strike, 1, 0, n);
        let below = (0..10_000).filter(|&n| draw(n) < 0.3).count();
        // Six standard deviations of a binomial.
        assert!((2725..=3275).contains(&below), "{below}");
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), uniform(8, Purpose::Strike, 1, 0, 5));
    }

    #[test]
    fn delays_follow_their_law() {
        let mean = |law| {
            let all = (0..10_000).map(|n| delay(law, uniform(1, Purpose::Delay, 0, 0, n)));
            all.sum::<u64>() as f64 / 10_000.0
        };
        let even = GapLaw::Uniform {
            min_ns: 15_000_000,
            max_ns: 25_000_000,
        };
        assert!((mean(even) - 20e6).abs() < 0.2e6);
        assert!((mean(GapLaw::Exponential { mean_ns: 1_000_000 }) - 1e6).abs() < 6e4);
        assert_eq!(mean(GapLaw::None), 0.0);
    }
}
