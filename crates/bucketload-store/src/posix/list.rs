//! Listing: a walk of the tree in byte order of the keys. It reads only directories that can hold keys
//! of the page.
//!
//! In each directory, `gather` picks the entries that the page may need, from `index` if the directory
//! is large. If there are more of them than it keeps, the walk returns to the directory later and
//! continues. A subtree that lies entirely within a common prefix is not walked: one object in it is
//! enough.

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::beneath;
use super::buckets;
use super::entries::{self, Kind};
use super::escape::{Name, ObjectPath, directory_of_prefix, read_name};
use super::gather::{Candidate, Gathering};
use super::index::Indexes;
use super::tree::Tree;
use crate::error::{Result, StoreError};
use crate::listing::{after_prefix, common_prefix, lower_bound};
use crate::types::{ListEntry, ListRequest, Listing};

fn failed(error: Errno) -> StoreError {
    StoreError::system("listing a bucket", error)
}

/// A walk that fills one page.
struct Walk<'a> {
    tree: &'a Tree,
    indexes: &'a Indexes,
    bucket: &'a str,
    request: &'a ListRequest<'a>,
    /// Keys below this have been handled.
    lower: Vec<u8>,
    page: Listing,
    last: String,
    /// Whether a directory of the bucket was found.
    found: bool,
}

/// One page of the keys of a bucket.
///
/// # Errors
/// [`StoreError::NoSuchBucket`], [`StoreError::Io`].
pub(super) fn list(
    tree: &Tree,
    indexes: &Indexes,
    bucket: &str,
    request: &ListRequest<'_>,
) -> Result<Listing> {
    let mut walk = Walk {
        tree,
        indexes,
        bucket,
        request,
        lower: lower_bound(request.prefix, request.delimiter, request.start_after),
        page: Listing::default(),
        last: String::new(),
        found: false,
    };
    if request.max_keys > 0 {
        let (path, directory) = directory_of_prefix(bucket, request.prefix);
        // `Break` only means that the page is full.
        let _: ControlFlow<()> = walk.directory(&path, directory)?;
    }
    if !walk.found {
        buckets::check(tree, bucket)?;
    }
    Ok(walk.page)
}

impl Walk<'_> {
    /// Walks the directory at `path`, which has the key prefix `directory`.
    fn directory(&mut self, path: &[u8], directory: &str) -> Result<ControlFlow<()>> {
        loop {
            let lower = self.lower.clone();
            let mut gathering = Gathering::new(self.request, &lower);
            self.gather(path, directory, "", &mut gathering)?;
            let (candidates, ceiling) = gathering.finish();
            for candidate in candidates {
                if self.candidate(&candidate)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let Some(ceiling) = ceiling else {
                return Ok(ControlFlow::Continue(()));
            };
            // Everything before the first dropped candidate has been handled.
            if self.lower.as_slice() < ceiling.key.as_bytes() {
                self.lower = ceiling.key.into_bytes();
            }
        }
    }

    /// Gathers the entries of a directory and of the directories that continue its long names.
    fn gather(
        &mut self,
        path: &[u8],
        directory: &str,
        before: &str,
        gathering: &mut Gathering<'_>,
    ) -> Result<()> {
        for name in self.gather_names(path, directory, before, gathering)? {
            let Name::Continued(part) = read_name(&name, before) else {
                continue;
            };
            if gathering.reaches(&[directory, &part].concat()) {
                let path = [path, b"/", &name].concat();
                self.gather(&path, directory, &part, gathering)?;
            }
        }
        Ok(())
    }

    /// Gathers the entries of a directory. Returns the directories that continue its long names.
    fn gather_names(
        &mut self,
        path: &[u8],
        directory: &str,
        before: &str,
        gathering: &mut Gathering<'_>,
    ) -> Result<Vec<Vec<u8>>> {
        if before.is_empty()
            && let Some(anchor) = self.tree.cached(path)
            && let Some(continued) = self
                .indexes
                .list(&anchor, directory, gathering)
                .map_err(failed)?
        {
            // An index is not used after its directory was removed.
            self.found = true;
            return Ok(continued);
        }
        let fd = match self.tree.session.root.open_directory(path) {
            Ok(fd) => fd,
            Err(error) if beneath::is_absent(error) => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        self.found = true;
        if !before.is_empty() {
            let (_, continued) =
                read(&fd, directory, before, gathering, usize::MAX).map_err(failed)?;
            return Ok(continued);
        }
        let (continued, indexed) = self
            .gather_large(&fd, directory, gathering)
            .map_err(failed)?;
        if indexed {
            self.tree.cache(path, fd);
        }
        Ok(continued)
    }

    /// Gathers the entries of a directory that may be large. Returns the directories that continue
    /// long names, and whether the directory has an index.
    fn gather_large(
        &self,
        fd: &OwnedFd,
        directory: &str,
        gathering: &mut Gathering<'_>,
    ) -> rustix::io::Result<(Vec<Vec<u8>>, bool)> {
        if let Some(continued) = self.indexes.list(fd, directory, gathering)? {
            return Ok((continued, true));
        }
        let limit = self.indexes.limit(fd)?;
        let (complete, continued) = read(fd, directory, "", gathering, limit)?;
        if complete {
            return Ok((continued, false));
        }
        gathering.clear();
        if self.indexes.build(fd)?
            && let Some(continued) = self.indexes.list(fd, directory, gathering)?
        {
            return Ok((continued, true));
        }
        rustix::fs::seek(fd, SeekFrom::Start(0))?;
        let (_, continued) = read(fd, directory, "", gathering, usize::MAX)?;
        Ok((continued, false))
    }

    /// Visits a candidate, unless the page already covers it.
    fn candidate(&mut self, candidate: &Candidate) -> Result<ControlFlow<()>> {
        let Candidate { key, subtree } = candidate;
        let request = self.request;
        let common = common_prefix(key, request.prefix, request.delimiter);
        if *subtree {
            if after_prefix(key) <= self.lower {
                return Ok(ControlFlow::Continue(()));
            }
            let (path, _) = directory_of_prefix(self.bucket, key);
            return match common {
                None => self.directory(&path, key),
                Some(common) => {
                    // Whether the directory's `%self` object has the common prefix too.
                    let self_counts = common.len() < key.len();
                    if self.has_object(&path, "", self_counts)? {
                        return Ok(self.emit_common(common));
                    }
                    Ok(ControlFlow::Continue(()))
                }
            };
        }
        if key.as_bytes() < self.lower.as_slice() {
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(common) = common {
            return Ok(self.emit_common(common));
        }
        match self
            .tree
            .open_with_info(&ObjectPath::of(self.bucket, key))?
        {
            Some((_, info)) => Ok(self.emit(ListEntry::of(key.clone(), &info))),
            None => Ok(ControlFlow::Continue(())),
        }
    }

    /// Whether the page has room. If not, sets the start of the next page.
    fn has_room(&mut self) -> bool {
        if self.page.objects.len() + self.page.common_prefixes.len() < self.request.max_keys {
            return true;
        }
        self.page.next = Some(std::mem::take(&mut self.last));
        false
    }

    fn emit(&mut self, entry: ListEntry) -> ControlFlow<()> {
        if !self.has_room() {
            return ControlFlow::Break(());
        }
        self.last.clone_from(&entry.key);
        self.lower = [entry.key.as_bytes(), b"\0"].concat();
        self.page.objects.push(entry);
        ControlFlow::Continue(())
    }

    fn emit_common(&mut self, common: &str) -> ControlFlow<()> {
        if !self.has_room() {
            return ControlFlow::Break(());
        }
        common.clone_into(&mut self.last);
        self.lower = after_prefix(common);
        self.page.common_prefixes.push(common.to_owned());
        ControlFlow::Continue(())
    }

    /// Whether there is an object in the directory or below it. `self_counts` says whether the
    /// directory's `%self` object counts. Removes an empty directory, which is left over from a crash
    /// between `mkdir` and `rename`.
    fn has_object(&self, path: &[u8], before: &str, self_counts: bool) -> Result<bool> {
        let fd = match self.tree.session.root.open_directory(path) {
            Ok(fd) => fd,
            Err(error) if beneath::is_absent(error) => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        let mut found = false;
        let mut empty = true;
        let mut below = Vec::new();
        entries::for_each(&fd, |name, kind| {
            empty = false;
            match (kind, read_name(name, before)) {
                (Kind::File, Name::Component(_)) => found = true,
                (Kind::File, Name::SelfFile) => found |= self_counts,
                (Kind::Directory, Name::Component(_)) => below.push((name.to_vec(), String::new())),
                (Kind::Directory, Name::Continued(part)) => below.push((name.to_vec(), part)),
                _ => {}
            }
            !found
        })
        .map_err(failed)?;
        drop(fd);
        if empty {
            self.tree.prune(path);
        }
        if found {
            return Ok(true);
        }
        for (name, part) in below {
            if self.has_object(&[path, b"/", &name].concat(), &part, true)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Reads at most `limit` entries of a directory. Returns whether these were all, and the directories
/// that continue long names.
fn read(
    fd: &OwnedFd,
    directory: &str,
    before: &str,
    gathering: &mut Gathering<'_>,
    limit: usize,
) -> rustix::io::Result<(bool, Vec<Vec<u8>>)> {
    let mut continued = Vec::new();
    let mut count = 0;
    entries::for_each(fd, |name, kind| {
        match read_name(name, before) {
            Name::Component(component) => gathering.add_entry(directory, &component, kind),
            Name::Continued(_) if kind == Kind::Directory => continued.push(name.to_vec()),
            Name::Continued(_) | Name::SelfFile | Name::Foreign => {}
        }
        count += 1;
        count < limit
    })?;
    Ok((count < limit, continued))
}
