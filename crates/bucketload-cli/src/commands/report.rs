//! `bucketload report`: the result of a run directory again, and its page anew.

use std::path::Path;

use bucketload_results::analyze;
use bucketload_results::output;

use crate::cli::capacity::StudyFormat;
use crate::cli::manage::ReportArgs;
use crate::cli::run::OutputFormat;
use crate::commands::docs::print;
use crate::commands::study;
use crate::cosbench;
use crate::exit::{Exit, Failure, OrFail};
use crate::io500;
use crate::job;
use bucketload_results::result::RunResult;

/// Analyses the directory, writes its report and prints the result.
///
/// The directory may be one of several runs, written by `capacity` or `sweep`.
pub(crate) fn execute(args: &ReportArgs, color: bool) -> Result<Exit, Failure> {
    let study_format = match args.output {
        OutputFormat::Text => Some(StudyFormat::Text),
        OutputFormat::Json => Some(StudyFormat::Json),
        OutputFormat::Jsonl | OutputFormat::Csv => None,
    };
    if study::is_study(&args.directory) {
        let Some(format) = study_format else {
            return Err(Failure::usage(
                "--output: several runs are reported as text or json; the trials are in trials.jsonl, each with a run directory of its own",
            ));
        };
        study::report(&args.directory, format, true)?;
        return Ok(Exit::Ok);
    }
    if let Some(placement) = &args.placement {
        keep_placement(args, placement)?;
    }
    let result = job::report(&args.directory)?;
    if let Some(archive) = &args.cosbench_artifacts {
        // Only a process with one thread may ask for it.
        let local = time::UtcOffset::current_local_offset().unwrap_or(time::UtcOffset::UTC);
        let offset = i64::from(local.whole_seconds());
        let place = cosbench::artifacts::write(&args.directory, &result, archive, None, offset)?;
        eprintln!("bucketload: COSBench's artifacts: {}", place.display());
    }
    if io500::is_io500(&args.directory) {
        io500::write(&args.directory)?;
    }
    print_result(&result, args.output, color)?;
    if args.output == OutputFormat::Text {
        eprintln!("report: {}", args.directory.join("report.html").display());
    }
    Ok(Exit::Ok)
}

/// Puts the placement that was given into the run directory, so that all that the report says follows from
/// what stands there. What cannot be used is refused first.
fn keep_placement(args: &ReportArgs, placement: &Path) -> Result<(), Failure> {
    let balance = || {
        let table = analyze::read_placement(placement)?;
        let served = args
            .served
            .as_ref()
            .map(|served| analyze::read_served(served, &table))
            .transpose()?;
        analyze::nodes(&args.directory, &table, served.as_ref())
    };
    balance().or_usage()?;
    let keep = |from: &Path, name: &str| {
        let (to, new) = (
            args.directory.join(name),
            args.directory.join(format!("{name}.new")),
        );
        // By way of another name: the file that was given may be the one that is kept.
        std::fs::copy(from, &new)
            .and_then(|_| std::fs::rename(&new, &to))
            .map_err(|e| Failure::aborted(format!("{}: {e}", to.display())))
    };
    keep(placement, job::PLACEMENT)?;
    match &args.served {
        Some(served) => keep(served, job::SERVED),
        None => match std::fs::remove_file(args.directory.join(job::SERVED)) {
            // That of another placement.
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::aborted(e.to_string()))
            }
            _ => Ok(()),
        },
    }
}

/// Prints a result in the form asked for.
pub(crate) fn print_result(
    result: &RunResult,
    format: OutputFormat,
    color: bool,
) -> Result<(), Failure> {
    let text = match format {
        OutputFormat::Text => output::text(result, output::TextOptions { colour: color }),
        OutputFormat::Json => output::json(result),
        OutputFormat::Jsonl => output::jsonl(result),
        OutputFormat::Csv => output::csv(result),
    };
    print(text.as_bytes()).map(drop)
}
