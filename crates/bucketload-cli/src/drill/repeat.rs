//! `--repeat`: the same drill several times, each in a process of its own, and the medians of its figures.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use bucketload_core::stats::quantile::ci_ranks;
use bucketload_results::drill::DrillResult;
use bucketload_results::kit::Table;
use bucketload_results::result::RunResult;
use bucketload_results::units;
use bucketload_run::{StopHandle, StopLevel};

use crate::exit::{Exit, Failure, OrFail};
use crate::job;

/// How often a running drill is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// A figure: its name, how it is shown, and how a drill has it.
type Figure = (
    &'static str,
    fn(f64) -> String,
    fn(&DrillResult) -> Option<f64>,
);

const FIGURES: [Figure; 6] = [
    ("time to detect", units::seconds, |d| Some(d.detect?.s)),
    ("time to recover", units::seconds, |d| Some(d.recover?.s)),
    ("longest time without a success", units::seconds, |d| {
        Some(d.longest_gap.s)
    }),
    ("throughput over the baseline", units::percent, |d| {
        d.throughput_ratio
    }),
    ("availability since the first break", units::percent, |d| {
        Some(d.available_since.share)
    }),
    ("backlog worked off", units::seconds, |d| {
        Some(d.worked_off?.s)
    }),
];

/// Runs the drill of this command line `count` times into `dir/1`, `dir/2` and so on. Returns the summary and how to exit.
///
/// # Errors
/// When a drill fails or is interrupted; those before it are kept.
pub(crate) fn execute(
    count: u32,
    dir: &Path,
    stop: &StopHandle,
) -> Result<(String, Exit), Failure> {
    let mut worst = Exit::Ok;
    for number in 1..=count {
        let out = dir.join(number.to_string());
        eprintln!("bucketload: drill {number} of {count}: {}", out.display());
        let program = std::env::current_exe().or_aborted()?;
        let mut child = Command::new(program)
            .args(once(std::env::args_os().skip(1), &out))
            .arg("--exit-with-stdin")
            // The drill mends and stops when this process ends and closes the pipe.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .or_aborted()?;
        let status = ended(&mut child, stop).or_aborted()?;
        match status.code() {
            Some(0) => {}
            _ if stop.level() != StopLevel::Run => return Err(Failure::interrupted()),
            // A gate that failed is a result.
            Some(1) if job::result(&out).is_ok_and(|r| is_complete(&r)) => worst = Exit::GateFailed,
            _ => {
                return Err(Failure::aborted(format!(
                    "drill {number} of {count} failed ({status}); the drills before it are in {}",
                    dir.display()
                )));
            }
        }
    }
    Ok((summary(dir, count)?, worst))
}

/// Waits for a drill. Closes its standard input, which stops it, once this process is to stop.
fn ended(child: &mut Child, stop: &StopHandle) -> std::io::Result<ExitStatus> {
    // `Child::wait` would close it at once.
    let mut pipe = child.stdin.take();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.level() != StopLevel::Run {
            drop(pipe.take());
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether something was broken, so the drill has figures.
fn is_complete(result: &RunResult) -> bool {
    result
        .drill
        .as_ref()
        .is_some_and(|drill| !drill.faults.is_empty())
}

/// The arguments of one drill: those of this process without `--repeat` and with its own directory.
fn once(args: impl Iterator<Item = OsString>, out: &Path) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut args = args.peekable();
    while let Some(arg) = args.next() {
        let text = arg.to_string_lossy().into_owned();
        let flags = ["--repeat", "--out", "--output", "-o"];
        if flags.contains(&text.as_str()) {
            args.next();
        } else if !flags
            .iter()
            .any(|flag| text.starts_with(&format!("{flag}=")))
        {
            kept.push(arg);
        }
    }
    kept.extend(["--out".into(), out.as_os_str().to_owned()]);
    kept
}

/// The medians of the drills in `dir`, each with its interval.
fn summary(dir: &Path, count: u32) -> Result<String, Failure> {
    let outs: Vec<PathBuf> = (1..=count)
        .map(|number| dir.join(number.to_string()))
        .collect();
    let drills = outs.iter().map(|out| Ok(job::result(out)?.drill));
    let drills = drills.collect::<Result<Vec<_>, Failure>>()?;
    let drills: Vec<DrillResult> = drills.into_iter().flatten().collect();
    let rows = FIGURES.iter().map(|(name, show, of)| {
        let mut values: Vec<f64> = drills.iter().filter_map(of).collect();
        values.sort_by(f64::total_cmp);
        let n = values.len();
        let Some((median, (low, high), kind)) = median(&values) else {
            return [
                (*name).to_owned(),
                "-".to_owned(),
                "-".to_owned(),
                format!("0 of {count}"),
            ];
        };
        let interval = format!("{} to {} ({kind})", show(low), show(high));
        [
            (*name).to_owned(),
            show(median),
            interval,
            format!("{n} of {count}"),
        ]
    });
    let table = Table::new(4, ["figure", "median", "interval", "drills"]).with(rows);
    Ok(table.markdown())
}

/// The median of ascending values, and its 95 % interval, or the range of fewer values than an interval needs.
fn median(values: &[f64]) -> Option<(f64, (f64, f64), &'static str)> {
    let n = values.len();
    let middle = (*values.get((n.checked_sub(1)?) / 2)? + *values.get(n / 2)?) / 2.0;
    // Ranks count from 1.
    let at = |rank: u64| {
        values
            .get(usize::try_from(rank).ok()?.checked_sub(1)?)
            .copied()
    };
    let interval = ci_ranks(n as u64, 0.5).and_then(|(low, high)| Some((at(low)?, at(high)?)));
    match interval {
        Some(interval) => Some((middle, interval, "95 %")),
        None => Some((middle, (values[0], values[n - 1]), "range")),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use super::{median, once};

    #[test]
    fn each_drill_has_its_own_directory() {
        let line = "drill d.toml --repeat 3 --out all --rate=5 --output=json --hook mend=x";
        let args = once(line.split(' ').map(OsString::from), Path::new("all/1"));
        let args: Vec<_> = args.iter().map(|arg| arg.to_str().unwrap()).collect();
        assert_eq!(
            args.join(" "),
            "drill d.toml --rate=5 --hook mend=x --out all/1"
        );
    }

    #[test]
    fn a_median_has_an_interval_if_there_are_enough_values() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, 2.0, 4.0]), Some((2.0, (1.0, 4.0), "range")));
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(median(&ten), Some((5.5, (2.0, 9.0), "95 %")));
    }
}
