//! The evidence bundle: one file with a run or a study and everything derived from it.
//!
//! ```text
//! zstd frame: tar (bundle.json, then the files sorted by path)
//! zstd skippable frame: name and version of the format, SHA-256 of all bytes before it
//! ```
//!
//! `pack` writes a bundle. `unpack` reads one into an empty directory and accepts nothing that `pack` would
//! not have written. `tar` is the entry format that both share. `diff` locates the differences between two
//! versions of an artifact. The caller knows the kinds of directories, so it decides which files are data,
//! which are derived, and how. The same files always give the same bytes; only the list of files is held in
//! memory. The format is described in docs/bundle.md.
//!
//! Checksums reveal damage. Against someone who recomputes them, only recomputing the figures helps; against
//! someone who invents all of the data, nothing in the file does.

mod diff;
mod pack;
mod tar;
mod unpack;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use diff::{Finding, diff};
pub use pack::{Source, pack};
pub use unpack::unpack;

/// Version of the format; other versions are refused.
pub const FORMAT: u32 = 1;
/// Name of the list of contents, the first entry.
pub const CONTENTS: &str = "bundle.json";
/// Limit on the unpacked size of a bundle, in bytes, unless the caller sets another.
pub const MAX_BYTES: u64 = 64 << 30;

/// Limit on the size of the list of contents, in bytes.
const MAX_CONTENTS: u64 = 64 << 20;
/// Limit on the number of files.
const MAX_FILES: usize = 200_000;
/// Longest path in bytes: what a ustar header holds, with room for splitting it in two.
const MAX_PATH: usize = 200;
/// Magic number of the skippable frame, little-endian (RFC 8878, section 3.1.2).
const SKIPPABLE: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];
/// First bytes of the skippable frame's content.
const SEAL: &[u8; 17] = b"bucketload-bundle";
/// Bytes of the skippable frame's content: name, version and checksum.
const SEAL_BYTES: usize = SEAL.len() + 4 + 32;
/// Bytes of the skippable frame.
const TRAILER_BYTES: usize = 8 + SEAL_BYTES;

/// The role of a file in a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The request and what was recorded.
    Data,
    /// Derived from the data; verification recomputes it.
    Derived,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Path below the directory, parts separated by `/`.
    pub path: String,
    /// Length.
    pub bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its role.
    pub role: Role,
}

/// Description of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Kind of directory, such as `run`.
    pub kind: String,
    /// Version of the tool that packed it.
    pub version: String,
    /// Whether the packed run or study finished.
    pub complete: bool,
    /// The runs, sorted by path.
    pub runs: Vec<RunEntry>,
}

/// A run inside a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEntry {
    /// Path of its directory; empty if the bundle holds just this run.
    pub path: String,
    /// Its identifier.
    pub run_id: String,
    /// How far the run got.
    pub status: String,
    /// Seed of its random streams.
    pub seed: u64,
    /// Hash of the scenario that was measured.
    pub scenario_hash: String,
}

/// The list of contents, `bundle.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contents {
    /// Version of the format, [`FORMAT`].
    pub format: u32,
    /// Description of the bundle.
    pub about: About,
    /// The files, by path.
    pub files: Vec<FileEntry>,
}

/// Why a bundle cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Not a bundle of this format, or one that must not be unpacked.
    #[error("{0}")]
    Refused(String),
    /// The bytes are not the ones that were packed.
    #[error("{0}")]
    Changed(String),
}

impl BundleError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    fn refused(text: impl Into<String>) -> Self {
        Self::Refused(text.into())
    }
}

/// True if `path` may appear in a bundle: relative, without `.` and `..`, in printable ASCII.
#[must_use]
pub fn is_plain_path(path: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'\\' | b':');
    path.len() <= MAX_PATH && path.bytes().all(plain) && path.split('/').all(part)
}

fn hex(digest: &[u8]) -> String {
    use std::fmt::Write as _;
    digest.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// The final frame of a bundle. `sha256` is the checksum of all bytes before it.
fn trailer(sha256: &[u8; 32]) -> [u8; TRAILER_BYTES] {
    let mut out = [0; TRAILER_BYTES];
    out[..4].copy_from_slice(&SKIPPABLE);
    out[4..8].copy_from_slice(&(SEAL_BYTES as u32).to_le_bytes());
    let (name, rest) = out[8..].split_at_mut(SEAL.len());
    name.copy_from_slice(SEAL);
    rest[..4].copy_from_slice(&FORMAT.to_le_bytes());
    rest[4..].copy_from_slice(sha256);
    out
}

/// Computes the SHA-256 of everything written through it.
struct Hashing<W> {
    inner: W,
    hash: Sha256,
}

impl<W> Hashing<W> {
    fn new(inner: W) -> Self {
        let hash = Sha256::new();
        Self { inner, hash }
    }
}

impl<W: std::io::Write> std::io::Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests;
