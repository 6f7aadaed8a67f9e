//! Sizes in bytes.

use super::Invalid;
use super::decimal::{Decimal, parse_float};

const KIB: u64 = 1024;
const KB: u64 = 1000;

/// Units by lower-case name. A bare letter means a power of 1024, as in other storage benchmarks.
const UNITS: [(&str, u64); 17] = [
    ("", 1),
    ("b", 1),
    ("k", KIB),
    ("m", KIB.pow(2)),
    ("g", KIB.pow(3)),
    ("t", KIB.pow(4)),
    ("p", KIB.pow(5)),
    ("kib", KIB),
    ("mib", KIB.pow(2)),
    ("gib", KIB.pow(3)),
    ("tib", KIB.pow(4)),
    ("pib", KIB.pow(5)),
    ("kb", KB),
    ("mb", KB.pow(2)),
    ("gb", KB.pow(3)),
    ("tb", KB.pow(4)),
    ("pb", KB.pow(5)),
];

const REMEDY: &str = "write a number and a unit, such as 4096, 4k, 4KiB, 4kB or 1.5GiB \
                      (k and KiB are 1024, kB is 1000)";

fn unit(text: &str) -> Option<u64> {
    let name = text.trim().to_ascii_lowercase();
    UNITS
        .iter()
        .find(|(candidate, _)| *candidate == name)
        .map(|(_, bytes)| *bytes)
}

/// Parses a size as a whole number of bytes.
///
/// # Errors
/// If the text is not a size, is not a whole number of bytes, or is 2^64 bytes or more.
pub fn parse_size(text: &str) -> Result<u64, Invalid> {
    let text = text.trim();
    let wrong = || Invalid::new(format!("`{text}` is not a size"), REMEDY);
    let (number, rest) = Decimal::split(text).ok_or_else(wrong)?;
    let unit = unit(rest).ok_or_else(wrong)?;
    number.whole(unit).ok_or_else(|| {
        if number.too_large(unit) {
            Invalid::new(
                format!("`{text}` is too large"),
                "sizes must be below 2^64 bytes",
            )
        } else {
            Invalid::new(
                format!("`{text}` is not a whole number of bytes"),
                "round it, or use a smaller unit",
            )
        }
    })
}

/// Parses a size that may have a fraction of a byte, such as a law's parameter.
///
/// # Errors
/// If the text is not a finite size of at least 0.
pub fn parse_size_f64(text: &str) -> Result<f64, Invalid> {
    let text = text.trim();
    let wrong = || Invalid::new(format!("`{text}` is not a size"), REMEDY);
    let letters = text
        .find(|c: char| c.is_ascii_alphabetic() || c.is_whitespace())
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(letters);
    let number = parse_float(number)
        .filter(|x| *x >= 0.0)
        .ok_or_else(wrong)?;
    let bytes = number * unit(rest).ok_or_else(wrong)? as f64;
    if bytes.is_finite() {
        Ok(bytes)
    } else {
        Err(Invalid::new(format!("`{text}` is too large"), ""))
    }
}

/// Formats a size in the largest unit that gives a whole number, preferring powers of 1024.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    const BINARY: [&str; 5] = ["PiB", "TiB", "GiB", "MiB", "KiB"];
    const DECIMAL: [&str; 5] = ["PB", "TB", "GB", "MB", "kB"];
    for (names, base) in [(BINARY, KIB), (DECIMAL, KB)] {
        for (power, name) in (1..=5).rev().zip(names) {
            let unit = base.pow(power);
            if bytes != 0 && bytes.is_multiple_of(unit) {
                return format!("{}{name}", bytes / unit);
            }
        }
    }
    bytes.to_string()
}

/// Formats a size that may have a fraction of a byte.
#[must_use]
pub fn format_size_f64(bytes: f64) -> String {
    // Below 2^53, a float without a fraction is exactly that integer.
    if bytes >= 0.0 && bytes.fract() == 0.0 && bytes < 9_007_199_254_740_992.0 {
        format_size(bytes as u64)
    } else {
        format!("{bytes}B")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{format_size, format_size_f64, parse_size, parse_size_f64};

    #[test]
    fn conventions() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("4KiB", 4096),
            ("4 KiB", 4096),
            ("4kB", 4000),
            ("4KB", 4000),
            ("4MB", 4_000_000),
            ("1.5GiB", 1_610_612_736),
            ("1_000B", 1000),
            ("16m", 16 << 20),
            ("2t", 2 << 40),
            (" 1PiB ", 1 << 50),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
            assert_eq!(parse_size_f64(text), Ok(bytes as f64), "{text}");
        }
        assert_eq!(parse_size_f64("93.98KiB"), Ok(93.98 * 1024.0));
    }

    #[test]
    fn errors_say_what_to_write() {
        for text in [
            "",
            "k",
            "-4k",
            "4x",
            "4kib2",
            "1.0001k",
            "99999999PiB",
            "..",
            "4..5k",
            "1e3",
        ] {
            let error = parse_size(text).unwrap_err();
            assert!(
                !error.message.is_empty() && !error.remedy.is_empty(),
                "{text}"
            );
        }
        assert!(
            parse_size("1.0001k")
                .unwrap_err()
                .message
                .contains("whole number")
        );
        assert!(
            parse_size("99999999PiB")
                .unwrap_err()
                .message
                .contains("too large")
        );
    }

    #[test]
    fn formats_are_short() {
        assert_eq!(format_size(0), "0");
        assert_eq!(format_size(4096), "4KiB");
        assert_eq!(format_size(5_000_000), "5MB");
        assert_eq!(format_size(1234), "1234");
        assert_eq!(format_size(3 << 30), "3GiB");
    }

    proptest! {
        #[test]
        fn round_trip(bytes in any::<u64>(), shift in 0u32..50) {
            for bytes in [bytes, bytes >> shift, bytes << shift] {
                prop_assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
            }
        }

        #[test]
        fn round_trip_float(bytes in 0.0f64..1e19) {
            prop_assert_eq!(parse_size_f64(&format_size_f64(bytes)), Ok(bytes));
            prop_assert_eq!(parse_size_f64(&format_size_f64(bytes.floor())), Ok(bytes.floor()));
        }

        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = (parse_size(&text), parse_size_f64(&text));
        }

        #[test]
        fn never_panics_on_likely_text(text in "[0-9._kKmMiIbB eE+-]{0,40}") {
            let _ = (parse_size(&text), parse_size_f64(&text));
        }
    }
}
