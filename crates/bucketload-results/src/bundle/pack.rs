//! Writing a bundle. Every file is read twice, once for its checksum and once for its bytes, and must not
//! change in between.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::PathBuf;

use sha2::Digest as _;

use super::{
    About, BundleError, CONTENTS, Contents, FORMAT, FileEntry, Hashing, MAX_CONTENTS, MAX_FILES,
    Role, hex, is_plain_path, tar, trailer,
};

/// zstd's default level: fast, and the same everywhere.
const LEVEL: i32 = 3;
const BUFFER: usize = 64 << 10;

/// Where the bytes of a file come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file on disk.
    File(PathBuf),
    /// Computed content.
    Bytes(Vec<u8>),
}

impl Source {
    fn open(&self) -> Result<Box<dyn Read + '_>, BundleError> {
        Ok(match self {
            Self::File(path) => {
                let file = File::open(path).map_err(BundleError::io(path))?;
                Box::new(BufReader::with_capacity(BUFFER, file))
            }
            Self::Bytes(bytes) => Box::new(bytes.as_slice()),
        })
    }

    fn path(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Bytes(_) => PathBuf::from("computed"),
        }
    }
}

/// Packs `files` (path, role, bytes) into `out` and returns the list of contents. Before anything is written,
/// `inspect` sees every byte of every file with its path; an error from it aborts the packing.
///
/// # Errors
/// When a file cannot be read or written, changes while it is packed, or has a path that a bundle cannot hold.
pub fn pack(
    about: About,
    mut files: Vec<(String, Role, Source)>,
    out: &mut dyn Write,
    inspect: &mut dyn FnMut(&str, &mut dyn Read) -> Result<(), BundleError>,
) -> Result<Contents, BundleError> {
    files.sort_by(|a, b| a.0.cmp(&b.0));
    let mut entries = Vec::with_capacity(files.len());
    for (path, role, source) in &files {
        if !is_plain_path(path) || tar::header(path, 0).is_none() || path == CONTENTS {
            return Err(BundleError::refused(format!(
                "`{path}` cannot be the name of a file in a bundle"
            )));
        }
        inspect(path, &mut *source.open()?)?;
        let (bytes, sha256) = digest(source)?;
        entries.push(FileEntry {
            path: path.clone(),
            bytes,
            sha256,
            role: *role,
        });
    }
    if entries.len() > MAX_FILES || entries.windows(2).any(|pair| pair[0].path == pair[1].path) {
        return Err(BundleError::refused(format!(
            "more than {MAX_FILES} files, or a duplicate path"
        )));
    }
    let contents = Contents {
        format: FORMAT,
        about,
        files: entries,
    };
    let mut list = serde_json::to_vec_pretty(&contents)
        .map_err(io::Error::from)
        .map_err(BundleError::io(CONTENTS))?;
    list.push(b'\n');
    if list.len() as u64 > MAX_CONTENTS {
        return Err(BundleError::refused("the list of contents is too long"));
    }
    let failed = || BundleError::io("the bundle");
    let mut hashing = Hashing::new(out);
    let mut zstd = zstd::Encoder::new(&mut hashing, LEVEL).map_err(failed())?;
    zstd.include_checksum(true).map_err(failed())?;
    append(&mut zstd, CONTENTS, list.len() as u64, &mut list.as_slice()).map_err(failed())?;
    for (entry, (_, _, source)) in contents.files.iter().zip(&files) {
        let mut sum = Hashing::new(io::sink());
        let mut reader = source.open()?;
        let mut both = Tee {
            reader: &mut *reader,
            sum: &mut sum,
        };
        let whole = append(&mut zstd, &entry.path, entry.bytes, &mut both)
            .map_err(BundleError::io(source.path()))?;
        if !whole || hex(&sum.hash.finalize()) != entry.sha256 {
            return Err(BundleError::Changed(format!(
                "{}: changed while it was packed; wait for the run to end",
                source.path().display()
            )));
        }
    }
    zstd.write_all(&[0; 2 * tar::BLOCK])
        .and_then(|()| zstd.finish().map(drop))
        .map_err(failed())?;
    let Hashing { inner, hash } = hashing;
    let end = trailer(&hash.finalize().into());
    inner
        .write_all(&end)
        .and_then(|()| inner.flush())
        .map_err(failed())?;
    Ok(contents)
}

/// Appends a file of `bytes` bytes. Returns whether `from` had exactly that many; a shorter file is padded,
/// so the archive stays well-formed until the caller reports the error.
fn append(out: &mut dyn Write, path: &str, bytes: u64, from: &mut dyn Read) -> io::Result<bool> {
    let header = tar::header(path, bytes).ok_or(io::ErrorKind::InvalidInput)?;
    out.write_all(&header)?;
    let copied = io::copy(&mut from.take(bytes), out)?;
    let more = from.read(&mut [0])? > 0;
    out.write_all(&[0; tar::BLOCK][..tar::padding(bytes)])?;
    Ok(copied == bytes && !more)
}

fn digest(source: &Source) -> Result<(u64, String), BundleError> {
    let mut sum = Hashing::new(io::sink());
    let bytes = io::copy(&mut *source.open()?, &mut sum).map_err(BundleError::io(source.path()))?;
    Ok((bytes, hex(&sum.hash.finalize())))
}

/// Hashes everything that is read through it.
struct Tee<'a> {
    reader: &'a mut dyn Read,
    sum: &'a mut Hashing<io::Sink>,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(buffer)?;
        self.sum.write_all(&buffer[..n])?;
        Ok(n)
    }
}
