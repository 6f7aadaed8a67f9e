//! Evidence bundles: one file with a directory and all data behind its figures, and the check that the figures follow.
//!
//! ```text
//! directory ─ tree (kinds: data or derived) ─ results::bundle::pack ─► file
//! file ─ results::bundle::unpack ─► temporary directory ─ tree ─ derive again ─ diff ─► findings
//! ```
//!
//! A [`kinds::Kind`] of directory says which files are data and which are derived, and computes the derived ones with
//! the functions that `bucketload report` uses. Files that no kind knows are not packed.

mod kinds;
mod run;
mod study;
mod trials;
mod verify;

use std::fs::File;
use std::io::{BufWriter, Read, Write as _};
use std::path::{Path, PathBuf};

use bucketload_results::bundle::{About, BundleError, Role, RunEntry, Source, pack};
use bucketload_results::rundir::{Manifest, Status, redact};

use crate::cli::GlobalArgs;
use crate::cli::bundle::BundleArgs;
use crate::exit::{Exit, Failure, OrFail};
use kinds::Tree;
pub(crate) use verify::execute as verify;

/// Extension of a bundle: any program that reads zstd and tar can open it.
const EXTENSION: &str = ".bundle.tar.zst";

/// Packs a directory.
pub(crate) fn execute(args: &BundleArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let dir = &args.directory;
    let tree = Tree::of(dir)?;
    let out = args.out.clone().unwrap_or_else(|| default_name(dir));
    let spill = tempfile::tempdir().or_aborted()?;
    let (files, stale) = sources(dir, &tree, spill.path())?;
    let about = about(dir, &tree)?;
    let complete = about.complete;
    let part = PathBuf::from(format!("{}.part", out.display()));
    let new = |path: &Path| {
        File::create_new(path).map_err(|e| Failure::usage(format!("-o {}: {e}", path.display())))
    };
    // Reserves the name first, so that no existing file is replaced.
    drop(new(&out)?);
    let written = new(&part).and_then(|file| {
        let mut writer = BufWriter::new(file);
        let contents = pack(about, files, &mut writer, &mut no_secrets()).map_err(failure)?;
        let sync = writer.flush().and_then(|()| writer.get_ref().sync_all());
        let moved = sync.and_then(|()| std::fs::rename(&part, &out));
        moved.map_err(|e| Failure::aborted(format!("{}: {e}", out.display())))?;
        Ok(contents)
    });
    let contents = match written {
        Ok(contents) => contents,
        Err(failure) => {
            // This command created both.
            let _ = (std::fs::remove_file(&part), std::fs::remove_file(&out));
            return Err(failure);
        }
    };
    for name in &stale {
        eprintln!(
            "bucketload: {name} does not follow from the data, so verify-bundle will reject it; \
             `bucketload report` writes it again"
        );
    }
    if !global.quiet {
        for name in &tree.left_out {
            eprintln!("bucketload: not packed: {name}");
        }
        let bytes: u64 = contents.files.iter().map(|file| file.bytes).sum();
        let state = if complete {
            ""
        } else {
            ", of a run that did not finish"
        };
        println!(
            "{}: {} files, {bytes} B{state}",
            out.display(),
            contents.files.len()
        );
    }
    Ok(Exit::Ok)
}

/// The bundle beside the directory, named after it.
fn default_name(dir: &Path) -> PathBuf {
    let name = dir
        .canonicalize()
        .ok()
        .and_then(|path| Some(path.file_name()?.to_owned()));
    let name = name.map_or_else(
        || "results".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    );
    let beside = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let file = format!("{name}{EXTENSION}");
    beside.map_or_else(|| PathBuf::from(&file), |parent| parent.join(&file))
}

/// A file of a bundle: path, role and bytes.
type Packed = (String, Role, Source);

/// The files to pack, and the names of derived files that do not follow from the data. Derived files that are missing
/// are written into `spill`.
fn sources(dir: &Path, tree: &Tree, spill: &Path) -> Result<(Vec<Packed>, Vec<String>), Failure> {
    let mut files: Vec<Packed> = Vec::new();
    for (path, role) in &tree.files {
        files.push((path.clone(), *role, Source::File(dir.join(path))));
    }
    let mut stale = Vec::new();
    let mut made = Vec::new();
    tree.derive(dir, &mut |path, bytes| {
        let io = |path: &Path| {
            let path = path.display().to_string();
            move |e: std::io::Error| Failure::aborted(format!("{path}: {e}"))
        };
        made.push(path.to_owned());
        let there = dir.join(path);
        if tree.has(path) {
            if std::fs::read(&there).map_err(io(&there))? != bytes {
                stale.push(path.to_owned());
            }
            return Ok(());
        }
        let new = spill.join(files.len().to_string());
        std::fs::write(&new, bytes).map_err(io(&new))?;
        files.push((path.to_owned(), Role::Derived, Source::File(new)));
        Ok(())
    })?;
    stale.extend(
        tree.files
            .iter()
            .filter(|(path, role)| *role == Role::Derived && !made.contains(path))
            .map(|f| f.0.clone()),
    );
    Ok((files, stale))
}

/// The description of the bundle of a directory.
fn about(dir: &Path, tree: &Tree) -> Result<About, Failure> {
    let mut runs = Vec::new();
    let mut complete = true;
    for path in tree.runs() {
        let manifest = Manifest::read(&dir.join(path)).or_usage()?;
        complete &= manifest.status == Status::Finished;
        runs.push(RunEntry {
            path: path.to_owned(),
            run_id: manifest.run_id,
            // The name of a state is its JSON form.
            status: serde_json::to_value(manifest.status)
                .ok()
                .and_then(|v| Some(v.as_str()?.to_owned()))
                .unwrap_or_default(),
            seed: manifest.seed,
            scenario_hash: manifest.scenario_hash,
        });
    }
    Ok(About {
        kind: tree.kind().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        complete,
        runs,
    })
}

/// Refuses files that contain a secret of this process's environment. Run directories never do; bundles are passed on
/// to others, so they are checked once more.
fn no_secrets() -> impl FnMut(&str, &mut dyn Read) -> Result<(), BundleError> {
    const LEAST: usize = 8;
    let set = std::env::vars()
        .filter(|(name, value)| redact::is_secret_name(name) && value.len() >= LEAST);
    let secrets: Vec<(String, Vec<u8>)> = set
        .map(|(name, value)| (name, value.into_bytes()))
        .collect();
    let longest = secrets
        .iter()
        .map(|secret| secret.1.len())
        .max()
        .unwrap_or(0);
    move |path, reader| {
        if secrets.is_empty() {
            return Ok(());
        }
        let mut held = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let n = reader.read(&mut buffer).map_err(|source| BundleError::Io {
                path: path.into(),
                source,
            })?;
            if n == 0 {
                return Ok(());
            }
            held.extend_from_slice(&buffer[..n]);
            let holds = |secret: &[u8]| held.windows(secret.len()).any(|window| window == secret);
            if let Some((name, _)) = secrets.iter().find(|secret| holds(&secret.1)) {
                return Err(BundleError::Refused(format!(
                    "{path} contains the value of the environment variable {name}; nothing was packed"
                )));
            }
            // A secret may span two reads.
            held.drain(..held.len().saturating_sub(longest - 1));
        }
    }
}

fn failure(error: BundleError) -> Failure {
    match &error {
        BundleError::Changed(_) => Failure::gate(error.to_string()),
        BundleError::Io { .. } | BundleError::Refused(_) => Failure::usage(error.to_string()),
    }
}
