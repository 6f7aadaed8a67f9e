//! Objects whose file the client writes itself, received over a Unix socket.
//!
//! The file stays hidden until `CommitFile` makes it an object. Only this user's processes can connect to the
//! socket, and they could write below the root without a gateway, so a client gains nothing by keeping the file
//! open afterwards.

use bucketload_store::{ObjectUpload, PutOptions, Result, StoreError};

use super::accept::ServerState;
use super::connection::ConnectionEnd;
use super::perform::{push, push_error};
use super::replies::ReplyBuffer;
use crate::protocol::Outcome;
use crate::protocol::request::{Name, Request};
use crate::socket::Socket;

/// An object whose file the client is writing.
pub(super) struct FileUpload {
    upload: Box<dyn ObjectUpload>,
}

/// Answers `PutFile`: passes the file of a new object to the client, or says that there is none.
pub(super) fn offer(
    state: &ServerState,
    socket: &Socket,
    replies: &mut ReplyBuffer,
    sequence: u32,
    Name { bucket, key }: Name<'_>,
    size: u64,
) -> std::result::Result<Option<FileUpload>, ConnectionEnd> {
    let none =
        |replies: &mut ReplyBuffer| replies.push(Outcome::Done, sequence, 0, |out| out.push(0));
    if state.is_tcp() {
        none(replies);
        return Ok(None);
    }
    let mut upload = match state.store.put(bucket, key, &PutOptions::sized(size)) {
        Ok(upload) => upload,
        Err(error) => {
            push_error(replies, sequence, &error);
            return Ok(None);
        }
    };
    // There is no file if the store must see the bytes.
    let Some(file) = upload.file() else {
        none(replies);
        return Ok(None);
    };
    replies.flush(socket, false)?;
    replies.push(Outcome::Done, sequence, 0, |out| out.push(1));
    replies.flush_with_file(socket, file)?;
    Ok(Some(FileUpload { upload }))
}

impl FileUpload {
    /// Answers `CommitFile` or `DropFile`. Returns whether the object exists now.
    pub(super) fn end(
        self,
        replies: &mut ReplyBuffer,
        sequence: u32,
        request: Request<'_>,
    ) -> bool {
        let Request::CommitFile(commit) = request else {
            drop(self.upload);
            replies.push(Outcome::Done, sequence, 0, |_| ());
            return false;
        };
        let written = self.count_bytes().and_then(|upload| upload.commit(commit));
        push(replies, sequence, &written);
        written.is_ok()
    }

    /// Counts the bytes in the file into the upload. The commit compares them with the announced size.
    fn count_bytes(mut self) -> Result<Box<dyn ObjectUpload>> {
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
