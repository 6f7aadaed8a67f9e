//! Dates as S3 and similar services write them, converted to and from seconds since 1970-01-01 UTC.
//!
//! Formatted dates are arrays, so dates in response heads and signatures do not allocate.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::{Date, Month, OffsetDateTime, Time};

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A date in a header field: `Fri, 20 Nov 2026 17:26:32 GMT` (RFC 9110, section 5.6.7).
pub type HttpDate = [u8; 29];
/// ISO 8601, basic format: `20261120T172632Z`, as in `x-amz-date`.
pub type BasicDate = [u8; 16];
/// ISO 8601: `2026-11-20T17:26:32Z`.
pub type IsoDate = [u8; 20];

/// The time since 1970; zero for earlier times.
#[must_use]
pub fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Overwrites the digits of a formatted date in `out` with those of `second`: year, month, day, hour, minute and second
/// at the offsets `at`. Returns the date.
fn put(out: &mut [u8], at: [Option<usize>; 6], second: u64) -> Date {
    // Only a broken clock is past the year 9999.
    let moment = i64::try_from(second)
        .ok()
        .and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok())
        .unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (hour, minute, second) = moment.to_hms();
    let fields = [
        moment.year().unsigned_abs(),
        u32::from(u8::from(moment.month())),
        u32::from(moment.day()),
        u32::from(hour),
        u32::from(minute),
        u32::from(second),
    ];
    let widths = [4, 2, 2, 2, 2, 2];
    for ((at, mut value), width) in at.into_iter().zip(fields).zip(widths) {
        let Some(at) = at else { continue };
        for slot in out[at..at + width].iter_mut().rev() {
            *slot = b'0' + (value % 10) as u8;
            value /= 10;
        }
    }
    moment.date()
}

/// `second` as a date in a header field.
#[must_use]
pub fn http_date(second: u64) -> HttpDate {
    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    let at = [Some(12), None, Some(5), Some(17), Some(20), Some(23)];
    let date = put(&mut out, at, second);
    let day = usize::from(date.weekday().number_days_from_monday());
    out[..3].copy_from_slice(DAYS[day].as_bytes());
    let month = usize::from(u8::from(date.month())) - 1;
    out[8..11].copy_from_slice(MONTHS[month].as_bytes());
    out
}

/// `second` in the format of `x-amz-date`.
#[must_use]
pub fn basic(second: u64) -> BasicDate {
    let mut out = *b"19700101T000000Z";
    put(&mut out, [0, 4, 6, 9, 11, 13].map(Some), second);
    out
}

/// `second` in the format of XML documents and shared access signatures.
#[must_use]
pub fn iso(second: u64) -> IsoDate {
    let mut out = *b"1970-01-01T00:00:00Z";
    put(&mut out, [0, 5, 8, 11, 14, 17].map(Some), second);
    out
}

/// Seconds since 1970 of a date and a time of day. `None` if a field is out of range (leap seconds included) or the date
/// is before 1970.
fn seconds(year: u16, month: u8, day: u8, clock: [u8; 3]) -> Option<u64> {
    let month = Month::try_from(month).ok()?;
    let date = Date::from_calendar_date(i32::from(year), month, day).ok()?;
    let time = Time::from_hms(clock[0], clock[1], clock[2]).ok()?;
    u64::try_from(date.with_time(time).assume_utc().unix_timestamp()).ok()
}

/// Parses decimal digits; refuses signs.
fn digits<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    let digits = text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text)
        .ok()
        .filter(|_| digits)?
        .parse()
        .ok()
}

/// Reads an HTTP date in the preferred form. Refuses the two obsolete forms: a condition with such a date is ignored, as
/// RFC 9110 requires for invalid dates.
#[must_use]
pub fn parse_http(text: &[u8]) -> Option<u64> {
    if text.len() != 29 || &text[3..5] != b", " || !text.ends_with(b" GMT") {
        return None;
    }
    let name = &text[8..11];
    let month = MONTHS.iter().position(|month| month.as_bytes() == name)?;
    let clock = [
        digits(&text[17..19])?,
        digits(&text[20..22])?,
        digits(&text[23..25])?,
    ];
    seconds(
        digits(&text[12..16])?,
        month as u8 + 1,
        digits(&text[5..7])?,
        clock,
    )
}

/// Reads the format of `x-amz-date`.
#[must_use]
pub fn parse_basic(text: &[u8]) -> Option<u64> {
    if text.len() != 16 || text[8] != b'T' || text[15] != b'Z' {
        return None;
    }
    let clock = [
        digits(&text[9..11])?,
        digits(&text[11..13])?,
        digits(&text[13..15])?,
    ];
    seconds(
        digits(&text[..4])?,
        digits(&text[4..6])?,
        digits(&text[6..8])?,
        clock,
    )
}

/// Reads a time from an XML document or a shared access signature, in UTC: a date, optionally with hours and minutes,
/// seconds, and fractions of a second.
#[must_use]
pub fn parse_iso(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, clock) = text.split_once('T').unwrap_or((text, "0"));
    let mut parts = date.splitn(3, '-');
    let mut date = || parts.next();
    let (year, month, day) = (date()?, date()?, date()?);
    // Some tools write fractions of a second, which are dropped.
    let mut parts = clock.split('.').next()?.split(':').map(|p| p.parse().ok());
    let mut clock = || parts.next().unwrap_or(Some(0));
    let clock = [clock()?, clock()?, clock()?];
    seconds(
        year.parse().ok()?,
        month.parse().ok()?,
        day.parse().ok()?,
        clock,
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{basic, http_date, iso, parse_basic, parse_http, parse_iso};

    #[test]
    fn dates_have_the_standard_formats() {
        // The example of RFC 9110, section 5.6.7.
        assert_eq!(&http_date(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(&http_date(0), b"Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(&iso(784_111_777), b"1994-11-06T08:49:37Z");
        assert_eq!(&basic(951_782_400), b"20000229T000000Z");
        assert_eq!(&basic(1_735_689_599), b"20241231T235959Z");
        assert_eq!(
            parse_http(b"Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(784_111_777)
        );
        assert_eq!(parse_http(b"Sunday, 06-Nov-94 08:49:37 GMT"), None);
        assert_eq!(parse_basic(b"20130524T000000Z"), Some(1_369_353_600));
        assert_eq!(parse_basic(b"20230229T000000Z"), None);
        assert_eq!(parse_basic(b"20230101T240000Z"), None);
        assert_eq!(parse_iso("1994-11-06"), Some(784_080_000));
        assert_eq!(parse_iso("1994-11-06T08:49Z"), Some(784_111_740));
        assert_eq!(parse_iso("1994-11-06T08:49:37.1234567Z"), Some(784_111_777));
        for broken in ["", "1994", "1994-13-01", "1994-11-06T99:00Z", "x-y-z"] {
            assert_eq!(parse_iso(broken), None, "{broken}");
            assert_eq!(parse_http(broken.as_bytes()), None, "{broken}");
        }
    }

    proptest! {
        #[test]
        fn dates_round_trip(second in 0u64..253_402_300_800) {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            prop_assert_eq!(parse_http(&http_date(second)), Some(second));
            prop_assert_eq!(parse_basic(&basic(second)), Some(second));
            prop_assert_eq!(parse_iso(&text(&iso(second))), Some(second));
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..40), text in "\\PC{0,40}") {
            let _ = (parse_basic(&bytes), parse_http(&bytes), parse_iso(&text));
        }
    }
}
