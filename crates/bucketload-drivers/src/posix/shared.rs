//! Objects at fixed distances in one file: `layout = shared-file`.
//!
//! ```text
//!   directory of the keys / .bucketload-posix-shared-KEYSET-REGION
//!   | slot 0 | slot 1 | slot 2 | ...        object n of the key set begins at n · slot
//! ```
//!
//! The file knows neither names nor sizes: the plan does. It is for reads and writes at random places
//! of a file that preparing has written, without the cost of opening one.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::generate::ops::FRESH_STRIDE;
use bucketload_core::op::{Op, Request};

use super::path::directory;

/// The shared files that a thread has open.
#[derive(Debug, Default)]
pub(super) struct SharedFiles(RefCell<Vec<Open>>);

/// A file is found by what its name is made of: making the name for each operation would cost more than
/// finding the file.
#[derive(Debug)]
struct Open {
    directory: Vec<u8>,
    numbers: [u64; 2],
    write: bool,
    file: Arc<OwnedFd>,
}

impl SharedFiles {
    /// The file of `numbers` beside the object at `path`, if this thread has opened it so.
    pub(super) fn find(&self, path: &[u8], numbers: [u64; 2], write: bool) -> Option<Arc<OwnedFd>> {
        let directory = directory(path);
        let files = self.0.borrow();
        let open = files.iter().find(|open| {
            open.numbers == numbers && (open.write || !write) && open.directory == directory
        })?;
        Some(Arc::clone(&open.file))
    }

    /// Remembers a file.
    pub(super) fn add(
        &self,
        path: &[u8],
        numbers: [u64; 2],
        write: bool,
        file: OwnedFd,
    ) -> Arc<OwnedFd> {
        let file = Arc::new(file);
        self.0.borrow_mut().push(Open {
            directory: directory(path).to_vec(),
            numbers,
            write,
            file: Arc::clone(&file),
        });
        file
    }
}

/// What tells a key set's files apart: fresh objects of each work have a file of their own, where
/// they begin again near 0.
pub(super) const fn numbers(op: &Op) -> [u64; 2] {
    [op.keyset as u64, op.key / FRESH_STRIDE]
}

/// Where an object of at most `size` bytes lies in its file.
///
/// # Errors
/// `Rejected` for objects larger than a slot, of unknown size, or beyond the largest file.
pub(super) fn place(request: &Request<'_>, slot: u64, size: Option<u64>) -> Result<u64, OpError> {
    let rejected = |text: String| Err(OpError::new(ErrorKind::Rejected, text));
    match size {
        None => {
            return rejected(format!(
                "the size of {:?} is unknown, and a shared file does not tell it",
                request.key
            ));
        }
        Some(size) if size > slot => {
            return rejected(format!(
                "{:?} has {size} bytes, the slots of the shared file {slot}",
                request.key
            ));
        }
        Some(_) => {}
    }
    match (request.op.key % FRESH_STRIDE).checked_mul(slot) {
        Some(at) if at <= i64::MAX as u64 - slot => Ok(at),
        _ => rejected(format!("{:?} lies beyond the largest file", request.key)),
    }
}
