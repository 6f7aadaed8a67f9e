//! Files of the operation log. A file gets its name when it is complete.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Extension of a file that is being written.
const PART: &str = "part";

/// The `number`-th file of the log with extension `extension`.
pub(super) fn name(dir: &Path, number: u32, extension: &str) -> PathBuf {
    dir.join(format!("ops-{number:05}.{extension}"))
}

/// Creates the file that becomes `path` once complete.
pub(super) fn create(path: &Path) -> io::Result<File> {
    File::create_new(part(path))
}

/// Renames the completed file to `path`.
pub(super) fn complete(path: &Path) -> io::Result<()> {
    fs::rename(part(path), path)
}

fn part(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(PART);
    name.into()
}

/// The complete files of the log in `dir` with extension `extension`, in order.
pub(super) fn list(dir: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        let number = name
            .strip_prefix("ops-")
            .and_then(|rest| rest.strip_suffix(extension))
            .and_then(|rest| rest.strip_suffix('.'))
            .and_then(|number| number.parse::<u32>().ok());
        if let Some(number) = number {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}
