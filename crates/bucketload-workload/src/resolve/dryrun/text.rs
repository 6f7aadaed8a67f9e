//! Formats the expected load of a plan as text.

use std::fmt;

use super::{DryRun, Outlook};
use bucketload_core::plan::PhaseKind;
use bucketload_core::units::format_duration;

/// Formats an expected size as `12.3 GiB`.
pub(in crate::resolve) fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (bytes, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{value:.0} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// Formats a number as `1,234,567`.
fn count(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

impl fmt::Display for Outlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OPEN: &str = "as many as the store can";
        let show = |value: Option<f64>| value.map_or(OPEN.to_owned(), bytes);
        match self.ops {
            None => write!(f, "{OPEN}")?,
            Some(ops) => write!(
                f,
                "{} operations, {} read, {} written",
                count(ops),
                show(self.bytes_read),
                show(self.bytes_written)
            )?,
        }
        match self.seconds {
            Some(seconds) => {
                let tenths = (seconds * 10.0).round() as u64 * 100_000_000;
                write!(f, ", {}", format_duration(tenths))
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for DryRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workload   {}", self.workload)?;
        if !self.profile.is_empty() {
            write!(f, " (profile {})", self.profile)?;
        }
        if !self.compat.is_empty() {
            writeln!(
                f,
                "\ncompat     {}, not to be compared with other results",
                self.compat
            )?;
        }
        writeln!(f, "\nscenario   {}", self.scenario_hash)?;
        writeln!(f, "schedule   {}", self.schedule_hash)?;
        writeln!(f, "seed       {}, scale {}", self.seed, self.scale)?;
        writeln!(
            f,
            "prepare    {} objects, {}",
            count(self.prepared_objects as f64),
            bytes(self.prepared_bytes)
        )?;
        for phase in self.phases.iter().filter(|p| p.kind == PhaseKind::Run) {
            writeln!(f, "phase      {}", phase.name)?;
            for work in &phase.works {
                let mix: Vec<String> = work
                    .mix
                    .iter()
                    .map(|(class, share)| format!("{class} {:.4}%", share * 100.0))
                    .map(|text| text.replace(".0000%", "%"))
                    .collect();
                writeln!(f, "  {}: {}", work.name, work.model)?;
                writeln!(f, "    mix      {}", mix.join(", "))?;
                writeln!(f, "    expected {}", work.total)?;
            }
        }
        write!(f, "total      {}", self.measured)
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes, count};

    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(0.0), "0");
        assert_eq!(count(1_234_567.4), "1,234,567");
        assert_eq!(bytes(0.0), "0 B");
        assert_eq!(bytes(1536.0), "1.5 KiB");
        assert_eq!(bytes(4e18), "3552.7 PiB");
    }
}
