//! Listings of a filer. A filer lists one folder at a time, in pages, so listing all keys below a prefix
//! walks the tree; with the delimiter `/` it reads a single folder.
//!
//! The walk is depth first, in the order of names within each folder. That is the order of keys except
//! where a folder's name is a prefix of another entry's (`a/…` comes before `a.txt` here, and after it
//! in S3). It keeps one page per level.

use std::collections::VecDeque;

use bucketload_core::driver::{Completion, ErrorKind, OpError, OpResult, Probe, Request};

use super::filer::push_path;
use super::session::SeaweedSession;
use crate::http::answer::{no_next_page, unreadable};
use crate::http::{Buffer, HttpSession as _, Render as _, Rendering as _};
use crate::json::{self, Value};

/// Most bytes of a page: some 1000 entries with their chunks.
const MAX_PAGE: usize = 32 << 20;

/// Default number of entries of a page.
const PAGE: u64 = 1000;

/// The bit of a mode that marks a folder (Go's `os.ModeDir`).
const FOLDER: u64 = 1 << 31;

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) folder: bool,
}

/// Reads a page: its entries, and whether more follow.
pub(crate) fn read_page(body: &[u8]) -> OpResult<(VecDeque<Entry>, bool)> {
    let (mut entries, mut more) = (VecDeque::new(), false);
    let (mut path, mut mode) = (String::new(), 0);
    json::values(body, |at, value| match (at, value) {
        (["Entries", "[]", "FullPath"], Value::Text(text)) => path = text.get(),
        (["Entries", "[]", "Mode"], value) => mode = value.whole().unwrap_or(0),
        (["Entries", "[]"], Value::End) => {
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            entries.push_back(Entry {
                name,
                folder: mode & FOLDER != 0,
            });
            path.clear();
            mode = 0;
        }
        (["ShouldDisplayLoadMore"], Value::Bool(value)) => more = value,
        _ => {}
    })
    .map_err(|e| unreadable("listing", e))?;
    entries.retain(|entry| !entry.name.is_empty());
    Ok((entries, more))
}

/// A folder on the path of the walk.
struct FolderLevel {
    /// Path below the bucket, with a trailing slash; empty for the bucket.
    path: String,
    /// Received entries that the walk has not visited yet.
    entries: VecDeque<Entry>,
    /// Name after which the next page begins.
    last: String,
    /// Whether there may be a next page.
    more: bool,
}

impl FolderLevel {
    fn new(path: String, last: &str) -> Self {
        Self {
            path,
            entries: VecDeque::new(),
            last: last.to_owned(),
            more: true,
        }
    }
}

/// One step of a walk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WalkStep {
    /// An object.
    Key(String),
    /// The name of a folder, in a walk that does not enter folders.
    Group(String),
    /// The walk needs more pages than allowed.
    Cut,
    /// The walk is complete.
    End,
}

/// A walk through everything below a prefix.
pub(crate) struct Walk<'a> {
    bucket: &'a str,
    levels: Vec<FolderLevel>,
    /// Prefix of the names in the first folder.
    start: &'a str,
    /// Whether folders are entered.
    deep: bool,
    per_page: u64,
    /// Pages fetched.
    pages: u32,
}

impl<'a> Walk<'a> {
    /// A walk through the keys of `bucket` that begin with `prefix`, in pages of `per_page` (0: 1000).
    pub(crate) fn new(bucket: &'a str, prefix: &'a str, deep: bool, per_page: u64) -> Self {
        let at = prefix.rfind('/').map_or(0, |at| at + 1);
        Self {
            bucket,
            levels: vec![FolderLevel::new(prefix[..at].to_owned(), "")],
            start: &prefix[at..],
            deep,
            per_page: if per_page == 0 { PAGE } else { per_page },
            pages: 0,
        }
    }

    /// Resumes after the object `key`, which an earlier walk reached.
    pub(crate) fn resume_after(mut self, key: &str) -> Self {
        let Some(level) = self.levels.pop() else {
            return self;
        };
        let mut path = level.path;
        let rest = key.strip_prefix(path.as_str()).unwrap_or_default();
        for name in rest.split('/') {
            self.levels.push(FolderLevel::new(path.clone(), name));
            path = format!("{path}{name}/");
        }
        self
    }

    /// The next step; fetches at most `most` pages in total (0: no limit).
    pub(crate) async fn step(
        &mut self,
        session: &mut SeaweedSession,
        most: u32,
        probe: &mut Probe,
    ) -> OpResult<WalkStep> {
        loop {
            let top = self.levels.len() == 1;
            let Some(level) = self.levels.last_mut() else {
                return Ok(WalkStep::End);
            };
            if let Some(entry) = level.entries.pop_front() {
                if top && !entry.name.starts_with(self.start) {
                    continue;
                }
                match (entry.folder, self.deep) {
                    (false, _) => {
                        return Ok(WalkStep::Key(format!("{}{}", level.path, entry.name)));
                    }
                    (true, false) => return Ok(WalkStep::Group(entry.name)),
                    (true, true) => {
                        let path = format!("{}{}/", level.path, entry.name);
                        self.levels.push(FolderLevel::new(path, ""));
                    }
                }
            } else if !level.more {
                self.levels.pop();
            } else if most > 0 && self.pages >= most {
                return Ok(WalkStep::Cut);
            } else {
                self.fetch(session, probe).await?;
            }
        }
    }

    /// Fetches the next page of the deepest level.
    async fn fetch(&mut self, session: &mut SeaweedSession, probe: &mut Probe) -> OpResult<()> {
        let start = if self.levels.len() == 1 {
            self.start
        } else {
            ""
        };
        let Some(level) = self.levels.last_mut() else {
            return Ok(());
        };
        self.pages += 1;
        let mut head = session.begin("GET");
        push_path(&mut head, self.bucket, &level.path);
        head.push(b'?');
        head.number("limit", self.per_page);
        if !level.last.is_empty() {
            head.parameter("lastFileName", &level.last);
        }
        // A prefix with wildcard characters is filtered on the client instead.
        if !start.is_empty() && !start.contains(['*', '?', '[', ']', '\\']) {
            head.parameter("namePattern", start);
            head.push(b'*');
        }
        let mut request = session.listing(head);
        let mut body = Buffer::take();
        match session
            .document(&mut request, &mut body, MAX_PAGE, probe)
            .await
        {
            Ok(_) => {}
            // A missing folder is empty; a missing bucket is an error.
            Err(error) if error.kind == ErrorKind::NotFound && !level.path.is_empty() => {
                level.more = false;
                if self.levels.len() == 1 && self.pages == 1 {
                    session.check_folder(self.bucket, probe).await?;
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        let (entries, more) = read_page(&body)?;
        level.more = more && !entries.is_empty();
        if let Some(last) = entries.back() {
            if last.name == level.last {
                return Err(no_next_page());
            }
            level.last.clone_from(&last.name);
        }
        level.entries = entries;
        Ok(())
    }
}

impl SeaweedSession {
    /// Lists under `request.key`.
    pub(crate) async fn list(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let op = &request.op;
        let deep = match request.delimiter {
            "" => true,
            "/" => false,
            other => {
                let text =
                    format!("a filer lists folders: the delimiter must be `/`, not `{other}`");
                return Err(OpError::new(ErrorKind::Rejected, text));
            }
        };
        let mut walk = Walk::new(request.bucket, request.key, deep, op.count);
        let mut items = 0;
        loop {
            match walk.step(self, op.pages, probe).await? {
                WalkStep::Key(key) => {
                    items += 1;
                    if let Some(watch) = request.watch {
                        watch.listed(&key);
                    }
                }
                WalkStep::Group(_) => items += 1,
                WalkStep::Cut => {
                    if let Some(watch) = request.watch {
                        watch.cut_short();
                    }
                    return Ok(Completion::of_items(items));
                }
                WalkStep::End => return Ok(Completion::of_items(items)),
            }
        }
    }

    /// Names of the folders in the folder `path` of `bucket`.
    ///
    /// # Errors
    /// `Conflict` when the folder contains an object.
    pub(crate) async fn subfolders(&mut self, bucket: &str, path: &str) -> OpResult<Vec<String>> {
        let mut walk = Walk::new(bucket, path, false, 0);
        let mut found = Vec::new();
        let probe = &mut Probe::untimed();
        loop {
            match walk.step(self, 0, probe).await? {
                WalkStep::Group(name) => found.push(name),
                WalkStep::Key(key) => {
                    let text = format!("the bucket is not empty: it contains `{key}`");
                    return Err(OpError::new(ErrorKind::Conflict, text));
                }
                WalkStep::Cut | WalkStep::End => return Ok(found),
            }
        }
    }

    /// Counts the folders of buckets.
    pub(crate) async fn list_buckets(&mut self, probe: &mut Probe) -> OpResult {
        let (mut last, mut items) = (String::new(), 0);
        loop {
            let mut head = self.begin("GET");
            head.text(super::filer::BUCKETS);
            head.push(b'?');
            head.parameter("limit", "1000");
            if !last.is_empty() {
                head.parameter("lastFileName", &last);
            }
            let mut request = self.listing(head);
            let mut body = Buffer::take();
            self.document(&mut request, &mut body, MAX_PAGE, probe)
                .await?;
            let (entries, more) = read_page(&body)?;
            items += entries.iter().filter(|entry| entry.folder).count() as u64;
            match entries.back() {
                Some(entry) if more && entry.name != last => last.clone_from(&entry.name),
                _ => return Ok(Completion::of_items(items)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Entry, read_page};

    #[test]
    fn pages_are_read() {
        let page = br#"{"Path":"/buckets/b","Entries":[{"FullPath":"/buckets/b/d","Mtime":"x","Mode":2147484141,
            "chunks":[{"fid":{"Mode":1}}]},{"Mode":432,"FullPath":"/buckets/b/a \u0026"}],"Limit":2,
            "LastFileName":"a","ShouldDisplayLoadMore":true}"#;
        let (entries, more) = read_page(page).unwrap();
        let entry = |name: &str, folder| Entry {
            name: name.to_owned(),
            folder,
        };
        assert_eq!(entries, [entry("d", true), entry("a &", false)]);
        assert!(more);
        let (entries, more) = read_page(br#"{"Path":"/x","Entries":null}"#).unwrap();
        assert!(entries.is_empty() && !more);
        assert!(read_page(b"<html>").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_input_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_page(&bytes);
        }
    }
}
