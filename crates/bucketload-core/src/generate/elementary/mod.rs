//! Exponential and logarithm with identical bits on every machine.
//!
//! The standard library calls the platform's mathematical library, whose last digit depends on its version
//! and on the processor (fused multiply-add or not). Two agents would then occasionally disagree about the
//! size of an object or the rank of an operation. The functions here use only additions, multiplications,
//! divisions and bit patterns, which IEEE 754 defines completely.
//!
//! `exp` and `ln`, which every operation calls several times, look up the nearest of 128 points and add a
//! short polynomial: no division, errors below 2 units in the last place. `exp_m1` and `ln_1p` follow fdlibm
//! (Sun Microsystems, 1993): reduction by multiples of ln 2, then a rational approximation, with errors below
//! 3 units.

mod tables;

use std::f64::consts::LN_2;

/// ln 2 in two parts; products of the first with integers below 2^20 are exact.
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);

/// Adding and then subtracting 1.5·2^52 rounds to the nearest integer, which the low bits then hold.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// x = k·ln 2 + r with |r| ≤ ln 2 / 2: returns k and exp(r) - 1.
#[inline(always)]
fn reduce(x: f64) -> (i32, f64) {
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let k = shifted.to_bits() as i32;
    let turns = shifted - ROUND;
    let high = x - turns * LN2_HIGH;
    let low = turns * LN2_LOW;
    let r = high - low;
    let t = r * r;
    // Approximation like r·coth(r/2) on t: exp(r) = 1 + r + r·c/(2 - c).
    let c = r - t
        * (0.166_666_666_666_666_02
            + t * (-0.002_777_777_777_701_559_3
                + t * (6.613_756_321_437_934e-5
                    + t * (-1.653_390_220_546_525_2e-6 + t * 4.138_136_797_057_238_5e-8))));
    (k, high - (low - r * c / (2.0 - c)))
}

/// 2^k for k in -1022..=1023.
#[inline(always)]
const fn power_of_two(k: i32) -> f64 {
    f64::from_bits(((1023 + k as i64) as u64) << 52)
}

/// e^x. Above 708 infinite, below -708 zero.
#[inline]
#[must_use]
pub fn exp(x: f64) -> f64 {
    if x.abs() <= 708.0 {
        // x = n·ln 2/128 + r with |r| ≤ ln 2/256, and 2^(n/128) from the table.
        let shifted = x * (128.0 / LN_2) + ROUND;
        let n = shifted.to_bits() as i32;
        let turns = shifted - ROUND;
        let r = (x - turns * (LN2_HIGH / 128.0)) - turns * (LN2_LOW / 128.0);
        let r2 = r * r;
        // e^r - 1; the next term of the series is below 2^-60.
        let rest = r + r2 * (0.5 + r * (1.0 / 6.0)) + r2 * r2 * (1.0 / 24.0 + r * (1.0 / 120.0));
        let base = tables::EXP2[(n & 127) as usize];
        return (base + base * rest) * power_of_two(n >> 7);
    }
    if x.is_nan() {
        x
    } else if x > 0.0 {
        f64::INFINITY
    } else {
        0.0
    }
}

/// e^x - 1, accurate near 0.
#[inline]
#[must_use]
pub fn exp_m1(x: f64) -> f64 {
    if x.abs() <= 708.0 {
        let (k, rest) = reduce(x);
        let scale = power_of_two(k);
        return scale * rest + (scale - 1.0);
    }
    exp(x) - 1.0
}

/// ln of u = 2^k·(1+f), plus `correction`.
#[inline(always)]
fn ln_of_normal(u: f64, correction: f64) -> f64 {
    // Shift the exponent's boundary from 1 to √½, so that √½ ≤ 1+f < √2.
    const OFFSET: u64 = 0x3ff0_0000_0000_0000 - 0x3fe6_a09e_0000_0000;
    let bits = u.to_bits().wrapping_add(OFFSET);
    let k = (bits >> 52) as i64 - 1023;
    let mantissa = (bits & 0x000f_ffff_ffff_ffff).wrapping_add(0x3fe6_a09e_0000_0000);
    let f = f64::from_bits(mantissa) - 1.0;
    let k = k as f64;
    // ln(1+f) = f - f²/2 + s·(f²/2 + R(s²)) with s = f/(2+f).
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let odd = z
        * (0.666_666_666_666_673_5
            + w * (0.285_714_287_436_623_9
                + w * (0.181_835_721_616_180_5 + w * 0.147_981_986_051_165_86)));
    let even = w
        * (0.399_999_999_994_094_2 + w * (0.222_221_984_321_497_84 + w * 0.153_138_376_992_093_73));
    let half = 0.5 * f * f;
    k * LN2_HIGH - ((half - (s * (half + odd + even) + (k * LN2_LOW + correction))) - f)
}

/// ln x. Minus infinity at 0 (and below the smallest normal number), NaN below 0.
#[inline]
#[must_use]
pub fn ln(x: f64) -> f64 {
    if (f64::MIN_POSITIVE..f64::INFINITY).contains(&x) {
        // x = 2^k·m, m = c·(1 + r) with c = 1 + i/128 the nearest such point to m. From √2 on, c/2 and k+1
        // replace c and k to avoid cancellation near 1.
        let bits = x.to_bits();
        let mantissa = bits & 0x000f_ffff_ffff_ffff;
        let i = (mantissa + (1 << 44)) >> 45;
        let k = ((bits >> 52) as i32 - 1023 + i32::from(i >= 53)) as f64;
        let m = f64::from_bits(mantissa | 0x3ff0_0000_0000_0000);
        let c = f64::from_bits((1023 << 52) + (i << 45));
        let r = (m - c) * INVERSE[i as usize];
        let r2 = r * r;
        // ln(1 + r) - r; the next term of the series is below 2^-59 of r.
        let rest = r2 * (-0.5 + r * (1.0 / 3.0))
            + r2 * r2 * (-0.25 + r * 0.2 + r2 * (-1.0 / 6.0 + r * (1.0 / 7.0)));
        return (k * LN2_HIGH + tables::LN[i as usize]) + (r + (rest + k * LN2_LOW));
    }
    if (0.0..1.0).contains(&x) {
        f64::NEG_INFINITY
    } else if x == f64::INFINITY {
        x
    } else {
        f64::NAN
    }
}

/// 1/(1 + i/128).
static INVERSE: [f64; 129] = {
    let mut inverse = [0.0; 129];
    let mut i = 0;
    while i < inverse.len() {
        inverse[i] = 128.0 / (128.0 + i as f64);
        i += 1;
    }
    inverse
};

/// ln(1 + d), accurate near 0. Minus infinity at -1, NaN below.
#[inline]
#[must_use]
pub fn ln_1p(d: f64) -> f64 {
    let u = 1.0 + d;
    if u > 0.0 && u < f64::INFINITY {
        // The rounding error of the sum 1 + d, relative to the sum.
        let lost = if d < 1.0 {
            d - (u - 1.0)
        } else {
            1.0 - (u - d)
        };
        ln_of_normal(u, lost / u)
    } else {
        ln(u)
    }
}

/// x^y for x > 0, to about |y·ln x| units in the last place.
#[inline]
#[must_use]
pub fn pow(x: f64, y: f64) -> f64 {
    exp(y * ln(x))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{exp, exp_m1, ln, ln_1p, pow};

    /// Difference in units in the last place of `want`.
    fn ulps(got: f64, want: f64) -> f64 {
        if got == want || got.is_nan() && want.is_nan() {
            return 0.0;
        }
        (got - want).abs() / (f64::from_bits(want.abs().to_bits() + 1) - want.abs())
    }

    proptest! {
        #[test]
        fn agree_with_the_platform(x in -700.0f64..700.0, y in -1.5f64..1.5, e in -300i32..300) {
            prop_assert!(ulps(exp(x), x.exp()) <= 2.0);
            prop_assert!(ulps(exp(y), y.exp()) <= 2.0);
            prop_assert!(ulps(exp_m1(x), x.exp_m1()) <= 3.0);
            let tiny = y * 10f64.powi(-e.abs());
            prop_assert!(ulps(exp_m1(y), y.exp_m1()) <= 3.0, "{} {}", exp_m1(y), y.exp_m1());
            prop_assert!(ulps(exp_m1(tiny), tiny.exp_m1()) <= 2.0);
            let wide = (y.abs() + 1e-3) * 10f64.powi(e);
            prop_assert!(ulps(ln(wide), wide.ln()) <= 2.0);
            prop_assert!(ulps(ln(1.0 + 0.1 * y), (1.0 + 0.1 * y).ln()) <= 2.0);
            let close = 1.0 + 1e-9 * y;
            prop_assert!(ulps(ln(close), close.ln()) <= 2.0);
            prop_assert!(ulps(ln_1p(wide), wide.ln_1p()) <= 2.0);
            prop_assert!(ulps(ln_1p(0.6 * y), (0.6 * y).ln_1p()) <= 2.0);
            prop_assert!(ulps(ln_1p(tiny * 0.6), (tiny * 0.6).ln_1p()) <= 2.0);
            let moderate = 10f64.powf(100.0 * y);
            prop_assert!((pow(moderate, y) / moderate.powf(y) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(1e9), f64::INFINITY);
        assert_eq!(exp(-1e9), 0.0);
        assert_eq!(exp(f64::INFINITY), f64::INFINITY);
        assert_eq!(exp(f64::NEG_INFINITY), 0.0);
        assert!(exp(f64::NAN).is_nan());
        assert_eq!(exp_m1(0.0), 0.0);
        assert_eq!(exp_m1(f64::NEG_INFINITY), -1.0);
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(ln(0.0), f64::NEG_INFINITY);
        assert_eq!(ln(f64::INFINITY), f64::INFINITY);
        assert!(ln(-1.0).is_nan() && ln(f64::NAN).is_nan());
        assert_eq!(ln_1p(0.0), 0.0);
        assert_eq!(ln_1p(-1.0), f64::NEG_INFINITY);
        assert_eq!(ln_1p(f64::INFINITY), f64::INFINITY);
        assert!(ln_1p(-2.0).is_nan());
    }

    /// The bits that every machine must produce.
    #[test]
    fn pinned_bits() {
        let sum = |f: fn(f64) -> f64| {
            (1..1000).fold(0u64, |sum, i| {
                sum.rotate_left(1)
                    .wrapping_add(f(f64::from(i) * 0.013).to_bits())
            })
        };
        let all = [exp, exp_m1, ln, ln_1p].map(sum);
        let pinned = [
            2_354_494_981_590_881_062,
            12_000_992_000_605_541_917,
            13_841_811_697_805_355_321,
            3_083_825_132_848_382_177,
        ];
        assert_eq!(all, pinned);
    }
}
