//! Numbers, shares and dates in COSBench's format (specification section 4).

use time::OffsetDateTime;

use super::State;

/// `0.##`: at most two decimals, half-even, no grouping.
#[must_use]
pub fn number(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "\u{221e}" } else { "-\u{221e}" }.to_owned();
    }
    if value.is_nan() {
        return "N/A".to_owned();
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "" | "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// A number above 0, otherwise `N/A`.
pub(super) fn present(value: f64) -> String {
    match value > 0.0 {
        true => number(value),
        false => "N/A".to_owned(),
    }
}

/// `0.##%`.
#[must_use]
pub fn ratio(value: f64) -> String {
    format!("{}%", number(value * 100.0))
}

/// The local time of an instant in milliseconds since 1970.
fn local(at_ms: u64, utc_offset_s: i64) -> OffsetDateTime {
    let seconds = (at_ms / 1000).cast_signed() + utc_offset_s;
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// `HH:mm:ss` in local time.
pub(super) fn time(at_ms: u64, utc_offset_s: i64) -> String {
    let (hour, minute, second) = local(at_ms, utc_offset_s).to_hms();
    format!("{hour:02}:{minute:02}:{second:02}")
}

/// `yyyy-MM-dd HH:mm:ss` in local time, for an instant in milliseconds since 1970.
#[must_use]
pub fn date(at_ms: u64, utc_offset_s: i64) -> String {
    let date = local(at_ms, utc_offset_s).date();
    format!("{date} {}", time(at_ms, utc_offset_s))
}

/// One cell `state @ date` per state, each preceded by a comma.
pub(super) fn states(states: &[State], utc_offset_s: i64) -> String {
    let cells = states
        .iter()
        .map(|state| format!(",{} @ {}", state.name, date(state.at_ms, utc_offset_s)));
    cells.collect()
}

#[cfg(test)]
mod tests {
    use super::{date, number, ratio};

    #[test]
    fn numbers_have_at_most_two_decimals() {
        for (value, text) in [
            (5.0, "5"),
            (5.1, "5.1"),
            (5.12, "5.12"),
            (0.125, "0.12"),
            (0.375, "0.38"),
            (0.0, "0"),
            (0.001, "0"),
            (100.0, "100"),
            (1_234_567.891, "1234567.89"),
            (f64::INFINITY, "\u{221e}"),
        ] {
            assert_eq!(number(value), text, "{value}");
        }
        assert_eq!(ratio(0.99999), "100%");
        assert_eq!(ratio(0.9512), "95.12%");
        assert_eq!(ratio(1.0), "100%");
    }

    #[test]
    fn dates_are_local() {
        assert_eq!(date(0, 0), "1970-01-01 00:00:00");
        assert_eq!(date(1_769_903_999_000, 0), "2026-01-31 23:59:59");
        assert_eq!(date(1_769_903_999_000, 3600), "2026-02-01 00:59:59");
        assert_eq!(date(951_782_400_000, 0), "2000-02-29 00:00:00");
        assert_eq!(date(0, -3600), "1969-12-31 23:00:00");
    }
}
