//! `bucketload report`: the result of a run directory again, and its page anew.

use bucketload_results::output;

use crate::cli::capacity::StudyFormat;
use crate::cli::manage::ReportArgs;
use crate::cli::run::OutputFormat;
use crate::commands::docs::print;
use crate::commands::study;
use crate::exit::{Exit, Failure};
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
    let result = job::report(&args.directory)?;
    print_result(&result, args.output, color)?;
    if args.output == OutputFormat::Text {
        eprintln!("report: {}", args.directory.join("report.html").display());
    }
    Ok(Exit::Ok)
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
