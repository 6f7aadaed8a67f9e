//! File operations whose errors name the path.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::sh::{Result, ensure};

/// Formats an error at `path`.
pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> String + Copy + '_ {
    move |error| format!("{}: {error}", path.display())
}

/// Reads a file as text.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String> {
    fs::read_to_string(&path).map_err(at(path.as_ref()))
}

/// Reads a file as bytes.
pub(crate) fn bytes(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    fs::read(&path).map_err(at(path.as_ref()))
}

/// Reads a JSON file.
pub(crate) fn json(path: impl AsRef<Path>) -> Result<Value> {
    let path = path.as_ref();
    serde_json::from_slice(&bytes(path)?).map_err(|e| format!("{}: {e}", path.display()))
}

/// Writes a file, creating its parent directories.
pub(crate) fn write(path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> Result {
    let path = path.as_ref();
    path.parent().map_or(Ok(()), make_dir)?;
    fs::write(path, text).map_err(at(path))
}

/// Copies a file, creating the parent directories of the copy.
pub(crate) fn copy(from: &Path, to: &Path) -> Result {
    to.parent().map_or(Ok(()), make_dir)?;
    fs::copy(from, to).map_err(at(to)).map(drop)
}

/// Makes a directory and its parents.
pub(crate) fn make_dir(path: impl AsRef<Path>) -> Result {
    fs::create_dir_all(&path).map_err(at(path.as_ref()))
}

/// Removes a directory and its contents, if it exists.
pub(crate) fn remove_dir(path: &Path) -> Result {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(at(path)(e)),
        _ => Ok(()),
    }
}

/// The entries of a directory, sorted.
pub(crate) fn list(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = dir.read_dir().map_err(at(dir))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<io::Result<_>>().map_err(at(dir))?;
    paths.sort_unstable();
    Ok(paths)
}

/// Every file below `dir` in alphabetical order, relative to it.
pub(crate) fn below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for path in list(&next)? {
            match path.is_dir() && !path.is_symlink() {
                true => dirs.push(path),
                false => files.extend(path.strip_prefix(dir).map(Path::to_owned)),
            }
        }
    }
    files.sort();
    Ok(files)
}

/// True if the file name has this extension.
pub(crate) fn is_kind(path: &Path, end: &str) -> bool {
    path.extension().is_some_and(|extension| extension == end)
}

/// Number of lines of a growing file; 0 if it does not exist yet.
pub(crate) fn lines(path: impl AsRef<Path>) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// A temporary directory, removed when dropped.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    /// Makes a new directory in the system's temporary directory.
    ///
    /// # Errors
    /// It cannot be made, or its path is not a single word of a command line.
    pub(crate) fn new(name: &str) -> Result<Self> {
        Self::under(&std::env::temp_dir(), name)
    }

    /// Makes a new directory in memory (tmpfs).
    ///
    /// # Errors
    /// As [`TempDir::new`].
    pub(crate) fn in_memory(name: &str) -> Result<Self> {
        Self::under(Path::new("/dev/shm"), name)
    }

    fn under(above: &Path, name: &str) -> Result<Self> {
        let path = above.join(format!("bucketload-{name}-{}", std::process::id()));
        ensure(
            shlex::split(&path.to_string_lossy()).is_some_and(|words| words.len() == 1),
            || {
                format!(
                    "{}: the path contains special characters; set TMPDIR to another directory",
                    path.display()
                )
            },
        )?;
        make_dir(&path)?;
        Ok(Self(path))
    }

    /// The directory's path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A path inside the directory, as text.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("xtask: {}: {error}", self.0.display());
        }
    }
}
