//! Parses the instants of logs into nanoseconds since 1970-01-01T00:00:00Z.

use super::fields::unsigned;

const NS: i64 = 1_000_000_000;

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar (Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y - era * 400;
    let shifted = (month + 9) % 12;
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Nanoseconds since the epoch; `None` if a part is out of range.
fn instant(date: [i64; 3], clock: [i64; 3], offset_s: i64, frac_ns: i64) -> Option<i64> {
    let [year, month, day] = date;
    let [hour, minute, second] = clock;
    // Second 60 is a leap second. The years keep nanoseconds within 64 bits.
    let sound = (1700..2260).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    sound.then(|| {
        let seconds =
            days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset_s;
        seconds * NS + frac_ns
    })
}

fn number(text: &[u8], from: usize, len: usize) -> Option<i64> {
    let digits = text.get(from..from + len)?;
    unsigned(digits).and_then(|n| i64::try_from(n).ok())
}

fn month(name: &[u8]) -> Option<i64> {
    const NAMES: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let index = NAMES.chunks(3).position(|m| m.eq_ignore_ascii_case(name))?;
    Some(index as i64 + 1)
}

/// Digits after a decimal point as nanoseconds, truncated to nine digits.
fn fraction(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let padded = digits
        .iter()
        .copied()
        .chain(std::iter::repeat(b'0'))
        .take(9);
    Some(padded.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

/// `+hhmm`, `+hh:mm` or `+hh` in seconds.
fn offset(text: &[u8]) -> Option<i64> {
    let (&sign, rest) = text.split_first()?;
    let sign = match sign {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = number(rest, 0, 2)?;
    let minutes = match rest.len() {
        2 => 0,
        4 => number(rest, 2, 2)?,
        5 if rest[2] == b':' => number(rest, 3, 2)?,
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Parses `2031-03-14T09:26:53.589793Z` (RFC 3339), also with a space instead of `T` and with an offset such as
/// `+0100`. Without `Z` and offset, it is UTC.
pub(crate) fn rfc3339(text: &[u8]) -> Option<i64> {
    let at = |i: usize, set: &[u8]| text.get(i).is_some_and(|c| set.contains(c));
    if !(at(4, b"-") && at(7, b"-") && at(10, b"Tt ") && at(13, b":") && at(16, b":")) {
        return None;
    }
    let date = [
        number(text, 0, 4)?,
        number(text, 5, 2)?,
        number(text, 8, 2)?,
    ];
    let clock = [
        number(text, 11, 2)?,
        number(text, 14, 2)?,
        number(text, 17, 2)?,
    ];
    let mut rest = &text[19..];
    let mut frac = 0;
    if let Some(after) = rest.strip_prefix(b".") {
        let end = after.iter().position(|c| !c.is_ascii_digit());
        let (digits, tail) = after.split_at(end.unwrap_or(after.len()));
        frac = fraction(digits)?;
        rest = tail;
    }
    let offset_s = match rest {
        b"" | b"Z" | b"z" => 0,
        other => offset(other)?,
    };
    instant(date, clock, offset_s, frac)
}

/// Parses `14/Mar/2031:09:26:53 +0000`, the form of web servers and S3.
pub(crate) fn common_log(text: &[u8]) -> Option<i64> {
    let offset_s = match text.get(20..) {
        None | Some(b"") => 0,
        Some(rest) => offset(rest.strip_prefix(b" ")?)?,
    };
    slashed(text, b':', b':', offset_s)
}

/// Parses `14/Mar/2031/09/26/53`, the form of Swift, in UTC.
pub(crate) fn swift(text: &[u8]) -> Option<i64> {
    (text.len() == 20).then_some(())?;
    slashed(text, b'/', b'/', 0)
}

fn slashed(text: &[u8], after_date: u8, in_clock: u8, offset_s: i64) -> Option<i64> {
    let at = |i: usize, c: u8| text.get(i) == Some(&c);
    let marks = at(2, b'/') && at(6, b'/') && at(11, after_date);
    if !(marks && at(14, in_clock) && at(17, in_clock)) {
        return None;
    }
    let date = [
        number(text, 7, 4)?,
        month(text.get(3..6)?)?,
        number(text, 0, 2)?,
    ];
    let clock = [
        number(text, 12, 2)?,
        number(text, 15, 2)?,
        number(text, 18, 2)?,
    ];
    instant(date, clock, offset_s, 0)
}

/// Parses a decimal number of units of `unit_ns` nanoseconds, such as `1931246813.012345678` seconds, into
/// nanoseconds.
pub(crate) fn decimal(text: &[u8], unit_ns: i64) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let point = digits.iter().position(|&c| c == b'.');
    let (whole, frac) = match point {
        Some(at) => (&digits[..at], fraction(&digits[at + 1..])?),
        None => (digits, 0),
    };
    let whole = i64::try_from(unsigned(whole)?).ok()?;
    let part = i64::try_from(i128::from(frac) * i128::from(unit_ns) / i128::from(NS)).ok()?;
    let value = whole.checked_mul(unit_ns)?.checked_add(part)?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::{common_log, decimal, rfc3339, swift};

    // date -u -d 2031-03-14T09:26:53 +%s
    const SECONDS: i64 = 1_931_246_813;

    #[test]
    fn all_forms_give_the_same_instant() {
        let ns = SECONDS * 1_000_000_000;
        assert_eq!(common_log(b"14/Mar/2031:09:26:53 +0000"), Some(ns));
        assert_eq!(common_log(b"14/Mar/2031:10:56:53 +0130"), Some(ns));
        assert_eq!(swift(b"14/Mar/2031/09/26/53"), Some(ns));
        assert_eq!(rfc3339(b"2031-03-14T09:26:53Z"), Some(ns));
        assert_eq!(rfc3339(b"2031-03-14 09:26:53"), Some(ns));
        let frac = ns + 589_793_000;
        assert_eq!(rfc3339(b"2031-03-14T09:26:53.589793Z"), Some(frac));
        assert_eq!(rfc3339(b"2031-03-14T10:26:53.589793+0100"), Some(frac));
        assert_eq!(rfc3339(b"2031-03-14T04:26:53.589793-05:00"), Some(frac));
        assert_eq!(decimal(b"1931246813.589793", 1_000_000_000), Some(frac));
        assert_eq!(decimal(b"1931246813589.793", 1_000_000), Some(frac));
        assert_eq!(rfc3339(b"1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(
            rfc3339(b"2000-02-29T00:00:00Z"),
            Some(951_782_400_000_000_000)
        );
    }

    #[test]
    fn invalid_instants_are_refused() {
        for text in [
            "",
            "2031-03-14",
            "2031-13-14T09:26:53Z",
            "2031-03-14T09:26:5",
            "2031-03-14T25:26:53Z",
            "2031-03-14T09:26:53.Z",
            "2031-03-14T09:26:53X",
            "9999-01-01T00:00:00Z",
        ] {
            assert_eq!(rfc3339(text.as_bytes()), None, "{text}");
        }
        for text in [
            "",
            "14/Foo/2031:09:26:53 +0000",
            "14/Mar/2031:09:26:53 0000",
            "14/Mar/2031",
        ] {
            assert_eq!(common_log(text.as_bytes()), None, "{text}");
        }
        for text in ["", "-", ".", "1.", "x", "99999999999999999999"] {
            assert_eq!(decimal(text.as_bytes(), 1_000_000_000), None, "{text}");
        }
    }
}
