//! Listing a bucket: pages of the store, reported in batches.
//!
//! A listing that asks for no particular number of keys, or for `INT_MAX`, is never truncated, because
//! clients such as IOR follow the marker of a truncated listing into freed memory.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

use bucketload_store::{ListEntry, ListRequest, Listing};

use super::{BATCH, OWNER, PAGE, PREFIX_BATCH, count};
use crate::abi::{S3ListBucketCallback, S3ListBucketContent};
use crate::arguments::Bucket;
use crate::backend::Result;
use crate::clock::{self, Deadline};
use crate::reply::{Callbacks, Failure, array, c_string, quoted};

/// The keys to list.
pub(crate) struct Query {
    pub(crate) prefix: String,
    pub(crate) marker: String,
    pub(crate) delimiter: String,
    pub(crate) max_keys: c_int,
}

thread_local! {
    /// Keeps the last marker valid until the thread's next listing, for clients that keep the pointer.
    static LAST_MARKER: RefCell<CString> = RefCell::default();
}

/// Entries to report.
struct Batch<'a> {
    callbacks: &'a Callbacks,
    report: Option<S3ListBucketCallback>,
    is_truncated: c_int,
    next_marker: *const c_char,
    /// The keys and entity tags that `contents` points to.
    texts: Vec<(CString, CString)>,
    contents: Vec<S3ListBucketContent>,
    prefixes: Vec<CString>,
}

impl Batch<'_> {
    fn add(&mut self, entry: ListEntry) -> Result<()> {
        let (key, etag) = (c_string(entry.key), quoted(entry.etag));
        self.contents.push(S3ListBucketContent {
            key: key.as_ptr(),
            last_modified: clock::seconds(entry.modified),
            etag: etag.as_ptr(),
            size: entry.size,
            owner_id: OWNER.as_ptr(),
            owner_display_name: OWNER.as_ptr(),
        });
        self.texts.push((key, etag));
        if self.contents.len() == BATCH {
            self.flush()?;
        }
        Ok(())
    }

    fn add_prefix(&mut self, prefix: String) -> Result<()> {
        self.prefixes.push(c_string(prefix));
        if self.prefixes.len() == PREFIX_BATCH {
            self.flush()?;
        }
        Ok(())
    }

    /// Reports the entries, if there are any.
    fn flush(&mut self) -> Result<()> {
        let (contents, texts) = (
            std::mem::take(&mut self.contents),
            std::mem::take(&mut self.texts),
        );
        let prefixes = std::mem::take(&mut self.prefixes);
        let (Some(report), false) = (self.report, contents.is_empty() && prefixes.is_empty())
        else {
            return Ok(());
        };
        let pointers: Vec<*const c_char> = prefixes.iter().map(|p| p.as_ptr()).collect();
        // SAFETY: the function comes from the same handler as `callbacks`; texts and arrays live
        // until it returns.
        let code = unsafe {
            report(
                self.is_truncated,
                self.next_marker,
                count(contents.len()),
                array(&contents),
                count(pointers.len()),
                array(&pointers),
                self.callbacks.data,
            )
        };
        drop(texts);
        Failure::of_callback(code)
    }

    /// Sets for all following batches whether the listing is truncated, and its marker.
    fn set_next(&mut self, next: Option<&str>) {
        self.is_truncated = c_int::from(next.is_some());
        self.next_marker = c"".as_ptr();
        if let Some(next) = next {
            let marker = c_string(next);
            let pointer = marker.as_ptr();
            if LAST_MARKER.try_with(|last| last.replace(marker)).is_ok() {
                self.next_marker = pointer;
            }
        }
    }

    fn page(&mut self, page: Listing) -> Result<()> {
        page.objects
            .into_iter()
            .try_for_each(|entry| self.add(entry))?;
        page.common_prefixes
            .into_iter()
            .try_for_each(|prefix| self.add_prefix(prefix))
    }
}

/// Lists a bucket.
pub(crate) fn list(
    bucket: Bucket,
    query: &Query,
    report: Option<S3ListBucketCallback>,
    timeout_ms: c_int,
    callbacks: &Callbacks,
) -> Result<()> {
    let backend = bucket.backend()?;
    let deadline = Deadline::after(timeout_ms);
    let asked = usize::try_from(query.max_keys).unwrap_or(0);
    let all = asked == 0 || query.max_keys == c_int::MAX;
    let max_keys = if all { PAGE } else { asked.min(PAGE) };
    let read = |start_after: &str| {
        deadline.check()?;
        backend.list(
            &bucket.name,
            &ListRequest {
                prefix: &query.prefix,
                delimiter: &query.delimiter,
                start_after,
                max_keys,
            },
        )
    };
    let empty: &CStr = c"";
    let mut batch = Batch {
        callbacks,
        report,
        is_truncated: 0,
        next_marker: empty.as_ptr(),
        texts: Vec::new(),
        contents: Vec::new(),
        prefixes: Vec::new(),
    };
    let mut page = read(&query.marker)?;
    callbacks.no_properties()?;
    if !all {
        batch.set_next(page.next.as_deref());
    }
    loop {
        let next = page.next.take();
        batch.page(page)?;
        match next {
            Some(next) if all => page = read(&next)?,
            _ => break,
        }
    }
    batch.flush()
}
