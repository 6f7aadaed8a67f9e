//! Objects at fixed distances in one file: `layout = shared-file`.
//!
//! ```text
//!   directory of the keys / .bucketload-posix-shared-KEYSET-REGION
//!   | slot 0 | slot 1 | slot 2 | ...        object n of the key set begins at n · slot
//! ```
//!
//! The file contains neither names nor sizes; the plan knows them. This layout measures random reads and
//! writes in a prepared file, without the cost of opening files.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::generate::ops::FRESH_STRIDE;
use bucketload_core::op::{Op, Request};

use super::path::directory;
use super::work::File;

/// The shared files that a thread has open.
#[derive(Debug, Default)]
pub(super) struct SharedFiles(RefCell<Vec<OpenFile>>);

/// An open file, found by the parts of its name: building the name for each operation would cost more than the
/// search.
#[derive(Debug)]
struct OpenFile {
    bucket: String,
    /// Directory of the keys in the bucket, with a trailing slash.
    directory: Vec<u8>,
    numbers: [u64; 2],
    write: bool,
    file: Arc<OwnedFd>,
}

impl OpenFile {
    /// Whether the object `key` of `bucket` is in the same directory as the file.
    fn is_beside(&self, bucket: &str, key: &str) -> bool {
        let Some((directory, name)) = key.as_bytes().split_at_checked(self.directory.len()) else {
            return false;
        };
        same(directory, &self.directory)
            && !has_slash(name)
            && same(self.bucket.as_bytes(), bucket.as_bytes())
    }
}

/// Compares bytes in pieces that overlap at the end. For short names that is cheaper than a call of the library's
/// function, whose code is no longer in the processor's cache either.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.last_chunk::<16>(), b.last_chunk::<16>()) {
        (Some(last), Some(other)) => {
            let (pieces, others) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
            last == other && pieces.iter().zip(others).all(|(a, b)| a == b)
        }
        _ => match (a.last_chunk::<8>(), b.last_chunk::<8>()) {
            (Some(last), Some(other)) => last == other && a.first_chunk::<8>() == b.first_chunk(),
            _ => a.iter().zip(b).all(|(a, b)| a == b),
        },
    }
}

/// Whether `name` contains a slash. Tests eight bytes at a time: some byte of `word` is zero if the subtraction carries
/// into its highest bit ("Bit Twiddling Hacks", determine if a word has a zero byte).
#[inline]
fn has_slash(name: &[u8]) -> bool {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    let among = |bytes: &[u8; 8]| {
        let word = u64::from_ne_bytes(*bytes) ^ (EACH * b'/' as u64);
        word.wrapping_sub(EACH) & !word & (EACH << 7) != 0
    };
    match name.last_chunk() {
        Some(last) => name.as_chunks().0.iter().any(among) || among(last),
        None => name.contains(&b'/'),
    }
}

impl SharedFiles {
    /// Sets `file` to the file of `numbers` beside the object `key`, unless it is that file already. Returns `false`
    /// if this thread does not have the file open for this access.
    #[inline]
    pub(super) fn find(
        &self,
        file: &mut Option<File>,
        (bucket, key): (&str, &str),
        numbers: [u64; 2],
        write: bool,
    ) -> bool {
        let files = self.0.borrow();
        let Some(open) = files.iter().find(|open| {
            open.numbers == numbers && (open.write || !write) && open.is_beside(bucket, key)
        }) else {
            return false;
        };
        if !matches!(file, Some(File::Shared(known)) if Arc::ptr_eq(known, &open.file)) {
            *file = Some(File::Shared(Arc::clone(&open.file)));
        }
        true
    }

    pub(super) fn add(
        &self,
        bucket: &str,
        key: &str,
        numbers: [u64; 2],
        write: bool,
        file: OwnedFd,
    ) -> File {
        let file = Arc::new(file);
        self.0.borrow_mut().push(OpenFile {
            bucket: bucket.to_owned(),
            directory: directory(key.as_bytes()).to_vec(),
            numbers,
            write,
            file: Arc::clone(&file),
        });
        File::Shared(file)
    }
}

/// Identifies the file of an object: its key set, and a region, because each work's fresh objects have a separate
/// file and start near 0 again.
pub(super) const fn numbers(op: &Op) -> [u64; 2] {
    [op.keyset as u64, op.key / FRESH_STRIDE]
}

/// Offset of an object of at most `size` bytes in its file.
///
/// # Errors
/// `Rejected` for objects larger than a slot, of unknown size, or beyond the largest file.
#[inline]
pub(super) fn place(request: &Request<'_>, slot: u64, size: Option<u64>) -> OpResult<u64> {
    let rejected = |text: String| Err(OpError::new(ErrorKind::Rejected, text));
    match size {
        None => {
            return rejected(format!(
                "the size of {:?} is unknown, and a shared file does not contain it",
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
        _ => rejected(format!("{:?} is beyond the largest file", request.key)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File as StdFile;
    use std::sync::Arc;

    use super::super::work::File;
    use super::{SharedFiles, has_slash, same};

    #[test]
    fn names_differ_in_any_byte_and_in_length() {
        for length in 0..50 {
            let name: Vec<u8> = (0..length).collect();
            let mut other = name.clone();
            assert!(same(&name, &other), "{length}");
            for at in 0..usize::from(length) {
                other[at] ^= 0x80;
                assert!(!same(&name, &other), "{at} of {length}");
                other[at] ^= 0x80;
                assert!(!same(&name, &other[..at]), "{at} of {length}");
            }
        }
    }

    #[test]
    fn slashes_are_found_wherever_they_are() {
        for length in 0..40 {
            // The neighbours of a slash, and bytes that differ from one in the highest bit.
            for other in [b'.', b'0', b'a', 0, b'/' | 0x80, 0xff] {
                let mut name = vec![other; length];
                assert!(!has_slash(&name), "{length} of {other}");
                for at in 0..length {
                    name[at] = b'/';
                    assert!(has_slash(&name), "{at} of {length}");
                    name[at] = other;
                }
            }
        }
    }

    #[test]
    fn a_file_is_found_only_for_the_objects_beside_it() {
        let files = SharedFiles::default();
        let open = || StdFile::open("/dev/null").unwrap().into();
        let File::Shared(deep) = files.add("b", "a/c/1", [1, 0], true, open()) else {
            panic!("not shared");
        };
        files.add("b", "1", [1, 0], false, open());
        let find = |names, numbers, write| {
            let mut file = None;
            let found = files.find(&mut file, names, numbers, write);
            assert_eq!(found, file.is_some());
            file
        };
        let is_deep = |file| matches!(file, Some(File::Shared(f)) if Arc::ptr_eq(&f, &deep));
        assert!(is_deep(find(("b", "a/c/22"), [1, 0], false)));
        assert!(is_deep(find(("b", "a/c/"), [1, 0], true)));
        for key in ["a/c", "a/1", "a/c/d/1", "a/cc/1", "x/c/1"] {
            assert!(!is_deep(find(("b", key), [1, 0], false)), "{key}");
        }
        assert!(find(("c", "a/c/1"), [1, 0], false).is_none());
        assert!(find(("b", "a/c/1"), [2, 0], false).is_none());
        assert!(find(("b", "a/c/1"), [1, 1], false).is_none());
        // At the top there is one for reading.
        assert!(find(("b", "2"), [1, 0], false).is_some());
        assert!(find(("b", "2"), [1, 0], true).is_none());
        // The file of another directory is replaced.
        let mut file = find(("b", "2"), [1, 0], false);
        assert!(files.find(&mut file, ("b", "a/c/3"), [1, 0], false));
        assert!(is_deep(file));
    }
}
