//! The instant that packages carry in place of the time at which they were made, so that the same source gives the same
//! bytes: `SOURCE_DATE_EPOCH`, else that of the last commit.

use crate::sh::{Result, cmd, output};

const VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// Seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct When(pub(super) u64);

impl When {
    /// The instant of the source.
    ///
    /// # Errors
    /// When neither the variable nor a commit says it.
    pub(super) fn of_source() -> Result<Self> {
        if let Ok(text) = std::env::var(VARIABLE) {
            let seconds = text.trim().parse();
            return seconds.map(Self).map_err(|_| {
                format!(
                    "{VARIABLE}={text}: is no number of seconds since 1970; set another or none"
                )
            });
        }
        let commit = output(&mut cmd("git", ["log", "-1", "--format=%ct"]));
        let seconds = commit.ok().and_then(|text| text.trim().parse().ok());
        seconds.map(Self).ok_or_else(|| {
            format!("there is no commit that gives packages their time; set {VARIABLE} to seconds since 1970")
        })
    }

    /// Year, month and day.
    fn date(self) -> (u64, u64, u64) {
        // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days: years begin in March.
        let shifted = self.0 / 86_400 + 719_468;
        let (era, of_era) = (shifted / 146_097, shifted % 146_097);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = match from_march < 10 {
            true => from_march + 3,
            false => from_march - 9,
        };
        (year + era * 400 + u64::from(month <= 2), month, day)
    }

    /// Hour, minute and second.
    fn time(self) -> (u64, u64, u64) {
        let seconds = self.0 % 86_400;
        (seconds / 3600, seconds / 60 % 60, seconds % 60)
    }

    /// The instant as `2024-02-29T23:59:59Z`.
    pub(super) fn rfc3339(self) -> String {
        let ((year, month, day), (hour, minute, second)) = (self.date(), self.time());
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// Date and time as MS-DOS and zip files have them: from 1980 on, in steps of two seconds.
    pub(super) fn dos(self) -> (u16, u16) {
        let ((year, month, day), (hour, minute, second)) = (self.date(), self.time());
        let Some(since) = year.checked_sub(1980) else {
            return (1 << 5 | 1, 0);
        };
        let date = since.min(127) << 9 | month << 5 | day;
        let time = hour << 11 | minute << 5 | (second / 2);
        // Both are below 2^16: 127 years, 23 hours.
        (date as u16, time as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::When;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(When(0).rfc3339(), "1970-01-01T00:00:00Z");
        assert_eq!(When(951_782_400).rfc3339(), "2000-02-29T00:00:00Z");
        assert_eq!(When(1_735_689_599).rfc3339(), "2024-12-31T23:59:59Z");
        let at = |y: u16, m: u16, d: u16| (y - 1980) << 9 | m << 5 | d;
        assert_eq!(When(0).dos(), (33, 0));
        assert_eq!(When(315_532_800).dos(), (at(1980, 1, 1), 0));
        let last = (at(2024, 12, 31), 23 << 11 | 59 << 5 | 29);
        assert_eq!(When(1_735_689_599).dos(), last);
    }
}
