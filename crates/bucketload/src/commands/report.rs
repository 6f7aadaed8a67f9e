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
use crate::exit::{Exit, Failure};
use crate::io500;
use crate::job;
use bucketload_results::result::{NodeBalance, RunResult};

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
    let nodes = match &args.placement {
        None => None,
        Some(placement) => Some(node_balance(args, placement)?),
    };
    let result = job::report_with(&args.directory, nodes)?;
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

/// The load of the data nodes, from the placement that was given.
fn node_balance(args: &ReportArgs, placement: &Path) -> Result<NodeBalance, Failure> {
    let balance = || {
        let table = analyze::read_placement(placement)?;
        let served = args
            .served
            .as_ref()
            .map(|served| analyze::read_served(served, &table))
            .transpose()?;
        analyze::nodes(&args.directory, &table, served.as_ref())
    };
    balance().map_err(|e| Failure::usage(e.to_string()))
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
