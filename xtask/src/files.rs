//! Files: what fails says at which path.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::sh::{Result, ensure};

/// The text of an error at `path`.
pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> String + Copy + '_ {
    move |error| format!("{}: {error}", path.display())
}

/// The text of a file.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String> {
    fs::read_to_string(&path).map_err(at(path.as_ref()))
}

/// The bytes of a file.
pub(crate) fn bytes(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    fs::read(&path).map_err(at(path.as_ref()))
}

/// A file of JSON.
pub(crate) fn json(path: impl AsRef<Path>) -> Result<Value> {
    let path = path.as_ref();
    serde_json::from_slice(&bytes(path)?).map_err(|e| format!("{}: {e}", path.display()))
}

/// Writes a file and makes the directories above it.
pub(crate) fn write(path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> Result {
    let path = path.as_ref();
    path.parent().map_or(Ok(()), make_dir)?;
    fs::write(path, text).map_err(at(path))
}

/// Copies a file and makes the directories above the copy.
pub(crate) fn copy(from: &Path, to: &Path) -> Result {
    to.parent().map_or(Ok(()), make_dir)?;
    fs::copy(from, to).map_err(at(to)).map(drop)
}

/// Makes a directory and those above it.
pub(crate) fn make_dir(path: impl AsRef<Path>) -> Result {
    fs::create_dir_all(&path).map_err(at(path.as_ref()))
}

/// Removes a directory with all that is in it, if it is there.
pub(crate) fn remove_dir(path: &Path) -> Result {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(at(path)(e)),
        _ => Ok(()),
    }
}

/// What is in a directory, sorted.
pub(crate) fn list(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = dir.read_dir().map_err(at(dir))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<io::Result<_>>().map_err(at(dir))?;
    paths.sort_unstable();
    Ok(paths)
}

/// Every file below `dir` in alphabetical order, as paths relative to it.
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

/// Whether the name of a file ends with `.` and `end`.
pub(crate) fn is_kind(path: &Path, end: &str) -> bool {
    path.extension().is_some_and(|own| own == end)
}

/// Number of lines of a file that is being written; 0 while it is not there.
pub(crate) fn lines(path: impl AsRef<Path>) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// A directory that is removed when dropped.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    /// A new directory under the system's temporary one.
    ///
    /// # Errors
    /// When it cannot be made, or its path is not one word of a command line.
    pub(crate) fn new(name: &str) -> Result<Self> {
        Self::under(&std::env::temp_dir(), name)
    }

    /// A new directory in memory (tmpfs).
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
                    "{}: is more than one word; set TMPDIR to another directory",
                    path.display()
                )
            },
        )?;
        make_dir(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A path inside it, as text.
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
