//! The normal distribution and a quadrature rule, for the samplers.

use std::f64::consts::FRAC_1_SQRT_2;

use super::elementary::{exp, ln};

/// Φ(x), the standard normal distribution function. Relative error about 1e-15; in the far lower tail it
/// grows with x², like that of the exponential.
#[inline]
#[must_use]
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * erfc(-x * FRAC_1_SQRT_2)
}

/// erfc(x) = 2/√π·∫ exp(-t²) from x, by the rational approximations of Cody, "Rational Chebyshev
/// approximations for the error function" (Math. Comp. 23, 1969).
#[inline]
#[must_use]
pub fn erfc(x: f64) -> f64 {
    let y = x.abs();
    if y <= NEAR {
        return 1.0 - erf_near(x);
    }
    if y > 27.5 {
        // Below the smallest representable number.
        return if x < 0.0 { 2.0 } else { 0.0 };
    }
    // exp(-y²), with the square split into an exact part and a small remainder.
    let coarse = (y * 16.0).trunc() / 16.0;
    let rest = (y - coarse) * (y + coarse);
    let tail = exp(-coarse * coarse) * exp(-rest) * erfcx_far(y);
    if x < 0.0 { 2.0 - tail } else { tail }
}

/// exp(x²)·erfc(x) for x ≥ 0, which neither underflows nor overflows; from the same source as [`erfc`].
#[inline]
#[must_use]
pub fn erfcx(x: f64) -> f64 {
    if x <= NEAR {
        exp(x * x) * (1.0 - erf_near(x))
    } else {
        erfcx_far(x)
    }
}

/// The limit of Cody's first approximation.
const NEAR: f64 = 0.46875;

fn erf_near(x: f64) -> f64 {
    let z = x * x;
    let num = (((0.185_777_706_184_603_15 * z + 3.161_123_743_870_565_5) * z
        + 113.864_154_151_050_16)
        * z
        + 377.485_237_685_302)
        * z
        + 3_209.377_589_138_469_4;
    let den = (((z + 23.601_290_952_344_122) * z + 244.024_637_934_444_17) * z
        + 1_282.616_526_077_372_3)
        * z
        + 2_844.236_833_439_171;
    x * num / den
}

fn erfcx_far(y: f64) -> f64 {
    /// 1/√π.
    const FRAC_1_SQRT_PI: f64 = 0.564_189_583_547_756_3;
    if y <= 4.0 {
        const NUM: [f64; 8] = [
            1_230.339_354_797_997_2,
            2_051.078_377_826_071_6,
            1_712.047_612_634_070_7,
            881.952_221_241_769,
            298.635_138_197_400_1,
            66.119_190_637_141_63,
            8.883_149_794_388_377,
            0.564_188_496_988_670_1,
        ];
        const DEN: [f64; 8] = [
            1_230.339_354_803_749_5,
            3_439.367_674_143_721_6,
            4_362.619_090_143_247,
            3_290.799_235_733_459_7,
            1_621.389_574_566_690_3,
            537.181_101_862_009_9,
            117.693_950_891_312_5,
            15.744_926_110_709_835,
        ];
        let squared = y * y;
        let fourth = squared * squared;
        let eighth = fourth * fourth;
        let num = horner(y, &NUM) + 2.153_115_354_744_038_3e-8 * eighth;
        return num / (horner(y, &DEN) + eighth);
    }
    let z = 1.0 / (y * y);
    let num = ((((0.016_315_387_137_302_097 * z + 0.305_326_634_961_232_36) * z
        + 0.360_344_899_949_804_45)
        * z
        + 0.125_781_726_111_229_26)
        * z
        + 0.016_083_785_148_742_275)
        * z
        + 6.587_491_615_298_378e-4;
    let den = ((((z + 2.568_520_192_289_822) * z + 1.872_952_849_923_460_4) * z
        + 0.527_905_102_951_428_5)
        * z
        + 0.060_518_341_312_441_32)
        * z
        + 0.002_335_204_976_268_691_8;
    (FRAC_1_SQRT_PI - z * num / den) / y
}

#[inline(always)]
fn horner(x: f64, c: &[f64; 8]) -> f64 {
    let low = c[0] + x * (c[1] + x * (c[2] + x * c[3]));
    let high = c[4] + x * (c[5] + x * (c[6] + x * c[7]));
    let x2 = x * x;
    low + x2 * x2 * high
}

/// Φ⁻¹(p), the standard normal quantile, with a relative error of about 1e-15: algorithm AS 241, routine
/// PPND16 (Wichura, Applied Statistics 37, 1988). Infinite at 0 and 1.
#[inline]
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * horner(r, &CENTRE_NUM) / horner(r, &CENTRE_DEN);
    }
    normal_quantile_tail(p, q)
}

fn normal_quantile_tail(p: f64, q: f64) -> f64 {
    let tail = p.min(1.0 - p);
    if tail <= 0.0 {
        return f64::INFINITY.copysign(q);
    }
    let r = (-ln(tail)).sqrt();
    let x = if r <= 5.0 {
        horner(r - 1.6, &MIDDLE_NUM) / horner(r - 1.6, &MIDDLE_DEN)
    } else {
        horner(r - 5.0, &FAR_NUM) / horner(r - 5.0, &FAR_DEN)
    };
    x.copysign(q)
}

const CENTRE_NUM: [f64; 8] = [
    3.387_132_872_796_366_5,
    133.141_667_891_784_38,
    1_971.590_950_306_551_3,
    13_731.693_765_509_46,
    45_921.953_931_549_87,
    67_265.770_927_008_7,
    33_430.575_583_588_13,
    2_509.080_928_730_122_7,
];
const CENTRE_DEN: [f64; 8] = [
    1.0,
    42.313_330_701_600_91,
    687.187_007_492_057_9,
    5_394.196_021_424_751,
    21_213.794_301_586_597,
    39_307.895_800_092_71,
    28_729.085_735_721_943,
    5_226.495_278_852_854,
];
const MIDDLE_NUM: [f64; 8] = [
    1.423_437_110_749_683_5,
    4.630_337_846_156_546,
    5.769_497_221_460_691,
    3.647_848_324_763_204_5,
    1.270_458_252_452_368_4,
    0.241_780_725_177_450_6,
    0.022_723_844_989_269_184,
    7.745_450_142_783_414e-4,
];
const MIDDLE_DEN: [f64; 8] = [
    1.0,
    2.053_191_626_637_759,
    1.676_384_830_183_803_8,
    0.689_767_334_985_1,
    0.148_103_976_427_480_08,
    0.015_198_666_563_616_457,
    5.475_938_084_995_345e-4,
    1.050_750_071_644_416_9e-9,
];
const FAR_NUM: [f64; 8] = [
    6.657_904_643_501_103,
    5.463_784_911_164_114,
    1.784_826_539_917_291_3,
    0.296_560_571_828_504_87,
    0.026_532_189_526_576_124,
    0.001_242_660_947_388_078_4,
    2.711_555_568_743_487_6e-5,
    2.010_334_399_292_288_1e-7,
];
const FAR_DEN: [f64; 8] = [
    1.0,
    0.599_832_206_555_888,
    0.136_929_880_922_735_8,
    0.014_875_361_290_850_615,
    7.868_691_311_456_133e-4,
    1.846_318_317_510_054_8e-5,
    1.421_511_758_316_446e-7,
    2.044_263_103_389_939_8e-15,
];

/// ∫ f over [a, b] by the 5-point Gauss-Legendre rule on `panels` equal panels.
#[must_use]
pub fn integrate(f: impl Fn(f64) -> f64, a: f64, b: f64, panels: u32) -> f64 {
    const NODE: [f64; 3] = [0.0, 0.538_469_310_105_683_1, 0.906_179_845_938_664];
    const WEIGHT: [f64; 3] = [
        0.568_888_888_888_888_9,
        0.478_628_670_499_366_47,
        0.236_926_885_056_189_08,
    ];
    let half = 0.5 * (b - a) / f64::from(panels);
    (0..panels)
        .map(|panel| {
            let mid = a + half * f64::from(2 * panel + 1);
            let pair = |i: usize| f(mid - half * NODE[i]) + f(mid + half * NODE[i]);
            half * (WEIGHT[0] * f(mid) + WEIGHT[1] * pair(1) + WEIGHT[2] * pair(2))
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{NEAR, erfc, erfcx, integrate, normal_cdf, normal_quantile};

    #[test]
    fn normal_quantile_has_the_published_check_values() {
        // Wichura 1988, section "Test of accuracy".
        assert!((normal_quantile(0.25) + 0.674_489_750_196_081_7).abs() < 1e-15);
        assert!((normal_quantile(0.001) + 3.090_232_306_167_813_5).abs() < 1e-14);
        assert!((normal_quantile(1e-20) + 9.262_340_089_798_408).abs() < 1e-13);
        assert_eq!(normal_quantile(0.5), 0.0);
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
    }

    /// Values of the complementary error function to 16 digits (DLMF table 7.23 extended).
    #[test]
    fn erfc_has_known_values() {
        for (x, want) in [
            (-1.0, 1.842_700_792_949_715),
            (0.0, 1.0),
            (0.25, 0.723_673_609_831_763_1),
            (0.5, 0.479_500_122_186_953_5),
            (1.0, 0.157_299_207_050_285_13),
            (2.0, 0.004_677_734_981_047_266),
            (3.0, 2.209_049_699_858_544e-5),
            (5.0, 1.537_459_794_428_035e-12),
            (10.0, 2.088_487_583_762_545e-45),
        ] {
            let got = erfc(x);
            assert!((got / want - 1.0).abs() < 2e-15, "{x} {got} {want}");
        }
    }

    #[test]
    fn erfcx_is_continuous_where_the_method_changes() {
        for x in [NEAR, 4.0] {
            let (a, b) = (erfcx(x), erfcx(x + 1e-14));
            assert!((a / b - 1.0).abs() < 1e-13, "{x} {a} {b}");
        }
        // DLMF 7.12: erfcx(x) ~ 1 / (x √π).
        assert!((erfcx(1e6) * 1e6 * std::f64::consts::PI.sqrt() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn quadrature_is_exact_for_degree_nine() {
        let got = integrate(|x| x.powi(9), 0.0, 2.0, 1);
        assert!((got - 102.4).abs() < 1e-10, "{got}");
    }

    proptest! {
        #[test]
        fn quantile_inverts_the_distribution_function(x in -8.0f64..8.0) {
            let p = normal_cdf(x);
            // The upper tail is limited by the spacing of p near 1.
            let slope = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
            let tolerance = 4e-15 * (1.0 + x.abs()) + 2.0 * f64::EPSILON * p / slope;
            prop_assert!((normal_quantile(p) - x).abs() <= tolerance);
        }
    }
}
