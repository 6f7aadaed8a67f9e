//! Numbers, durations and sizes in fault rules. Errors state the expected form.

use std::time::Duration;

/// A parsed value, or a description of the problem.
pub(super) type Parsed<T> = Result<T, String>;

/// Reads a whole number.
pub(super) fn number(text: &str) -> Parsed<u64> {
    text.parse().map_err(|_| "expected a whole number".into())
}

/// Reads a whole number of at least 1.
pub(super) fn positive(text: &str) -> Parsed<u64> {
    number(text).and_then(|n| {
        if n > 0 {
            Ok(n)
        } else {
            Err("must be at least 1".into())
        }
    })
}

/// Reads a non-negative number.
pub(super) fn decimal(text: &str) -> Parsed<f64> {
    let number: f64 = text.parse().map_err(|_| "expected a number")?;
    if number.is_finite() && number >= 0.0 {
        Ok(number)
    } else {
        Err("must not be negative".into())
    }
}

/// Reads a number between 0 and 1.
pub(super) fn probability(text: &str) -> Parsed<f64> {
    decimal(text).and_then(|p| {
        if p <= 1.0 {
            Ok(p)
        } else {
            Err("must be between 0 and 1".into())
        }
    })
}

/// Distribution of a queue's service times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    Exponential,
    Constant,
}

/// Reads a distribution of service times.
pub(super) fn service(text: &str) -> Parsed<Service> {
    match text {
        "exp" => Ok(Service::Exponential),
        "const" => Ok(Service::Constant),
        _ => Err("expected exp or const".into()),
    }
}

/// Reads requests per second.
pub(super) fn per_second(text: &str) -> Parsed<f64> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    match decimal(number) {
        Ok(rate) if rate > 0.0 => Ok(rate),
        Ok(_) => Err("must be above zero".into()),
        Err(_) => Err("expected requests per second, such as 400/s".into()),
    }
}

/// Reads an HTTP status that reports an error.
pub(super) fn status(text: &str) -> Parsed<u16> {
    match text.parse() {
        Ok(status @ 400..=599) => Ok(status),
        _ => Err("expected a status between 400 and 599".into()),
    }
}

/// Splits `12.5MiB` into number and unit.
fn with_unit(text: &str) -> Parsed<(f64, &str)> {
    let at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    Ok((decimal(&text[..at])?, text[at..].trim()))
}

/// Reads a duration with its unit.
pub(super) fn duration(text: &str) -> Parsed<Duration> {
    let (number, unit) = with_unit(text)?;
    let seconds = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a duration with unit, such as 250us, 5ms, 10s, 2m".into()),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| "the duration is too long".into())
}

/// Reads a number of bytes with an optional unit.
pub(super) fn bytes(text: &str) -> Parsed<u64> {
    let (number, unit) = with_unit(text)?;
    let factor: u64 = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("expected bytes, such as 4096, 64KiB, 100MiB, 1GB".into()),
    };
    Ok((number * factor as f64) as u64)
}

/// Reads bytes per second.
pub(super) fn rate(text: &str) -> Parsed<u64> {
    let amount = text
        .strip_suffix("/s")
        .ok_or("expected bytes per second, such as 1MiB/s")?;
    bytes(amount).and_then(|n| {
        if n > 0 {
            Ok(n)
        } else {
            Err("must be at least 1B/s".into())
        }
    })
}
