//! Durations in nanoseconds.

use std::fmt::Write;

use super::Invalid;
use super::decimal::Decimal;

/// Units from longest to shortest; output uses the first name of each.
const UNITS: [(&[&str], u64); 7] = [
    (&["d", "day", "days"], 86_400_000_000_000),
    (&["h", "hr", "hour", "hours"], 3_600_000_000_000),
    (&["m", "min", "minute", "minutes"], 60_000_000_000),
    (&["s", "sec", "second", "seconds"], 1_000_000_000),
    (&["ms"], 1_000_000),
    (&["us", "µs", "μs"], 1_000),
    (&["ns"], 1),
];

const REMEDY: &str = "write numbers with units, such as 30s, 5m, 1h30m, 250ms or 20us";

/// Parses a duration such as `30s`, `1h30m` or `1.5ms` into nanoseconds. Units must descend.
///
/// # Errors
/// If the text is not a duration, has no unit, or is 2^64 ns (584 years) or more.
pub fn parse_duration(text: &str) -> Result<u64, Invalid> {
    let text = text.trim();
    let wrong = || Invalid::new(format!("`{text}` is not a duration"), REMEDY);
    if text.is_empty() {
        return Err(wrong());
    }
    let (mut rest, mut next_unit, mut total) = (text, 0, 0u64);
    while !rest.is_empty() {
        let (number, tail) = Decimal::split(rest).ok_or_else(wrong)?;
        let tail = tail.trim_start();
        let end = tail
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(tail.len());
        let (name, tail) = tail.split_at(end);
        if name.is_empty() {
            return Err(Invalid::new(
                format!("`{text}` lacks a unit of time"),
                REMEDY,
            ));
        }
        let index = UNITS
            .iter()
            .position(|(names, _)| names.contains(&name))
            .ok_or_else(wrong)?;
        if index < next_unit {
            return Err(Invalid::new(
                format!("the units of `{text}` are not in descending order"),
                REMEDY,
            ));
        }
        next_unit = index + 1;
        let unit = UNITS[index].1;
        let too_long = || {
            Invalid::new(
                format!("`{text}` is too long"),
                "durations must be shorter than 584 years",
            )
        };
        let part = number.whole(unit).ok_or_else(|| {
            if number.too_large(unit) {
                too_long()
            } else {
                Invalid::new(
                    format!("`{text}` is not a whole number of nanoseconds"),
                    REMEDY,
                )
            }
        })?;
        total = total.checked_add(part).ok_or_else(too_long)?;
        rest = tail.trim_start();
    }
    Ok(total)
}

/// Formats nanoseconds as `1h30m`, `1m0.5s`, `250ms` or `1.5us`.
#[must_use]
pub fn format_duration(ns: u64) -> String {
    if ns == 0 {
        return "0s".to_owned();
    }
    let mut out = String::new();
    let mut left = ns;
    for (names, unit) in &UNITS[1..3] {
        if left >= *unit {
            let _ = write!(out, "{}{}", left / unit, names[0]);
            left %= unit;
        }
    }
    if left > 0 {
        let (names, unit) = UNITS[3..]
            .iter()
            .find(|(_, unit)| left >= *unit || (!out.is_empty() && *unit == UNITS[3].1))
            .unwrap_or(&UNITS[6]);
        let _ = write!(out, "{}", left / unit);
        if !left.is_multiple_of(*unit) {
            let digits = unit.ilog10() as usize;
            let fraction = format!("{:0digits$}", left % unit);
            let _ = write!(out, ".{}", fraction.trim_end_matches('0'));
        }
        out.push_str(names[0]);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{format_duration, parse_duration};

    #[test]
    fn conventions() {
        for (text, ns) in [
            ("0s", 0),
            ("30s", 30_000_000_000),
            ("5m", 300_000_000_000),
            ("5min", 300_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1h 30m", 5_400_000_000_000),
            ("250ms", 250_000_000),
            ("20us", 20_000),
            ("20µs", 20_000),
            ("1.5ms", 1_500_000),
            ("2d", 172_800_000_000_000),
            ("7 ns", 7),
        ] {
            assert_eq!(parse_duration(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn errors_say_what_to_write() {
        for text in [
            "", "30", "s", "1m30", "5x", "-5s", "30s1m", "1s1s", "0.5ns", "900000d",
        ] {
            let error = parse_duration(text).unwrap_err();
            assert!(
                !error.message.is_empty() && !error.remedy.is_empty(),
                "{text}"
            );
        }
        assert!(
            parse_duration("30")
                .unwrap_err()
                .message
                .contains("lacks a unit")
        );
    }

    #[test]
    fn formats_are_short() {
        for text in [
            "0s", "30s", "1m", "1h30m", "1m0.5s", "250ms", "1.5us", "999ns", "48h",
        ] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), text);
        }
    }

    proptest! {
        #[test]
        fn round_trip(ns in any::<u64>(), shift in 0u32..64) {
            for ns in [ns, ns >> shift, (ns >> shift) / 1_000_000_000 * 1_000_000_000] {
                prop_assert_eq!(parse_duration(&format_duration(ns)), Ok(ns));
            }
        }

        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = parse_duration(&text);
        }

        #[test]
        fn never_panics_on_likely_text(text in "[0-9. dhmsnuµ]{0,40}") {
            let _ = parse_duration(&text);
        }
    }
}
