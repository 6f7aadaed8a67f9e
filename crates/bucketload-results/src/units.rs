//! Numbers as text with three significant digits, of constant length to align columns.

/// Bytes of a MiB.
pub(crate) const MIB: f64 = 1_048_576.0;

/// A duration in nanoseconds, with the unit that suits its size.
#[must_use]
pub fn ns(value: f64) -> String {
    scaled(value, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")])
}

/// A number of bytes with a binary unit.
#[must_use]
pub fn bytes(value: f64) -> String {
    const KIB: f64 = 1024.0;
    scaled(
        value,
        &[
            (KIB * KIB * KIB * KIB, "TiB"),
            (KIB * KIB * KIB, "GiB"),
            (KIB * KIB, "MiB"),
            (KIB, "KiB"),
            (1.0, "B"),
        ],
    )
}

/// A count with commas between thousands.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A rate or another number: two decimals below 10, one below 1000, none above.
#[must_use]
pub fn rate(value: f64) -> String {
    if value.abs() < 9.995 {
        format!("{value:.2}")
    } else if value.abs() < 999.95 {
        format!("{value:.1}")
    } else {
        count(value.round().max(0.0) as u64)
    }
}

/// A number of any size with about three significant digits.
#[must_use]
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        a if !a.is_finite() => return "–".to_owned(),
        a if a == 0.0 || a >= 100.0 => 0,
        a if a >= 10.0 => 1,
        a if a >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Seconds, with as many digits as suit their size.
#[must_use]
pub fn seconds(s: f64) -> String {
    if s < 10.0 {
        format!("{s:.1} s")
    } else if s < 600.0 {
        format!("{s:.0} s")
    } else if s < 36_000.0 {
        format!(
            "{:.0} min {:02.0} s",
            (s / 60.0).floor(),
            (s % 60.0).floor()
        )
    } else {
        let minutes = (s % 3600.0 / 60.0).floor();
        format!("{:.0} h {minutes:02.0} min", (s / 3600.0).floor())
    }
}

/// A share as a percentage.
#[must_use]
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value != 0.0 && value.abs() < 1.0 {
        format!("{value:.2} %")
    } else {
        format!("{value:.1} %")
    }
}

fn scaled(value: f64, steps: &[(f64, &str)]) -> String {
    let smallest = steps[steps.len() - 1];
    // A value that would round up to the next unit is written in that unit.
    let &(factor, unit) = steps
        .iter()
        .find(|(factor, _)| value.abs() >= *factor * 0.9995)
        .unwrap_or(&smallest);
    let x = value / factor;
    let decimals = if factor == 1.0 && x.fract() == 0.0 || x.abs() >= 99.95 {
        0
    } else if x.abs() >= 9.995 {
        1
    } else {
        2
    };
    format!("{x:.decimals$} {unit}")
}

/// A factor; a power of two is written as `2^-10`.
#[must_use]
pub fn factor(factor: f64) -> String {
    let exponent = factor.log2();
    if exponent.fract() == 0.0 && exponent.abs() >= 2.0 {
        format!("2^{exponent}")
    } else {
        factor.to_string()
    }
}

/// A number of processes, as in `1 process`.
#[must_use]
pub(crate) fn processes(n: u32) -> String {
    format!("{n} process{}", if n == 1 { "" } else { "es" })
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, ns, number, percent, rate, seconds};

    #[test]
    fn three_digits_and_a_unit() {
        let durations = [0.0, 90.0, 999.7, 1234.0, 45_600.0, 1.2e6, 9.999e8, 3.5e9];
        assert_eq!(
            durations.map(ns),
            [
                "0 ns", "90 ns", "1.00 µs", "1.23 µs", "45.6 µs", "1.20 ms", "1.00 s", "3.50 s"
            ]
        );
        assert_eq!(
            [0.0, 512.0, 1536.0, 123.4 * 1_048_576.0].map(bytes),
            ["0 B", "512 B", "1.50 KiB", "123 MiB"]
        );
    }

    #[test]
    fn plain_numbers_have_about_three_digits() {
        let values = [0.0, 0.0414, 1.5, 12.34, 123.4, 98_765.4, f64::NAN];
        let texts = ["0", "0.041", "1.5", "12.3", "123", "98765", "–"];
        assert_eq!(values.map(number), texts);
    }

    #[test]
    fn counts_rates_and_times() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [0.0, 9.994, 200.04, 12_345.6].map(rate),
            ["0.00", "9.99", "200.0", "12,346"]
        );
        assert_eq!(
            [0.25, 9.0, 42.4, 754.0, 40_000.0].map(seconds),
            ["0.2 s", "9.0 s", "42 s", "12 min 34 s", "11 h 06 min"]
        );
        assert_eq!(
            [0.0, 0.0012, 0.85].map(percent),
            ["0.0 %", "0.12 %", "85.0 %"]
        );
    }
}
