//! `bucketload workloads`, `bucketload show` and `bucketload schema`.

use std::fmt::Write as _;

use bucketload_workload::spec::{BUILTIN_WORKLOADS, WorkloadFile};

use super::docs::print;
use crate::advice::with_remedy;
use crate::exit::{Exit, Failure, OrFail};
use crate::files;

/// Lists the built-in workloads with their descriptions.
pub(crate) fn list() -> Result<Exit, Failure> {
    let width = BUILTIN_WORKLOADS
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    for (name, _) in BUILTIN_WORKLOADS {
        let file = WorkloadFile::builtin(name).or_aborted()?;
        let text = file.spec().description.as_deref().unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:width$}  {text}");
        for (profile, spec) in file.spec().profiles.iter().flat_map(|profiles| &profiles.0) {
            let text = spec.description.as_deref().unwrap_or_default();
            let _ = writeln!(out, "{:width$}    --profile-name {profile}: {text}", "");
        }
    }
    print(out.as_bytes())
}

/// Prints a built-in workload or drill.
pub(crate) fn show(name: &str) -> Result<Exit, Failure> {
    let drill = |unknown| WorkloadFile::drill(name).map_err(|_| unknown);
    let file = WorkloadFile::builtin(name).or_else(drill).or_usage()?;
    print(file.text().as_bytes())
}

/// Prints the JSON Schema of workload files.
pub(crate) fn schema() -> Result<Exit, Failure> {
    print(bucketload_workload::spec::workload_schema().as_bytes())
}

/// The workload `name`: a file if the name looks like one or a file exists, else a built-in workload.
pub(crate) fn load(name: &str) -> Result<WorkloadFile, Failure> {
    if crate::cosbench::is_workload(name) {
        return Err(Failure::usage(format!(
            "{name} is a COSBench workload, which only `run`, `convert` and `submit` accept"
        )));
    }
    let is_file =
        name.ends_with(".toml") || name.contains('/') || std::path::Path::new(name).is_file();
    if !is_file {
        return WorkloadFile::builtin(name).or_usage();
    }
    let text = files::read(name).map_err(|failure| {
        let known = "a workload is a file or a name; `bucketload workloads` lists the names";
        Failure::usage(with_remedy(failure.message, Some(known)))
    })?;
    WorkloadFile::parse(name, &text).or_usage()
}
