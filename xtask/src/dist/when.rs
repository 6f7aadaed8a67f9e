//! The time that packages carry instead of their build time, so that the same source gives the same bytes:
//! `SOURCE_DATE_EPOCH`, or else the time of the last commit.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::sh::{Result, cmd, output};

const VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// Seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceTime(pub(super) u64);

impl SourceTime {
    /// The time of the source.
    ///
    /// # Errors
    /// Neither the variable nor a commit gives a time.
    pub(super) fn of_source() -> Result<Self> {
        if let Ok(text) = std::env::var(VARIABLE) {
            let seconds = text.trim().parse();
            return seconds.map(Self).map_err(|_| {
                format!(
                    "{VARIABLE}={text}: not a number of seconds since 1970; correct or unset it"
                )
            });
        }
        let commit = output(&mut cmd("git", ["log", "-1", "--format=%ct"]));
        let seconds = commit.ok().and_then(|text| text.trim().parse().ok());
        seconds.map(Self).ok_or_else(|| {
            format!("no commit gives packages a time; set {VARIABLE} to seconds since 1970")
        })
    }

    fn utc(self) -> OffsetDateTime {
        let seconds = i64::try_from(self.0).ok();
        let instant = seconds.and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
        instant.unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }

    /// The time as `2024-02-29T23:59:59Z`.
    pub(super) fn rfc3339(self) -> String {
        self.utc().format(&Rfc3339).unwrap_or_default()
    }

    /// Date and time in MS-DOS form, as in zip files: from 1980 on, in steps of two seconds.
    pub(super) fn dos(self) -> (u16, u16) {
        let utc = self.utc();
        let Ok(since) = u16::try_from(utc.year() - 1980) else {
            return (1 << 5 | 1, 0);
        };
        let date =
            since.min(127) << 9 | u16::from(u8::from(utc.month())) << 5 | u16::from(utc.day());
        let (hour, minute, second) = utc.to_hms();
        let time = u16::from(hour) << 11 | u16::from(minute) << 5 | u16::from(second / 2);
        (date, time)
    }
}

#[cfg(test)]
mod tests {
    use super::SourceTime;

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(SourceTime(0).rfc3339(), "1970-01-01T00:00:00Z");
        assert_eq!(SourceTime(951_782_400).rfc3339(), "2000-02-29T00:00:00Z");
        assert_eq!(SourceTime(1_735_689_599).rfc3339(), "2024-12-31T23:59:59Z");
        let at = |y: u16, m: u16, d: u16| (y - 1980) << 9 | m << 5 | d;
        assert_eq!(SourceTime(0).dos(), (33, 0));
        assert_eq!(SourceTime(315_532_800).dos(), (at(1980, 1, 1), 0));
        let last = (at(2024, 12, 31), 23 << 11 | 59 << 5 | 29);
        assert_eq!(SourceTime(1_735_689_599).dos(), last);
    }
}
