//! Objects whose file the client writes itself, received over a Unix socket.

use std::fs::File;
use std::io::{Read, Write as _};
use std::os::fd::OwnedFd;

use bucketload_store::{Commit, Written};

use super::calls::{Client, finish};
use super::connection::{PIECE, RequestBody};
use super::error::{Error, Result};
use super::pool::Lease;
use crate::protocol::error::write_error;
use crate::protocol::request::{Name, Request};

/// Minimum size of an object that is written to its file, bytes.
pub(super) const MIN_FILE_BYTES: u64 = 128 << 10;

/// Returns the file that came with an answer if it is a regular file. A pipe, for example, could block its user forever.
pub(super) fn regular(file: Option<OwnedFd>) -> Option<File> {
    let file = File::from(file?);
    file.metadata()
        .is_ok_and(|found| found.is_file())
        .then_some(file)
}

impl Client {
    /// Writes an object to its file. `None`: no file is available, and nothing has been read from `body`.
    pub(super) fn put_to_file(
        &self,
        lease: &mut Lease,
        name: Name<'_>,
        size: u64,
        body: &mut dyn Read,
        commit: &Commit,
    ) -> Result<Option<Written>> {
        lease.send(&Request::PutFile(name, size), RequestBody::None)?;
        let (answer, file) = lease.receive_with_file()?;
        let offered: bool = finish(lease, &answer)?;
        if !offered {
            return Ok(None);
        }
        let Some(file) = regular(file) else {
            // The file did not arrive: this process may be out of descriptors.
            discard(lease)?;
            return Ok(None);
        };
        if let Err(error) = fill(lease, file, size, body) {
            if matches!(error, Error::Store(_) | Error::Body(_)) {
                discard(lease)?;
            }
            return Err(error);
        }
        lease.send(&Request::CommitFile(commit.clone()), RequestBody::None)?;
        let answer = lease.receive()?;
        finish(lease, &answer).map(Some)
    }
}

fn discard(lease: &mut Lease) -> Result<()> {
    lease.send(&Request::DropFile, RequestBody::None)?;
    let answer = lease.receive()?;
    finish(lease, &answer)
}

/// Writes `size` bytes of `body` to `file`, piece by piece, and closes it.
fn fill(lease: &mut Lease, mut file: File, size: u64, body: &mut dyn Read) -> Result<()> {
    let mut left = size;
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        lease.check_deadline()?;
        let piece = lease.piece(length);
        body.read_exact(piece).map_err(Error::Body)?;
        file.write_all(piece)
            .map_err(|e| Error::Store(write_error(e)))?;
        left -= length as u64;
    }
    Ok(())
}
