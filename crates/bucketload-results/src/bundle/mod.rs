//! One file that holds a run or a study, and what follows from it: the evidence bundle.
//!
//! ```text
//! zstd frame: tar (bundle.json, then the files in the order of their paths)
//! zstd skippable frame: name and version of the format, SHA-256 of all bytes before it
//! ```
//!
//! `pack` writes it, `unpack` reads it into an empty directory and takes nothing that `pack` would not have
//! written, `tar` is their common form of an entry, `diff` says where two versions of an artifact differ.
//! Which files are data, which follow from them, and how, is up to the caller: it knows the kinds of
//! directories. The same files give the same bytes; nothing is held in memory but the list of files. The format
//! is described in docs/bundle.md.
//!
//! Checksums tell what was damaged. Against somebody who computes them anew, only computing the figures anew
//! helps; against somebody who invents all of the data, nothing in the file does.

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
/// Most bytes that a bundle may hold unpacked unless the caller says otherwise.
pub const MAX_BYTES: u64 = 64 << 30;

/// Most bytes of the list of contents.
const MAX_CONTENTS: u64 = 64 << 20;
/// Most files.
const MAX_FILES: usize = 200_000;
/// Longest path in bytes: what a ustar header holds with room for its split.
const MAX_PATH: usize = 200;
/// Magic number of the skippable frame, little-endian (RFC 8878, section 3.1.2).
const SKIPPABLE: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];
/// What the skippable frame begins with.
const SEAL: &[u8; 17] = b"bucketload-bundle";
/// Bytes of the skippable frame's content: name, version, checksum.
const SEAL_BYTES: usize = SEAL.len() + 4 + 32;
/// Bytes of the skippable frame.
const TRAILER_BYTES: usize = 8 + SEAL_BYTES;

/// What a file of a bundle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// What was asked for and what was recorded.
    Data,
    /// What follows from the data and is computed anew.
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
    /// What it is.
    pub role: Role,
}

/// What a bundle says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// What kind of directory it holds, such as `run`.
    pub kind: String,
    /// Version of the tool that packed it.
    pub version: String,
    /// Whether what it holds came to its own end.
    pub complete: bool,
    /// Identifiers of the runs, in the order of their paths.
    pub runs: Vec<RunEntry>,
}

/// A run inside a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEntry {
    /// Path of its directory; empty for the bundle itself.
    pub path: String,
    /// Its identifier.
    pub run_id: String,
    /// How far it came.
    pub status: String,
    /// Seed of its random streams.
    pub seed: u64,
    /// Identity of what was measured.
    pub scenario_hash: String,
}

/// The list of contents, `bundle.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contents {
    /// Version of the format, [`FORMAT`].
    pub format: u32,
    /// What it is.
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
        /// What happened.
        source: std::io::Error,
    },
    /// It is no bundle of this format, or not one that may be unpacked.
    #[error("{0}")]
    Refused(String),
    /// Bytes are not those that were packed.
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

/// Whether `path` may stand in a bundle: relative, of plain parts, of printable ASCII.
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

/// The frame that ends a bundle whose other bytes have this checksum.
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

/// SHA-256 over what is written through it.
struct Hashing<W> {
    inner: W,
    hash: Sha256,
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
