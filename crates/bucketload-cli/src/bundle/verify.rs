//! `bucketload verify-bundle`: unpacks, verifies every checksum, computes everything again, prints the differences.

use std::collections::BTreeSet;
use std::path::Path;

use bucketload_core::units;
use bucketload_results::bundle::{CONTENTS, Contents, Finding, MAX_BYTES, Role, diff, unpack};

use super::kinds::Tree;
use super::{about, failure};
use crate::cli::GlobalArgs;
use crate::cli::bundle::VerifyBundleArgs;
use crate::commands::docs::print;
use crate::exit::{Exit, Failure};

/// Most findings that are printed.
const MOST: usize = 200;

/// Verifies a bundle and prints what was found.
pub(crate) fn execute(args: &VerifyBundleArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let most = match &args.max_size {
        None => MAX_BYTES,
        Some(text) => {
            units::parse_size(text).map_err(|e| Failure::usage(format!("--max-size: {e}")))?
        }
    };
    let dir = match &args.work_dir {
        None => tempfile::tempdir(),
        Some(dir) => tempfile::tempdir_in(dir),
    };
    let dir = dir.map_err(|e| {
        Failure::usage(format!(
            "cannot create a directory to unpack into: {e}; name one with --work-dir DIR"
        ))
    })?;
    let (contents, wrong) = unpack(&args.file, dir.path(), most).map_err(failure)?;
    let changed = wrong.iter().map(|path| Finding {
        file: path.clone(),
        field: "checksum".to_owned(),
        stored: contents
            .files
            .iter()
            .find(|file| file.path == *path)
            .map_or_else(String::new, |file| file.sha256.clone()),
        computed: "another checksum".to_owned(),
    });
    let mut findings: Vec<Finding> = changed.collect();
    // If checksums already failed, a bundle that cannot be read needs no second reason.
    match (check(dir.path(), &contents), findings.is_empty()) {
        (Ok(more), _) => findings.extend(more),
        (Err(failure), true) => {
            let message = format!("the figures cannot be computed: {}", failure.message);
            return Err(Failure::gate(message));
        }
        (Err(_), false) => {}
    }
    print(text(&contents, &findings, global.quiet).as_bytes())?;
    Ok(if findings.is_empty() {
        Exit::Ok
    } else {
        Exit::GateFailed
    })
}

/// Finds everything in `dir` that does not follow from its data.
fn check(dir: &Path, contents: &Contents) -> Result<Vec<Finding>, Failure> {
    let tree = Tree::of(dir)?;
    let mut findings = Vec::new();
    let note = |file: &str, field: &str, stored: String, computed: &str| Finding {
        file: file.to_owned(),
        field: field.to_owned(),
        stored,
        computed: computed.to_owned(),
    };
    let mut written = about(dir, &tree)?;
    // The version that packed the bundle does not follow from the data.
    written.version.clone_from(&contents.about.version);
    let form = |about| serde_json::to_vec(about).unwrap_or_default();
    findings.extend(diff(CONTENTS, &form(&contents.about), &form(&written)));
    findings.extend(tree.left_out.iter().map(|path| {
        note(
            path,
            "",
            "a file".to_owned(),
            "nothing: the file does not belong to a run",
        )
    }));
    for file in &contents.files {
        let known = tree.files.iter().find(|(path, _)| *path == file.path);
        if let Some((path, role)) = known.filter(|(_, role)| *role != file.role) {
            findings.push(note(
                path,
                "role",
                format!("{:?}", file.role),
                &format!("{role:?}"),
            ));
        }
    }
    let mut made = BTreeSet::new();
    tree.derive(dir, &mut |path, computed| {
        made.insert(path.to_owned());
        if !tree.has(path) {
            findings.push(note(path, "", "nothing".to_owned(), "a file"));
            return Ok(());
        }
        let stored =
            std::fs::read(dir.join(path)).map_err(|e| Failure::aborted(format!("{path}: {e}")))?;
        findings.extend(diff(path, &stored, &computed));
        Ok(())
    })?;
    for (path, role) in &tree.files {
        if *role == Role::Derived && !made.contains(path) {
            findings.push(note(
                path,
                "",
                "a file".to_owned(),
                "nothing: no data leads to this file",
            ));
        }
    }
    Ok(findings)
}

fn text(contents: &Contents, findings: &[Finding], quiet: bool) -> String {
    let about = &contents.about;
    let mut out = String::new();
    let mut line = |text: String| {
        out += &text;
        out.push('\n');
    };
    if !quiet {
        let derived = contents
            .files
            .iter()
            .filter(|file| file.role == Role::Derived)
            .count();
        line(format!(
            "{} of {} run(s), packed by bucketload {}: {} files, {derived} of them derived from the others",
            about.kind,
            about.runs.len(),
            about.version,
            contents.files.len()
        ));
        for run in about.runs.iter().filter(|run| run.status != "finished") {
            line(format!("incomplete: run {} is {}", run.run_id, run.status));
        }
        if about.version != env!("CARGO_PKG_VERSION") && !findings.is_empty() {
            line(format!(
                "this is bucketload {}; another version may differ in wording and layout, so verify with the version that packed the bundle",
                env!("CARGO_PKG_VERSION")
            ));
        }
    }
    for finding in findings.iter().take(MOST) {
        let place = match finding.field.is_empty() {
            true => finding.file.clone(),
            false => format!("{}: {}", finding.file, finding.field),
        };
        line(format!(
            "{place}: stored {}, computed {}",
            shown(&finding.stored),
            shown(&finding.computed)
        ));
    }
    if findings.len() > MOST {
        line(format!("… and {} more", findings.len() - MOST));
    }
    line(match findings.len() {
        0 => "verified: every checksum matches, and every figure follows from the data".to_owned(),
        n => format!("NOT verified: {n} finding(s)"),
    });
    out
}

fn shown(text: &str) -> &str {
    if text.is_empty() { "nothing" } else { text }
}
