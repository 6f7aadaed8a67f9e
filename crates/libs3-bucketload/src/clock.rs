//! Instants as libs3 has them (seconds since the epoch), as HTTP and as SigV4 print them, and the
//! limit on the time of a request.

use std::ffi::c_int;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::reply::Failure;
use crate::status::Status;

/// Whole seconds since the epoch; 0 for what lies before it.
pub(crate) fn seconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_secs()).ok())
        .unwrap_or(0)
}

/// The instant that C gives as seconds since the epoch; `None` for a negative number (not used).
pub(crate) fn instant(seconds: i64) -> Option<SystemTime> {
    let since = Duration::from_secs(u64::try_from(seconds).ok()?);
    UNIX_EPOCH.checked_add(since)
}

/// Year, month (1 to 12), day (1 to 31) and second of the day, in UTC.
struct Calendar {
    year: i64,
    month: i64,
    day: i64,
    second: i64,
    /// Days since the epoch, a Thursday.
    days: i64,
}

impl Calendar {
    /// Days are counted from 1 March of year 0, so that leap days end a year; 146,097 days make
    /// 400 years.
    fn of(seconds: i64) -> Self {
        let days = seconds.div_euclid(86_400);
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        Self {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            second: seconds.rem_euclid(86_400),
            days,
        }
    }
}

/// `Thu, 01 Jan 1970 00:00:00 GMT` (RFC 9110, section 5.6.7).
pub(crate) fn http_date(seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let at = Calendar::of(seconds);
    format!(
        "{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
        DAYS[at.days.rem_euclid(7) as usize],
        at.day,
        MONTHS[(at.month - 1) as usize],
        at.year,
        at.second / 3600,
        at.second / 60 % 60,
        at.second % 60
    )
}

/// `19700101T000000Z` (ISO 8601, basic format), as SigV4 wants it.
pub(crate) fn basic_date(seconds: i64) -> String {
    let at = Calendar::of(seconds);
    format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
        at.year,
        at.month,
        at.day,
        at.second / 3600,
        at.second / 60 % 60,
        at.second % 60
    )
}

/// When a request must have ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// `timeout_ms` from now; none for 0 and below.
    pub(crate) fn after(timeout_ms: c_int) -> Self {
        let limit = u64::try_from(timeout_ms).ok().filter(|ms| *ms > 0);
        Self(limit.map(|ms| Instant::now() + Duration::from_millis(ms)))
    }

    /// Fails when the time is up.
    pub(crate) fn check(self) -> Result<(), Failure> {
        match self.0 {
            Some(end) if Instant::now() >= end => Err(Failure::new(
                Status::ErrorRequestTimeout,
                "the request took longer than its timeout",
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        // The example of RFC 9110, section 5.6.7.
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(basic_date(951_782_400), "20000229T000000Z");
        assert_eq!(basic_date(1_735_689_599), "20241231T235959Z");
    }
}
