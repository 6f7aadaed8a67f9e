//! `bucketload convert`: checks and expands a COSBench workload.

use bucketload_cosbench::{Availability, Workload, parse, workload_config};

use super::docs::print;
use crate::cli::GlobalArgs;
use crate::cli::convert::ConvertArgs;
use crate::exit::{Exit, Failure};
use crate::files;

/// Reads the workload, prints warnings, and writes the expanded form.
pub(crate) fn execute(args: &ConvertArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let file = args.file.display();
    let parsed =
        parse(&files::read(&args.file)?).map_err(|e| Failure::usage(format!("{file}: {e}")))?;
    if !global.quiet {
        for warning in &parsed.warnings {
            eprintln!("bucketload: {file}: {warning}");
        }
        for note in unavailable(&parsed.workload) {
            eprintln!("bucketload: {file}: {note}");
        }
    }
    let xml = workload_config(&parsed.workload, !args.show_secrets);
    match &args.out {
        None => print(xml.as_bytes()),
        Some(path) => {
            std::fs::write(path, xml)
                .map_err(|e| Failure::usage(format!("--out {}: {e}", path.display())))?;
            Ok(Exit::Ok)
        }
    }
}

/// Notes on adapters that are known but not supported, each once.
fn unavailable(workload: &Workload) -> Vec<String> {
    let works = workload.stages.iter().flat_map(|stage| &stage.works);
    let mut notes: Vec<String> = works
        .flat_map(|work| {
            [
                ("storage", work.storage.adapter),
                ("auth", work.auth.adapter),
            ]
        })
        .filter_map(|(kind, adapter)| match adapter.availability {
            Availability::Available => None,
            Availability::Unavailable(why) => {
                Some(format!("{kind} `{}` is not supported: {why}", adapter.name))
            }
        })
        .collect();
    notes.sort();
    notes.dedup();
    notes
}
