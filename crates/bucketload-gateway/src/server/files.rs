//! Objects that the client writes itself, to a file that it gets over a Unix socket.
//!
//! The file is one that nobody else knows yet; what makes it an object is `CommitFile`. Only this user's processes
//! can connect to the socket, and they could write below the root without a gateway, so a client that keeps the
//! file open afterwards has won nothing.

use bucketload_store::{ObjectUpload, PutOptions, Result, StoreError};

use super::accept::Shared;
use super::body::answer_write;
use super::connection::End;
use super::output::Output;
use super::perform::push_error;
use crate::protocol::Outcome;
use crate::protocol::request::{Name, Request};
use crate::socket::Socket;

/// An object that is being written by the client.
pub(super) struct FileUpload {
    upload: Box<dyn ObjectUpload>,
}

/// Answers `PutFile`: gives the client the file of a new object, or says that there is none.
pub(super) fn offer(
    shared: &Shared,
    socket: &Socket,
    output: &mut Output,
    sequence: u32,
    Name { bucket, key }: Name<'_>,
    size: u64,
) -> std::result::Result<Option<FileUpload>, End> {
    let none = |output: &mut Output| output.push(Outcome::Done, sequence, 0, |out| out.push(0));
    if shared.is_tcp() {
        none(output);
        return Ok(None);
    }
    let mut upload = match shared.store.put(bucket, key, &PutOptions::sized(size)) {
        Ok(upload) => upload,
        Err(error) => {
            push_error(output, sequence, &error);
            return Ok(None);
        }
    };
    // There is none where the store must see the bytes.
    let Some(file) = upload.file() else {
        none(output);
        return Ok(None);
    };
    output.flush(socket, false)?;
    output.push(Outcome::Done, sequence, 0, |out| out.push(1));
    output.flush_with_file(socket, file)?;
    Ok(Some(FileUpload { upload }))
}

impl FileUpload {
    /// Answers `CommitFile` or `DropFile`. Returns whether there is an object now.
    pub(super) fn end(self, output: &mut Output, sequence: u32, request: Request<'_>) -> bool {
        let Request::CommitFile(commit) = request else {
            drop(self.upload);
            output.push(Outcome::Done, sequence, 0, |_| ());
            return false;
        };
        let written = self.count().and_then(|upload| upload.commit(commit));
        answer_write(output, sequence, &written);
        written.is_ok()
    }

    /// The upload with the bytes that are in its file. That they are as many as were announced is found by its
    /// commit.
    fn count(mut self) -> Result<Box<dyn ObjectUpload>> {
        let file = self.upload.file();
        let file = file.ok_or(StoreError::NotImplemented("the file of an object"))?;
        let stat = rustix::fs::fstat(file).map_err(|errno| StoreError::Io {
            context: "writing an object",
            source: errno.into(),
        })?;
        self.upload
            .appended(u64::try_from(stat.st_size).unwrap_or(0))?;
        Ok(self.upload)
    }
}
