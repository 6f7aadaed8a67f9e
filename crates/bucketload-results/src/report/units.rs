//! Numbers as text for tables: three significant digits and a unit.

/// A duration in nanoseconds with a fitting unit.
pub(super) fn ns(value: f64) -> String {
    scaled(value, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")])
}

/// A number of bytes with a binary unit.
pub(super) fn bytes(value: f64) -> String {
    scaled(
        value,
        &[
            (f64::powi(1024.0, 3), "GiB"),
            (f64::powi(1024.0, 2), "MiB"),
            (1024.0, "KiB"),
            (1.0, "B"),
        ],
    )
}

/// A plain number: exact below 10 000, else with thousands separated by thin spaces.
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && digits.len() > 4 {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A number with three significant digits.
pub(super) fn number(value: f64) -> String {
    scaled(value, &[(1.0, "")]).trim_end().to_owned()
}

/// A share as a percentage.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

fn scaled(value: f64, steps: &[(f64, &str)]) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let last = steps.len() - 1;
    let (factor, unit) = steps
        .iter()
        .find(|(f, _)| value.abs() >= *f)
        .unwrap_or(&steps[last]);
    let x = value / factor;
    let decimals = match x.abs() {
        0.0 => 0,
        a if a >= 100.0 => 0,
        a if a >= 10.0 => 1,
        a if a >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{x:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, ns, number, percent};

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!(ns(1_234_567.0), "1.23 ms");
        assert_eq!(ns(90.0), "90 ns");
        assert_eq!(bytes(1536.0), "1.5 KiB");
        assert_eq!(bytes(0.0), "0 B");
        assert_eq!(number(1234.4), "1234");
        assert_eq!(percent(0.0712), "7.12 %");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(1234), "1234");
        assert_eq!(number(f64::NAN), "–");
    }
}
