//! `bucketload report`: computes the result of a run directory again and rewrites its page.

use std::io::IsTerminal as _;
use std::path::Path;

use bucketload_results::analyze;
use bucketload_results::output::{self, TextOptions};

use crate::cli::capacity::StudyFormat;
use crate::cli::manage::ReportArgs;
use crate::cli::run::OutputFormat;
use crate::commands::docs::print;
use crate::cosbench;
use crate::exit::{Exit, Failure, OrFail};
use crate::experiment;
use crate::io500;
use crate::job;
use crate::setup;
use bucketload_results::result::RunResult;

/// Analyses the directory, writes its report and prints the result.
///
/// The directory may hold several runs, as `capacity` and `sweep` write them.
pub(crate) fn execute(args: &ReportArgs, color: bool) -> Result<Exit, Failure> {
    let directory = match &args.directory {
        Some(directory) => directory,
        None => &setup::latest_directory()?,
    };
    if !directory.is_dir() {
        return Err(Failure::usage(format!(
            "{}: there is no such directory; name a run directory, or none for the latest",
            directory.display()
        )));
    }
    let study_format = match args.output {
        OutputFormat::Text => Some(StudyFormat::Text),
        OutputFormat::Json => Some(StudyFormat::Json),
        OutputFormat::Jsonl | OutputFormat::Csv => None,
    };
    if let Some(kind) = experiment::kind_of(directory) {
        let Some(format) = study_format else {
            return Err(Failure::usage(
                "--output: a directory of several runs is reported as text or json; trials.jsonl lists the trials, each with its own run directory",
            ));
        };
        (kind.derive)(directory, true)?.publish(directory, format)?;
        return Ok(Exit::Ok);
    }
    if let Some(placement) = &args.placement {
        keep_placement(directory, args, placement)?;
    }
    let result = job::report(directory)?;
    if let Some(archive) = &args.cosbench_artifacts {
        // Available only while the process has a single thread.
        let local = time::UtcOffset::current_local_offset().unwrap_or(time::UtcOffset::UTC);
        let offset = i64::from(local.whole_seconds());
        let dir = cosbench::artifacts::write(directory, &result, archive, None, offset)?;
        eprintln!("bucketload: COSBench's artifacts: {}", dir.display());
    }
    if io500::is_io500(directory) {
        io500::write(directory)?;
    }
    print_result(&result, args.output, text_options(color, args.explain))?;
    if args.output == OutputFormat::Text {
        eprintln!("report: {}", directory.join("report.html").display());
    }
    Ok(Exit::Ok)
}

/// Copies the given placement into the run directory, so that the whole report follows from the directory. Refuses an
/// unusable placement first.
fn keep_placement(directory: &Path, args: &ReportArgs, placement: &Path) -> Result<(), Failure> {
    let balance = || {
        let table = analyze::read_placement(placement)?;
        let served = args
            .served
            .as_ref()
            .map(|served| analyze::read_served(served, &table))
            .transpose()?;
        analyze::nodes(directory, &table, served.as_ref())
    };
    balance().or_usage()?;
    let keep = |from: &Path, name: &str| {
        let (to, new) = (directory.join(name), directory.join(format!("{name}.new")));
        // Copies to another name first, because source and destination may be the same file.
        std::fs::copy(from, &new)
            .and_then(|_| std::fs::rename(&new, &to))
            .map_err(|e| Failure::aborted(format!("{}: {e}", to.display())))
    };
    keep(placement, job::PLACEMENT)?;
    match &args.served {
        Some(served) => keep(served, job::SERVED),
        None => match std::fs::remove_file(directory.join(job::SERVED)) {
            // Any such file belongs to another placement.
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::aborted(e.to_string()))
            }
            _ => Ok(()),
        },
    }
}

/// Columns of the terminal on standard output; `None` if it is none.
pub(crate) fn terminal_width() -> Option<usize> {
    let out = std::io::stdout();
    out.is_terminal().then(|| {
        let size = rustix::termios::tcgetwinsize(&out);
        // A terminal that does not know its size says 0.
        match size.map_or(0, |size| usize::from(size.ws_col)) {
            0 => 80,
            columns => columns.clamp(40, 1000),
        }
    })
}

/// How to write text for the terminal on standard output; without limits if it is none.
pub(crate) fn text_options(colour: bool, explain: bool) -> TextOptions {
    TextOptions {
        colour,
        width: terminal_width(),
        explain,
    }
}

/// Prints a result in the requested format.
pub(crate) fn print_result(
    result: &RunResult,
    format: OutputFormat,
    options: TextOptions,
) -> Result<(), Failure> {
    let text = match format {
        OutputFormat::Text => output::text(result, options),
        OutputFormat::Json => output::json(result),
        OutputFormat::Jsonl => output::jsonl(result),
        OutputFormat::Csv => output::csv(result),
    };
    print(text.as_bytes()).map(drop)
}
