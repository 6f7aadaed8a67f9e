//! Size mixes in the format of fio's `bssplit`: `4k/70:1m/30`.

use super::decimal::parse_float;
use super::{Invalid, format_size, parse_size};

const REMEDY: &str = "write sizes and percentages, such as 4k/70:1m/30; \
                      entries without a percentage share the rest of 100";

/// Parses `size/percent:size/percent:…` into sizes in bytes and percentages that add up to 100. Entries
/// without a percentage share the remainder equally.
///
/// # Errors
/// If an entry is malformed or the percentages do not add up to 100.
pub fn parse_size_mix(text: &str) -> Result<Vec<(u64, f64)>, Invalid> {
    let mut entries = Vec::new();
    for entry in text.split(':') {
        let (size, percent) = entry.split_once('/').unwrap_or((entry, ""));
        let percent = match percent.trim().trim_end_matches('%') {
            "" => None,
            number => Some(parse_float(number).filter(|x| *x >= 0.0).ok_or_else(|| {
                Invalid::new(format!("`{}` is not a percentage", percent.trim()), REMEDY)
            })?),
        };
        entries.push((parse_size(size)?, percent));
    }
    let stated: f64 = entries.iter().filter_map(|(_, percent)| *percent).sum();
    let open = entries
        .iter()
        .filter(|(_, percent)| percent.is_none())
        .count();
    // Percentages have few digits; the tolerance only absorbs binary rounding of their sum.
    let adds_up = (stated - 100.0).abs() < 1e-9;
    if (open == 0 && !adds_up) || (open > 0 && stated > 100.0 - 1e-9) {
        return Err(Invalid::new(
            format!(
                "the percentages of `{}` add up to {stated}, not 100",
                text.trim()
            ),
            REMEDY,
        ));
    }
    let rest = (100.0 - stated) / open.max(1) as f64;
    Ok(entries
        .into_iter()
        .map(|(size, percent)| (size, percent.unwrap_or(rest)))
        .collect())
}

/// Formats a size mix. The percentages must add up to 100 for the text to parse again.
#[must_use]
pub fn format_size_mix(entries: &[(u64, f64)]) -> String {
    let parts: Vec<String> = entries
        .iter()
        .map(|(size, percent)| format!("{}/{percent}", format_size(*size)))
        .collect();
    parts.join(":")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{format_size_mix, parse_size_mix};

    #[test]
    fn conventions() {
        assert_eq!(
            parse_size_mix("4k/70:1m/30"),
            Ok(vec![(4096, 70.0), (1 << 20, 30.0)])
        );
        assert_eq!(
            parse_size_mix("4k/60:64k/:1m/"),
            Ok(vec![(4096, 60.0), (65536, 20.0), (1 << 20, 20.0)])
        );
        assert_eq!(parse_size_mix("4k"), Ok(vec![(4096, 100.0)]));
    }

    #[test]
    fn errors_say_what_to_write() {
        for text in [
            "4k/70:1m/20",
            "4k/70:1m/40",
            "4k/x",
            "4k/100:1m",
            "k/100",
            "",
            "4k/-5:1m/105",
        ] {
            assert!(
                !parse_size_mix(text).unwrap_err().remedy.is_empty(),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn round_trip(sizes in proptest::collection::vec(any::<u64>(), 1..8), first in 0u32..100) {
            let n = sizes.len() as u32;
            // Whole percentages; the last one is the rest of 100.
            let share = first / n;
            let entries: Vec<(u64, f64)> = sizes.iter().enumerate().map(|(i, size)| {
                let last = i + 1 == sizes.len();
                (*size, f64::from(if last { 100 - share * (n - 1) } else { share }))
            }).collect();
            prop_assert_eq!(parse_size_mix(&format_size_mix(&entries)), Ok(entries));
        }

        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = parse_size_mix(&text);
        }
    }
}
