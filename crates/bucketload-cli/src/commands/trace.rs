//! Turns log files into a prepared trace, for `replay` and `model`.

use std::path::{Path, PathBuf};

use bucketload_core::units;
use bucketload_trace::{CanonicalTrace, PrepareOptions, Summary, TraceError, prepare};
use tempfile::TempDir;

use crate::cli::trace::TraceArgs;
use crate::exit::Failure;

/// A prepared trace, and its temporary directory.
pub(crate) struct PreparedTrace {
    pub(crate) trace: CanonicalTrace,
    /// Everything that determines the trace's records, as text.
    pub(crate) identity: String,
    _temp: TempDir,
}

/// Imports the files, or opens a trace that was prepared before.
///
/// # Errors
/// When the files cannot be read or parsed.
pub(crate) fn prepared(
    args: &TraceArgs,
    seed: u64,
    replay_errors: bool,
    quiet: bool,
) -> Result<PreparedTrace, Failure> {
    let place = args.temp.clone().unwrap_or_else(std::env::temp_dir);
    let temp = tempfile::Builder::new()
        .prefix("bucketload-trace-")
        .tempdir_in(&place)
        .map_err(|e| Failure::usage(format!("--temp {}: {e}", place.display())))?;
    let options = args.prepare(temp.path().to_owned(), seed, replay_errors);
    if let [file] = args.files.as_slice()
        && CanonicalTrace::is_canonical(file)
    {
        refuse_changes(&options)?;
        let trace = CanonicalTrace::open(file).map_err(failure)?;
        let identity = identity(trace.summary(), "");
        return Ok(PreparedTrace {
            trace,
            identity,
            _temp: temp,
        });
    }
    if let Some(file) = args
        .files
        .iter()
        .find(|file| CanonicalTrace::is_canonical(file))
    {
        return Err(Failure::usage(format!(
            "{}: a prepared trace cannot be combined with other files; give all original files instead",
            file.display()
        )));
    }
    let out = match &args.save {
        Some(path) => path.clone(),
        None => temp.path().join("trace.bltrace"),
    };
    if !quiet {
        let names: Vec<String> = args
            .files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        eprintln!("bucketload: reading {}", names.join(", "));
    }
    let trace = prepare(&args.files, &options, &out).map_err(failure)?;
    let identity = identity(trace.summary(), &selection(options));
    Ok(PreparedTrace {
        trace,
        identity,
        _temp: temp,
    })
}

/// The options that select and change records, as text.
fn selection(mut options: PrepareOptions) -> String {
    // Output paths do not affect the records.
    (options.temp, options.samples) = (PathBuf::new(), PathBuf::new());
    options.lenient = false;
    format!("{options:?}")
}

/// Everything that determines the records of a trace, as text.
pub(crate) fn identity(summary: &Summary, selection: &str) -> String {
    let files: Vec<&str> = summary
        .files
        .iter()
        .map(|file| file.sha256.as_str())
        .collect();
    format!(
        "{} {} {} {} {selection}",
        files.join(" "),
        summary.records,
        summary.requests,
        summary.span_ns
    )
}

/// Refuses options of the preparation for a trace that is already prepared.
fn refuse_changes(options: &PrepareOptions) -> Result<(), Failure> {
    let mut default = PrepareOptions::new(options.temp.clone());
    (default.samples, default.seed) = (options.samples.clone(), options.seed);
    (default.lenient, default.replay_errors) = (options.lenient, options.replay_errors);
    if selection(options.clone()) == selection(default) {
        return Ok(());
    }
    Err(Failure::usage(
        "the file is a prepared trace, to which trace options (filters, samples, ticks, ...) no longer apply; \
         give the original files to change them",
    ))
}

/// The failure that an error of the trace means for the user. Nearly all errors are about the input.
pub(crate) fn failure(error: TraceError) -> Failure {
    Failure::usage(error.to_string())
}

/// The name of a workload, derived from a file name without its extensions.
pub(crate) fn name_of(file: &Path) -> String {
    let name = file
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let stem = name.split('.').next().unwrap_or_default();
    let clean: String = stem
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "-_".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect();
    if clean.trim_matches('-').is_empty() {
        "trace".to_owned()
    } else {
        clean
    }
}

/// A size in readable form, such as `9.8 MiB`.
pub(crate) fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    let digits = if unit == 0 { 0 } else { 1 };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A description of the trace, line by line.
pub(crate) fn facts(summary: &Summary) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut row = |name: &str, text: String| rows.push((name.to_owned(), text));
    for file in &summary.files {
        let hash = file.sha256.get(..16).unwrap_or_default();
        let (path, format) = (&file.path, &file.format);
        let bytes = bytes_text(file.bytes);
        row(
            "file",
            format!("{path}: {format}, {bytes}, SHA-256 {hash}..."),
        );
    }
    let span = summary.span_ns as f64 / 1e9;
    let rate = summary.requests as f64 / span.max(1e-9);
    let mean = if span > 0.0 {
        format!(", mean {rate:.1}/s")
    } else {
        String::new()
    };
    row(
        "requests",
        format!("{} over {span:.3} s{mean}", summary.requests),
    );
    let share = |n: u64| 100.0 * n as f64 / summary.records.max(1) as f64;
    let ops: Vec<String> = summary
        .ops
        .iter()
        .map(|(op, n)| format!("{op} {:.2} %", share(*n)))
        .collect();
    row("operations", ops.join(", "));
    row("bytes", bytes_text(summary.bytes));
    let keys = summary.keys;
    row(
        "keys",
        format!("{keys} in {} buckets", summary.buckets.len()),
    );
    let preload = bytes_text(summary.preload_bytes);
    row(
        "must exist",
        format!("{} objects, {preload}", summary.preload_objects),
    );
    let dropped: Vec<String> = summary
        .dropped
        .iter()
        .map(|(name, n)| format!("{n} {name}"))
        .collect();
    let none = || "nothing".to_owned();
    let dropped = if dropped.is_empty() {
        none()
    } else {
        dropped.join(", ")
    };
    row("left out", format!("{dropped} of {} lines", summary.frames));
    let resolution = units::format_duration(summary.resolution_ns.max(1) as u64);
    row(
        "clock",
        format!("steps of {resolution}, ticks {}", summary.ticks),
    );
    let s = &summary.sizes;
    let all = (s.record + s.key + s.extent + s.sent + s.drawn + s.default).max(1) as f64;
    let part = |n: u64| 100.0 * n as f64 / all;
    row(
        "sizes from",
        format!(
            "record {:.1} %, other records {:.1} %, ranges {:.1} %, bytes sent {:.1} %, drawn \
             {:.1} %, default {:.1} %",
            part(s.record),
            part(s.key),
            part(s.extent),
            part(s.sent),
            part(s.drawn),
            part(s.default)
        ),
    );
    row(
        "ten top keys",
        format!(
            "{:.2} % of the recorded requests, {:.2} % of the replayed",
            100.0 * summary.top10_recorded,
            100.0 * summary.top10_replayed
        ),
    );
    if summary.inserted > 0 {
        row(
            "inserted",
            format!("{} writes before reads of absent objects", summary.inserted),
        );
    }
    for (op, latency) in &summary.recorded_latency {
        let ms = |ns: u64| ns as f64 / 1e6;
        let (p50, p99) = (ms(latency.p50_ns), ms(latency.p99_ns));
        row(
            &format!("recorded {op}"),
            format!("p50 {p50:.3} ms, p99 {p99:.3} ms (other hardware)"),
        );
    }
    for note in &summary.notes {
        row("note", note.clone());
    }
    rows
}
