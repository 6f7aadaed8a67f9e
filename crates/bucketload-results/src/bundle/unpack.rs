//! Reading a bundle. Nothing is trusted: the seal is checked before anything is decompressed, every header
//! must be the one that the list of contents implies, every file is created anew below the given directory,
//! and no more bytes are written than were announced and allowed.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::{
    BundleError, CONTENTS, Contents, FORMAT, Hashing, MAX_CONTENTS, MAX_FILES, SEAL, SKIPPABLE,
    TRAILER_BYTES, hex, is_plain_path, tar,
};

const BUFFER: usize = 64 << 10;

/// Unpacks the bundle `file` into the empty directory `into`. Returns its list of contents and the paths of
/// the files whose checksum does not match. At most `max_bytes` are written.
///
/// # Errors
/// [`BundleError::Refused`] for a file that is not a bundle of this version or is malformed;
/// [`BundleError::Changed`] where bytes changed after it was written.
pub fn unpack(
    file: &Path,
    into: &Path,
    max_bytes: u64,
) -> Result<(Contents, Vec<String>), BundleError> {
    let mut opened = File::open(file).map_err(BundleError::io(file))?;
    let body = sealed(&mut opened, file)?;
    opened
        .seek(SeekFrom::Start(0))
        .map_err(BundleError::io(file))?;
    let mut rest = BufReader::with_capacity(BUFFER, opened.take(body));
    let mut zstd = zstd::Decoder::with_buffer(&mut rest)
        .map_err(broken)?
        .single_frame();
    let contents = list(&mut zstd, max_bytes)?;
    let mut wrong = Vec::new();
    for entry in &contents.files {
        let mut header = [0; tar::BLOCK];
        zstd.read_exact(&mut header).map_err(broken)?;
        tar::expect(&header, &entry.path, entry.bytes)?;
        let path = into.join(&entry.path);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.map_err(BundleError::io(&path))?;
        let new = File::create_new(&path).map_err(BundleError::io(&path))?;
        let mut out = Hashing::new(BufWriter::with_capacity(BUFFER, new));
        let copied = io::copy(&mut (&mut zstd).take(entry.bytes), &mut out)
            .map_err(BundleError::io(&path))?;
        out.flush().map_err(BundleError::io(&path))?;
        if copied != entry.bytes {
            return Err(BundleError::refused(format!(
                "the archive ends inside `{}`",
                entry.path
            )));
        }
        zeros(&mut zstd, tar::padding(entry.bytes))?;
        if hex(&out.hash.finalize()) != entry.sha256 {
            wrong.push(entry.path.clone());
        }
    }
    zeros(&mut zstd, 2 * tar::BLOCK)?;
    let more = zstd.read(&mut [0]).map_err(broken)? > 0;
    drop(zstd);
    if more || rest.read(&mut [0]).map_err(broken)? > 0 {
        return Err(BundleError::refused(
            "there is data after the last file of the list of contents",
        ));
    }
    Ok((contents, wrong))
}

/// Checks the seal; returns the bytes before it.
fn sealed(file: &mut File, path: &Path) -> Result<u64, BundleError> {
    let io = || BundleError::io(path);
    let all = file.metadata().map_err(io())?.len();
    let foreign = || {
        BundleError::refused(format!(
            "{}: not an evidence bundle, or truncated",
            path.display()
        ))
    };
    let body = all.checked_sub(TRAILER_BYTES as u64).ok_or_else(foreign)?;
    let mut hash = Sha256::new();
    let mut reader = BufReader::with_capacity(BUFFER, &mut *file);
    let mut left = body;
    let mut buffer = vec![0; BUFFER];
    while left > 0 {
        let most = left.min(BUFFER as u64) as usize;
        let n = reader.read(&mut buffer[..most]).map_err(io())?;
        if n == 0 {
            return Err(foreign());
        }
        hash.update(&buffer[..n]);
        left -= n as u64;
    }
    let mut end = [0; TRAILER_BYTES];
    reader.read_exact(&mut end).map_err(io())?;
    let wanted = super::trailer(&hash.finalize().into());
    let name = 8 + SEAL.len();
    if end[..4] != SKIPPABLE || end[..name] != wanted[..name] {
        return Err(foreign());
    }
    let version = u32::from_le_bytes([end[name], end[name + 1], end[name + 2], end[name + 3]]);
    if version != FORMAT {
        return Err(BundleError::refused(format!(
            "the bundle has format {version}, but this program reads format {FORMAT}; use the version of the \
             program that wrote it"
        )));
    }
    match end == wanted {
        true => Ok(body),
        false => Err(BundleError::Changed(
            "the file was changed after it was written: its SHA-256 does not match the one at its end".to_owned(),
        )),
    }
}

fn broken(error: io::Error) -> BundleError {
    BundleError::refused(format!("the archive cannot be read: {error}"))
}

/// Reads and checks the list of contents.
fn list(archive: &mut dyn Read, max_bytes: u64) -> Result<Contents, BundleError> {
    let mut header = [0; tar::BLOCK];
    archive.read_exact(&mut header).map_err(broken)?;
    let bytes = tar::bytes_of(&header).unwrap_or(0);
    tar::expect(&header, CONTENTS, bytes)?;
    if bytes > MAX_CONTENTS {
        return Err(BundleError::refused(format!(
            "the list of contents is {bytes} B long; the limit is {MAX_CONTENTS}"
        )));
    }
    let mut text = vec![0; bytes as usize];
    archive.read_exact(&mut text).map_err(broken)?;
    zeros(archive, tar::padding(bytes))?;
    let unreadable = |e: serde_json::Error| BundleError::refused(format!("{CONTENTS}: {e}"));
    let head: serde_json::Value = serde_json::from_slice(&text).map_err(unreadable)?;
    if head["format"] != FORMAT {
        return Err(BundleError::refused(format!(
            "{CONTENTS}: format {}, not {FORMAT}",
            head["format"]
        )));
    }
    let contents: Contents = serde_json::from_slice(&text).map_err(unreadable)?;
    if contents.files.len() > MAX_FILES {
        return Err(BundleError::refused(format!("more than {MAX_FILES} files")));
    }
    for entry in &contents.files {
        if !is_plain_path(&entry.path) || entry.path == CONTENTS {
            let shown = entry.path.escape_debug();
            return Err(BundleError::refused(format!(
                "`{shown}` is not a valid path in a bundle"
            )));
        }
    }
    if let Some(pair) = contents
        .files
        .windows(2)
        .find(|pair| pair[0].path >= pair[1].path)
    {
        return Err(BundleError::refused(format!(
            "`{}` appears twice in the list of contents, or out of order",
            pair[1].path
        )));
    }
    let sum = contents
        .files
        .iter()
        .try_fold(0u64, |sum, entry| sum.checked_add(entry.bytes));
    if sum.is_none_or(|sum| sum > max_bytes) {
        return Err(BundleError::refused(format!(
            "the files exceed {max_bytes} B in total; raise the limit with --max-size"
        )));
    }
    Ok(contents)
}

fn zeros(archive: &mut dyn Read, count: usize) -> Result<(), BundleError> {
    let mut buffer = vec![0; count];
    archive.read_exact(&mut buffer).map_err(broken)?;
    match buffer.iter().all(|b| *b == 0) {
        true => Ok(()),
        false => Err(BundleError::refused(
            "there is data between two files of the archive",
        )),
    }
}
