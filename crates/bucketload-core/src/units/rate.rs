//! Rates per second, and shares between 0 and 1.

use super::Invalid;
use super::decimal::parse_float;

const RATE_REMEDY: &str = "write operations per time, such as 200/s or 12/min";
const SHARE_REMEDY: &str = "write a percentage such as 70%, or a number from 0 to 1";

/// Lengths in seconds of the time units after the slash.
const PER: [(&str, f64); 10] = [
    ("s", 1.0),
    ("sec", 1.0),
    ("second", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("minute", 60.0),
    ("h", 3600.0),
    ("hour", 3600.0),
    ("d", 86_400.0),
    ("day", 86_400.0),
];

/// Parses a rate of operations such as `200/s`, `12/min` or `200` into operations per second. The result may
/// be 0: whether that makes sense depends on the setting.
///
/// # Errors
/// If the text is not a finite rate of at least 0, or is a rate in bytes.
pub fn parse_rate(text: &str) -> Result<f64, Invalid> {
    let text = text.trim();
    let (number, unit) = match text.split_once('/') {
        Some((number, unit)) => (number.trim(), Some(unit.trim())),
        None => (text, None),
    };
    let wrong = || Invalid::new(format!("`{text}` is not a rate"), RATE_REMEDY);
    let Some(number) = parse_float(number) else {
        return Err(if super::parse_size(number).is_ok() {
            Invalid::new(
                format!("`{text}` is a rate of bytes, not of operations"),
                "write operations per time, such as 200/s; the size law determines the bytes",
            )
        } else {
            wrong()
        });
    };
    if number < 0.0 {
        return Err(Invalid::new(
            format!("the rate `{text}` is negative"),
            RATE_REMEDY,
        ));
    }
    match unit {
        None => Ok(number),
        Some(unit) => PER
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, seconds)| number / seconds)
            .ok_or_else(wrong),
    }
}

/// Formats a rate per second, such as `200/s`.
#[must_use]
pub fn format_rate(per_second: f64) -> String {
    format!("{per_second}/s")
}

/// Parses a share such as `70%` or `0.7` into a number from 0 to 1.
///
/// # Errors
/// If the text is not a number or lies outside 0 to 1.
pub fn parse_share(text: &str) -> Result<f64, Invalid> {
    let text = text.trim();
    let share = match text.strip_suffix('%') {
        Some(percent) => parse_float(percent).map(|x| x / 100.0),
        None => parse_float(text),
    };
    let share =
        share.ok_or_else(|| Invalid::new(format!("`{text}` is not a share"), SHARE_REMEDY))?;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(Invalid::new(
            format!("the share `{text}` is not between 0 and 1 (100%)"),
            SHARE_REMEDY,
        ))
    }
}

/// Formats a share as a number from 0 to 1.
#[must_use]
pub fn format_share(share: f64) -> String {
    share.to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{format_rate, format_share, parse_rate, parse_share};

    #[test]
    fn conventions() {
        for (text, rate) in [
            ("200/s", 200.0),
            ("200", 200.0),
            ("12/min", 0.2),
            ("7200/h", 2.0),
            ("0", 0.0),
            ("1e3/s", 1000.0),
            ("10_000 / s", 10_000.0),
        ] {
            assert_eq!(parse_rate(text), Ok(rate), "{text}");
        }
        assert_eq!(parse_share("70%"), Ok(0.7));
        assert_eq!(parse_share("0.25"), Ok(0.25));
    }

    #[test]
    fn errors_say_what_to_write() {
        for text in ["", "-5/s", "fast", "5/fortnight", "nan", "inf/s", "1e999/s"] {
            assert!(!parse_rate(text).unwrap_err().remedy.is_empty(), "{text}");
        }
        let bytes = parse_rate("10GiB/s").unwrap_err();
        assert!(bytes.message.contains("rate of bytes"), "{bytes}");
        for text in ["", "101%", "-1%", "1.5", "half"] {
            assert!(!parse_share(text).unwrap_err().remedy.is_empty(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(rate in 0.0f64..1e12, share in 0.0f64..=1.0) {
            prop_assert_eq!(parse_rate(&format_rate(rate)), Ok(rate));
            prop_assert_eq!(parse_share(&format_share(share)), Ok(share));
        }

        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = (parse_rate(&text), parse_share(&text));
        }
    }
}
