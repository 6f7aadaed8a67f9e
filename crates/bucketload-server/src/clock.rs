//! Dates: the wall clock in seconds and the three spellings of time that S3 uses.
//!
//! All arithmetic is on seconds since 1970-01-01 UTC; rendering appends to a byte buffer without
//! the formatting machinery because two dates stand in every answer's head.

use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Seconds since 1970 by the coarse wall clock (resolution of a few milliseconds, cheap to read).
pub(crate) fn now_secs() -> u64 {
    u64::try_from(read(libc::CLOCK_REALTIME_COARSE).tv_sec).unwrap_or(0)
}

/// CPU time of the process in nanoseconds, user and system.
pub(crate) fn process_cpu_ns() -> u64 {
    let time = read(libc::CLOCK_PROCESS_CPUTIME_ID);
    let (secs, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    secs.unwrap_or(0) * 1_000_000_000 + nanos.unwrap_or(0)
}

/// Reads a clock through the C library, which valgrind knows how to run.
fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to `time` and nowhere else; an unknown clock leaves it alone.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}

/// Seconds since 1970 of `time`; 0 for times before it.
pub(crate) fn secs(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// A moment split into calendar fields (proleptic Gregorian, UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    weekday: usize,
}

impl Fields {
    /// Splits `secs`; the era arithmetic is Howard Hinnant's `civil_from_days`.
    fn of(secs: u64) -> Self {
        let days = secs / 86_400;
        let rest = secs % 86_400;
        let z = days + 719_468;
        let era = z / 146_097;
        let doe = z % 146_097;
        let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
        let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        let mp = (5 * doy + 2) / 153;
        let month = if mp < 10 { mp + 3 } else { mp - 9 };
        Self {
            year: yoe + era * 400 + u64::from(month <= 2),
            month,
            day: doy - (153 * mp + 2) / 5 + 1,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: (days % 7) as usize,
        }
    }

    /// Seconds since 1970, or `None` where a field is out of range (a 61st second is not taken).
    fn secs(self) -> Option<u64> {
        let Self {
            year,
            month,
            day,
            hour,
            minute,
            second,
            ..
        } = self;
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u64::from(leap),
            _ => return None,
        };
        if !(1970..=9999).contains(&year)
            || day == 0
            || day > last
            || hour > 23
            || minute > 59
            || second > 59
        {
            return None;
        }
        let y = if month <= 2 { year - 1 } else { year };
        let era = y / 400;
        let yoe = y % 400;
        let mp = if month > 2 { month - 3 } else { month + 9 };
        let doy = (153 * mp + 2) / 5 + day - 1;
        let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
        let days = era * 146_097 + doe - 719_468;
        Some(days * 86_400 + hour * 3600 + minute * 60 + second)
    }
}

fn two(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(&[b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8]);
}

fn four(out: &mut Vec<u8>, n: u64) {
    two(out, n / 100);
    two(out, n);
}

/// Appends `Thu, 01 Jan 1970 00:00:00 GMT`.
pub(crate) fn http_date(out: &mut Vec<u8>, secs: u64) {
    let f = Fields::of(secs);
    out.extend_from_slice(DAYS[f.weekday]);
    out.extend_from_slice(b", ");
    two(out, f.day);
    out.push(b' ');
    out.extend_from_slice(MONTHS[f.month as usize - 1]);
    out.push(b' ');
    four(out, f.year);
    out.push(b' ');
    two(out, f.hour);
    out.push(b':');
    two(out, f.minute);
    out.push(b':');
    two(out, f.second);
    out.extend_from_slice(b" GMT");
}

/// Appends `1970-01-01T00:00:00.000Z`.
pub(crate) fn iso_date(out: &mut Vec<u8>, secs: u64, millis: u32) {
    let f = Fields::of(secs);
    four(out, f.year);
    out.push(b'-');
    two(out, f.month);
    out.push(b'-');
    two(out, f.day);
    out.push(b'T');
    two(out, f.hour);
    out.push(b':');
    two(out, f.minute);
    out.push(b':');
    two(out, f.second);
    out.push(b'.');
    out.push(b'0' + (millis / 100 % 10) as u8);
    two(out, u64::from(millis % 100));
    out.push(b'Z');
}

fn digits(s: &[u8]) -> Option<u64> {
    if s.is_empty() || s.len() > 9 {
        return None;
    }
    s.iter().try_fold(0, |n, c| {
        c.is_ascii_digit().then(|| n * 10 + u64::from(c - b'0'))
    })
}

/// Reads `19700101T000000Z`, the form of `x-amz-date`.
pub(crate) fn parse_amz_date(s: &[u8]) -> Option<u64> {
    if s.len() != 16 || s[8] != b'T' || s[15] != b'Z' {
        return None;
    }
    Fields {
        year: digits(&s[..4])?,
        month: digits(&s[4..6])?,
        day: digits(&s[6..8])?,
        hour: digits(&s[9..11])?,
        minute: digits(&s[11..13])?,
        second: digits(&s[13..15])?,
        weekday: 0,
    }
    .secs()
}

/// Reads an HTTP date in the preferred form, `Thu, 01 Jan 1970 00:00:00 GMT`. The two obsolete forms are not
/// read: a condition with such a date is ignored, as RFC 9110 asks for invalid dates.
pub(crate) fn parse_http_date(s: &[u8]) -> Option<u64> {
    if s.len() != 29 || &s[3..5] != b", " || !s.ends_with(b" GMT") {
        return None;
    }
    let month = MONTHS.iter().position(|m| *m == &s[8..11])?;
    Fields {
        year: digits(&s[12..16])?,
        month: month as u64 + 1,
        day: digits(&s[5..7])?,
        hour: digits(&s[17..19])?,
        minute: digits(&s[20..22])?,
        second: digits(&s[23..25])?,
        weekday: 0,
    }
    .secs()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(f: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn known_moments() {
        // The example of RFC 9110, section 5.6.7, and a leap day.
        assert_eq!(
            text(|o| http_date(o, 784_111_777)),
            "Sun, 06 Nov 1994 08:49:37 GMT"
        );
        assert_eq!(
            parse_http_date(b"Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(784_111_777)
        );
        assert_eq!(parse_amz_date(b"20130524T000000Z"), Some(1_369_353_600));
        assert_eq!(
            text(|o| iso_date(o, 951_782_400, 7)),
            "2000-02-29T00:00:00.007Z"
        );
        assert_eq!(parse_amz_date(b"20230229T000000Z"), None);
        assert_eq!(parse_amz_date(b"20230101T240000Z"), None);
        assert_eq!(parse_http_date(b"Sunday, 06-Nov-94 08:49:37 GMT"), None);
    }

    proptest! {
        #[test]
        fn dates_round_trip(secs in 0u64..253_402_300_800) {
            let http = text(|o| http_date(o, secs));
            prop_assert_eq!(parse_http_date(http.as_bytes()), Some(secs));
            let iso = text(|o| iso_date(o, secs, 0));
            let amz: String = iso.replace(".000", "").chars().filter(|c| !"-:".contains(*c)).collect();
            prop_assert_eq!(parse_amz_date(amz.as_bytes()), Some(secs));
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = (parse_amz_date(&bytes), parse_http_date(&bytes));
        }
    }
}
