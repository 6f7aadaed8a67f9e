//! Points in time as the protocol writes them: `Fri, 20 Nov 2026 17:26:32 GMT` in header fields
//! (RFC 9110, section 5.6.7) and `2026-11-20T17:26:32Z` in shared access signatures.

use time::{Date, Month, OffsetDateTime, Time};

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A date in a header field.
pub(super) type HttpDate = [u8; 29];
/// A point in time in a shared access signature.
pub(super) type Iso = [u8; 20];

fn moment(second: u64) -> OffsetDateTime {
    // Beyond the year 9999 only a broken clock can lead.
    i64::try_from(second)
        .ok()
        .and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok())
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn digits(out: &mut [u8], mut value: u32) {
    for slot in out.iter_mut().rev() {
        *slot = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// `second` (since 1970) as a header field has it.
pub(super) fn http_date(second: u64) -> HttpDate {
    let at = moment(second);
    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    let day = usize::from(at.weekday().number_days_from_monday());
    out[..3].copy_from_slice(DAYS[day].as_bytes());
    digits(&mut out[5..7], u32::from(at.day()));
    let month = usize::from(u8::from(at.month())) - 1;
    out[8..11].copy_from_slice(MONTHS[month].as_bytes());
    digits(&mut out[12..16], at.year().unsigned_abs());
    digits(&mut out[17..19], u32::from(at.hour()));
    digits(&mut out[20..22], u32::from(at.minute()));
    digits(&mut out[23..25], u32::from(at.second()));
    out
}

/// `second` (since 1970) as a shared access signature has it.
pub(super) fn iso(second: u64) -> Iso {
    let at = moment(second);
    let mut out = *b"1970-01-01T00:00:00Z";
    digits(&mut out[..4], at.year().unsigned_abs());
    digits(&mut out[5..7], u32::from(u8::from(at.month())));
    digits(&mut out[8..10], u32::from(at.day()));
    digits(&mut out[11..13], u32::from(at.hour()));
    digits(&mut out[14..16], u32::from(at.minute()));
    digits(&mut out[17..19], u32::from(at.second()));
    out
}

fn seconds(year: i32, month: u8, day: u8, clock: &str) -> Option<u64> {
    let date = Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()?;
    let mut parts = clock.split(':').map(|p| p.parse::<u8>().ok());
    let mut next = || parts.next().unwrap_or(Some(0));
    let time = Time::from_hms(next()?, next()?, next()?).ok()?;
    u64::try_from(date.with_time(time).assume_utc().unix_timestamp()).ok()
}

/// Seconds since 1970 of the date in a header field.
pub(super) fn parse_http(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace().skip(1);
    let day = words.next()?.parse().ok()?;
    let name = words.next()?;
    let month = MONTHS.iter().position(|m| m.eq_ignore_ascii_case(name))? as u8 + 1;
    let year = words.next()?.parse().ok()?;
    seconds(year, month, day, words.next()?)
}

/// Seconds since 1970 of a time in a shared access signature: a date, alone or with hours and
/// minutes, or with seconds, always in UTC.
pub(crate) fn parse_iso(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, clock) = text.split_once('T').unwrap_or((text, "0"));
    let mut parts = date.splitn(3, '-');
    let year = parts.next()?.parse().ok()?;
    let month = parts.next()?.parse().ok()?;
    let day = parts.next()?.parse().ok()?;
    // Fractions of a second, which some tools write.
    seconds(year, month, day, clock.split('.').next()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{http_date, iso, parse_http, parse_iso};

    #[test]
    fn dates_look_as_the_standard_says() {
        // The example of RFC 9110, section 5.6.7.
        assert_eq!(&http_date(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(&iso(784_111_777), b"1994-11-06T08:49:37Z");
        assert_eq!(parse_iso("1994-11-06"), Some(784_080_000));
        assert_eq!(parse_iso("1994-11-06T08:49Z"), Some(784_111_740));
        assert_eq!(parse_iso("1994-11-06T08:49:37.1234567Z"), Some(784_111_777));
        for broken in ["", "1994", "1994-13-01", "1994-11-06T99:00Z", "x-y-z"] {
            assert_eq!(parse_iso(broken), None, "{broken}");
            assert_eq!(parse_http(broken), None, "{broken}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_read(second in 0u64..32_503_680_000) {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            prop_assert_eq!(parse_http(&text(&http_date(second))), Some(second));
            prop_assert_eq!(parse_iso(&text(&iso(second))), Some(second));
        }
    }
}
