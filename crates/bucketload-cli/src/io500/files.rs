//! The result files of IO500, computed from the run directory.

use std::path::Path;

use bucketload_results::io500::csv::csv;
use bucketload_results::io500::measure::{Report, SECOND, measure};
use bucketload_results::io500::{phases, text};
use bucketload_results::rundir::RunDir;

use super::{Config, PROFILE};
use crate::exit::{Failure, OrFail};

/// Whether `dir` is the run directory of an IO500 run.
pub(crate) fn is_io500(dir: &Path) -> bool {
    RunDir::open(dir).is_ok_and(|run| run.manifest().plan.profile == PROFILE)
}

/// Computes the scores of the run in `dir` and its configuration.
///
/// # Errors
/// When the directory cannot be read.
pub(crate) fn scored(dir: &Path) -> Result<(Report, Config), Failure> {
    let run = RunDir::open(dir).or_usage()?;
    let manifest = run.manifest();
    let ini = &manifest.workload_source;
    let config = Config::read(Some(("config.ini", ini)), &[]).or_usage()?;
    let planned = |name: &str| {
        let mut all = manifest.plan.phases.iter();
        all.any(|phase| phase.name == name || phase.name == format!("{name}{SECOND}"))
    };
    let extended = config.extended().or_usage()?;
    let skipped = phases(extended)
        .iter()
        .filter(|phase| !planned(phase.name))
        .map(|phase| {
            let why = config
                .skipped(phase.name)
                .unwrap_or_else(|| "its input is not written, or not in this mapping".to_owned());
            (phase.name.to_owned(), why)
        });
    let skipped = skipped.collect();
    let settings = config.settings(skipped).or_usage()?;
    let report = measure(dir, &settings).or_usage()?;
    Ok((report, config))
}

/// Computes the scores of the run in `dir` and writes its result files.
///
/// # Errors
/// When the directory cannot be read or written.
pub(crate) fn write(dir: &Path) -> Result<Report, Failure> {
    let (report, files) = files(dir, None)?;
    for (name, text) in files {
        crate::files::write(dir.join(name), text)?;
    }
    Ok(report)
}

/// Computes the scores of the run in `dir` and its result files, by name. `result_dir` is the path that the files
/// name as their directory; the default is the path of `dir`.
///
/// # Errors
/// When the directory cannot be read.
pub(crate) fn files(
    dir: &Path,
    result_dir: Option<String>,
) -> Result<(Report, Vec<(String, String)>), Failure> {
    let (mut report, config) = scored(dir)?;
    if let Some(result_dir) = result_dir {
        report.result_dir = result_dir;
    }
    let mut files = vec![
        ("config.ini".to_owned(), config.file()),
        ("timestampfile".to_owned(), String::new()),
        ("result.txt".to_owned(), text::result(&report)),
        ("result_summary.txt".to_owned(), text::summary(&report)),
    ];
    let phases = phases(report.extended);
    for ((phase, ranks), score) in phases.iter().zip(&report.ranks_of).zip(&report.phases) {
        if let Some(ranks) = ranks {
            files.push((format!("{}.csv", phase.name), csv(phase, ranks)));
            files.push((format!("{}.txt", phase.name), text::phase(score, ranks)));
        }
    }
    Ok((report, files))
}
