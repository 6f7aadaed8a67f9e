//! `bucketload report`: the result of a run directory again, and its page anew.

use std::path::Path;

use bucketload_results::analyze;
use bucketload_results::output;

use crate::cli::manage::ReportArgs;
use crate::cli::run::OutputFormat;
use crate::commands::docs::print;
use crate::exit::{Exit, Failure};
use crate::job;
use bucketload_results::result::{NodeBalance, RunResult};

/// Analyses the directory, writes its report and prints the result.
pub(crate) fn execute(args: &ReportArgs, color: bool) -> Result<Exit, Failure> {
    let nodes = match &args.placement {
        None => None,
        Some(placement) => Some(node_balance(args, placement)?),
    };
    let result = job::report_with(&args.directory, nodes)?;
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
