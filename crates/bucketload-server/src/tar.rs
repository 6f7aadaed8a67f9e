//! Reads a tar archive as its bytes arrive: ustar headers (POSIX.1-2017, pax, "ustar Interchange Format"), the records
//! `path` and `size` of pax, and GNU's long names. Memory is bounded whatever the archive holds.

use super::error::{Code, S3Error, S3Result};

/// Size of a header in bytes; contents are padded to a multiple of it.
const BLOCK: usize = 512;
/// Largest extended header or long name, in bytes.
const MAX_EXTENDED: u64 = 64 << 10;

/// Where the entries go.
pub(super) trait Entries {
    /// A file of `size` bytes begins.
    ///
    /// # Errors
    /// Those of the receiver, which end the reading; so do those of the other functions.
    fn file(&mut self, path: &str, size: u64) -> S3Result<()>;
    /// The next bytes of the file.
    ///
    /// # Errors
    /// See [`Self::file`].
    fn data(&mut self, bytes: &[u8]) -> S3Result<()>;
    /// All bytes of the file were passed on.
    ///
    /// # Errors
    /// See [`Self::file`].
    fn end(&mut self) -> S3Result<()>;
    /// A directory.
    ///
    /// # Errors
    /// See [`Self::file`].
    fn directory(&mut self, path: &str) -> S3Result<()>;
}

/// What the content of an entry is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    /// GNU's name of the next entry.
    LongName,
    /// Extended header of the next entry.
    Pax,
    /// Of no interest: links, devices, global headers.
    Skipped,
}

/// The place in the archive.
enum Place {
    Header,
    /// In the content of an entry: bytes left, and padding after them.
    Content {
        kind: Kind,
        left: u64,
        padding: u64,
    },
    /// After the last entry.
    End,
}

/// A reader.
pub(super) struct Tar {
    place: Place,
    header: [u8; BLOCK],
    /// Bytes of the header that have arrived.
    filled: usize,
    /// The extended header or long name being received.
    extended: Vec<u8>,
    /// What those say of the next entry.
    path: Option<String>,
    size: Option<u64>,
}

impl Default for Tar {
    fn default() -> Self {
        Self {
            place: Place::Header,
            header: [0; BLOCK],
            filled: 0,
            extended: Vec::new(),
            path: None,
            size: None,
        }
    }
}

impl Tar {
    /// Reads the next bytes of the archive.
    ///
    /// # Errors
    /// `InvalidRequest` for what is not an archive, and those of `entries`.
    pub(super) fn read(&mut self, mut bytes: &[u8], entries: &mut impl Entries) -> S3Result<()> {
        while !bytes.is_empty() {
            match &mut self.place {
                Place::End => return Ok(()),
                Place::Header => {
                    let (now, later) = bytes.split_at(bytes.len().min(BLOCK - self.filled));
                    self.header[self.filled..self.filled + now.len()].copy_from_slice(now);
                    self.filled += now.len();
                    bytes = later;
                    if self.filled == BLOCK {
                        self.filled = 0;
                        self.begin(entries)?;
                    }
                }
                Place::Content {
                    kind,
                    left,
                    padding,
                } => {
                    let of = |left: u64| usize::try_from(left).unwrap_or(usize::MAX);
                    let (now, later) = bytes.split_at(bytes.len().min(of(*left)));
                    *left -= now.len() as u64;
                    let (left, kind) = (*left, *kind);
                    let (padded, later) = later.split_at(match left {
                        0 => later.len().min(of(*padding)),
                        _ => 0,
                    });
                    *padding -= padded.len() as u64;
                    let over = left == 0 && *padding == 0;
                    match kind {
                        Kind::File if !now.is_empty() => entries.data(now)?,
                        Kind::LongName | Kind::Pax => self.extended.extend_from_slice(now),
                        Kind::File | Kind::Skipped => {}
                    }
                    bytes = later;
                    if over {
                        self.place = Place::Header;
                        self.over(kind, entries)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that the archive does not end within an entry.
    ///
    /// # Errors
    /// `IncompleteBody`.
    pub(super) fn finish(&self) -> S3Result<()> {
        match self.place {
            Place::End => Ok(()),
            Place::Header if self.filled == 0 => Ok(()),
            _ => Err(S3Error::new(
                Code::IncompleteBody,
                "The archive ends within an entry.",
            )),
        }
    }

    /// Reads the header of an entry.
    fn begin(&mut self, entries: &mut impl Entries) -> S3Result<()> {
        let header = &self.header;
        if header.iter().all(|byte| *byte == 0) {
            self.place = Place::End;
            return Ok(());
        }
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        let stated: u64 = header[148..156].iter().map(|byte| u64::from(*byte)).sum();
        if number(&header[148..156]) != Some(sum - stated + 8 * u64::from(b' ')) {
            return Err(not_an_archive());
        }
        let size = number(&header[124..136]).ok_or_else(not_an_archive)?;
        let (kind, size) = match header[156] {
            b'0' | b'7' | 0 => (Kind::File, self.size.take().unwrap_or(size)),
            b'5' => {
                let path = self.take_path()?;
                self.size = None;
                return entries.directory(&path);
            }
            b'L' => (Kind::LongName, size),
            b'x' => (Kind::Pax, size),
            b'1'..=b'6' => {
                // The extended header was about this entry.
                (self.path, self.size) = (None, None);
                // Links and devices have no content, whatever their size says.
                return Ok(());
            }
            _ => (Kind::Skipped, size),
        };
        if matches!(kind, Kind::LongName | Kind::Pax) {
            self.extended.clear();
            if size > MAX_EXTENDED {
                return Err(S3Error::new(
                    Code::InvalidRequest,
                    "An extended header of the archive is longer than 64 KiB.",
                ));
            }
        }
        if kind == Kind::File {
            let path = self.take_path()?;
            entries.file(&path, size)?;
        }
        if size == 0 {
            return self.over(kind, entries);
        }
        self.place = Place::Content {
            kind,
            left: size,
            padding: size.wrapping_neg() % BLOCK as u64,
        };
        Ok(())
    }

    /// Ends the content of an entry.
    fn over(&mut self, kind: Kind, entries: &mut impl Entries) -> S3Result<()> {
        match kind {
            Kind::File => entries.end(),
            Kind::LongName => {
                self.path = Some(text(&self.extended)?.to_owned());
                Ok(())
            }
            Kind::Pax => self.pax(),
            Kind::Skipped => Ok(()),
        }
    }

    /// Reads the records of an extended header: `LENGTH NAME=VALUE`, each with a line end.
    fn pax(&mut self) -> S3Result<()> {
        let mut rest = text(&self.extended)?;
        while !rest.is_empty() {
            let record = rest
                .split_once(' ')
                .and_then(|(length, _)| rest.get(..length.parse().ok()?))
                .filter(|record| record.ends_with('\n') && record.len() > 1)
                .ok_or_else(not_an_archive)?;
            rest = &rest[record.len()..];
            let field = record.trim_end_matches('\n').split_once(' ');
            match field.and_then(|(_, field)| field.split_once('=')) {
                Some(("path", value)) => self.path = Some(value.to_owned()),
                Some(("size", value)) => {
                    self.size = Some(value.parse().map_err(|_| not_an_archive())?);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The path of the entry.
    fn take_path(&mut self) -> S3Result<String> {
        if let Some(path) = self.path.take() {
            return Ok(path);
        }
        let name = text(&self.header[..100])?;
        let ustar = self.header[257..262] == *b"ustar" && self.header[262] == 0;
        Ok(
            match ustar.then(|| text(&self.header[345..500])).transpose()? {
                Some(prefix) if !prefix.is_empty() => format!("{prefix}/{name}"),
                _ => name.to_owned(),
            },
        )
    }
}

fn not_an_archive() -> S3Error {
    S3Error::new(
        Code::InvalidRequest,
        "The body is not a tar archive, or is compressed.",
    )
}

/// The text of a field up to its first zero byte.
fn text(field: &[u8]) -> S3Result<&str> {
    let end = field.iter().position(|byte| *byte == 0);
    std::str::from_utf8(&field[..end.unwrap_or(field.len())])
        .map_err(|_| S3Error::new(Code::InvalidArgument, "A path in the archive is not UTF-8."))
}

/// A number in octal digits, or with the first bit set in binary (GNU).
fn number(field: &[u8]) -> Option<u64> {
    if field[0] == 0x80 && field.len() > 8 {
        let (zeros, digits) = field[1..].split_at(field.len() - 9);
        let digits = digits.try_into().ok().map(u64::from_be_bytes);
        return digits.filter(|_| zeros.iter().all(|byte| *byte == 0));
    }
    let digits = std::str::from_utf8(field).ok()?;
    let digits = digits.trim_matches([' ', '\0']);
    match digits {
        "" => Some(0),
        digits => u64::from_str_radix(digits, 8).ok(),
    }
}

#[cfg(test)]
#[path = "tar_tests.rs"]
mod tests;
