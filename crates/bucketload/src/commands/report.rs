//! `bucketload report`: the result of a run directory again, and its page anew.

use bucketload_results::output;

use crate::cli::manage::ReportArgs;
use crate::cli::run::OutputFormat;
use crate::commands::docs::print;
use crate::exit::{Exit, Failure};
use crate::job;
use bucketload_results::result::RunResult;

/// Analyses the directory, writes its report and prints the result.
pub(crate) fn execute(args: &ReportArgs, color: bool) -> Result<Exit, Failure> {
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
