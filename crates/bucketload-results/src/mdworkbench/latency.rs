//! Latency files: `<prefix>-<waiting factor>-<iteration>-<operation>.csv` (docs/spec/io500-mdworkbench.md section B.3).

use std::fmt::Write as _;

use super::measure::{Kind, Stage, StageKind};

/// The latency files of a phase: the part of their names after the prefix, and their text. `iteration` counts the
/// iterations of the benchmark. With `all`, they cover all ranks instead of rank 0 alone.
#[must_use]
pub fn files(stage: &Stage, iteration: u32, all: bool) -> Vec<(String, String)> {
    let kinds: &[(Kind, &str)] = match stage.kind {
        StageKind::Precreate => &[(Kind::Create, "precreate")],
        StageKind::Benchmark => &[
            (Kind::Read, "read"),
            (Kind::Stat, "stat"),
            (Kind::Create, "create"),
            (Kind::Delete, "delete"),
        ],
        StageKind::Cleanup => &[(Kind::Delete, "cleanup")],
        StageKind::Audit => &[],
    };
    let file = |(kind, name): &(Kind, &str)| {
        let mut text = String::from("time,runtime\n");
        let wanted = stage
            .samples
            .iter()
            .filter(|s| s.kind == *kind && (all || s.rank == 0));
        for sample in wanted {
            let at = sample.at_ns as f64 / 1e9;
            let _ = writeln!(text, "{at:.7},{}", scientific(f64::from(sample.seconds())));
        }
        let suffix = if all { "-all" } else { "" };
        let name = format!("-{:.2}-{iteration}-{name}{suffix}.csv", stage.plan.waiting);
        (name, text)
    };
    kinds.iter().map(file).collect()
}

/// A number in C's `%.4e` format.
#[must_use]
pub fn scientific(value: f64) -> String {
    let text = format!("{value:.4e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::scientific;

    #[test]
    fn numbers_are_written_as_c_does() {
        // The value shown in section B.3.
        assert_eq!(scientific(0.0069497), "6.9497e-03");
        assert_eq!(scientific(0.0), "0.0000e+00");
        assert_eq!(scientific(12_345.0), "1.2345e+04");
    }
}
