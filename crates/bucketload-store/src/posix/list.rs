//! Listing: a walk of the tree in byte order of the keys that reads only directories which can
//! hold keys of the page.
//!
//! Per directory, `gather` picks the entries that the page may need, from `index` if the directory
//! is large; one with more of them is looked at again from where the walk has come to. A subtree
//! that lies wholly in one common prefix is not walked: one object in it suffices.

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::entries::{self, Kind};
use super::escape::{Name, Place, directory_of_prefix, read_name};
use super::gather::{Candidate, Gathering};
use super::index::{INDEX_FROM, Indexes};
use super::tree::Tree;
use crate::error::{Result, StoreError};
use crate::listing::{after_prefix, common_prefix, lower_bound};
use crate::types::{ListEntry, ListRequest, Listing};

fn failed(error: Errno) -> StoreError {
    StoreError::system("listing a bucket", error)
}

/// Whether a directory is not there (any more).
const fn is_absent(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

/// A walk that fills one page.
struct Walk<'a> {
    tree: &'a Tree,
    indexes: &'a Indexes,
    bucket: &'a str,
    request: &'a ListRequest<'a>,
    /// Keys below this are done.
    lower: Vec<u8>,
    page: Listing,
    last: String,
}

/// One page of the keys of a bucket, which exists.
///
/// # Errors
/// [`StoreError::Io`].
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
    };
    if request.max_keys > 0 {
        let (path, directory) = directory_of_prefix(bucket, request.prefix);
        // The walk ends early when the page is full, which is no failure.
        let _: ControlFlow<()> = walk.directory(&path, directory)?;
    }
    Ok(walk.page)
}

impl Walk<'_> {
    /// Walks the directory at `path`, which stands for keys that begin with `directory`.
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
            // Everything before the first candidate that was dropped is done.
            if self.lower.as_slice() < ceiling.key.as_bytes() {
                self.lower = ceiling.key.into_bytes();
            }
        }
    }

    /// Picks the entries of a directory and of those that continue long names of it.
    fn gather(
        &self,
        path: &[u8],
        directory: &str,
        before: &str,
        gathering: &mut Gathering<'_>,
    ) -> Result<()> {
        let fd = match self.tree.session.root.open_directory(path) {
            Ok(fd) => fd,
            Err(error) if is_absent(error) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        let continued = if before.is_empty() {
            self.gather_large(&fd, directory, gathering)
                .map_err(failed)?
        } else {
            read(&fd, directory, before, gathering, usize::MAX)
                .map_err(failed)?
                .1
        };
        drop(fd);
        for name in continued {
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

    /// Picks the entries of a directory that may be large; returns those that continue long names.
    fn gather_large(
        &self,
        fd: &OwnedFd,
        directory: &str,
        gathering: &mut Gathering<'_>,
    ) -> rustix::io::Result<Vec<Vec<u8>>> {
        if let Some(continued) = self.indexes.list(fd, directory, gathering)? {
            return Ok(continued);
        }
        let (complete, continued) = read(fd, directory, "", gathering, INDEX_FROM)?;
        if complete {
            return Ok(continued);
        }
        gathering.clear();
        if self.indexes.build(fd)?
            && let Some(continued) = self.indexes.list(fd, directory, gathering)?
        {
            return Ok(continued);
        }
        rustix::fs::seek(fd, SeekFrom::Start(0))?;
        Ok(read(fd, directory, "", gathering, usize::MAX)?.1)
    }

    /// Visits a candidate, unless what was listed meanwhile covers it.
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
                    // Whether the object of the directory's own name has the common prefix too.
                    let own = common.len() < key.len();
                    if self.has_object(&path, "", own)? {
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
        match self.tree.open_with_info(&Place::of(self.bucket, key))? {
            Some((_, info)) => Ok(self.emit(ListEntry {
                key: key.clone(),
                size: info.size,
                etag: info.etag,
                modified: info.modified,
                checksums: info.checksums.iter().map(|c| c.algorithm).collect(),
            })),
            None => Ok(ControlFlow::Continue(())),
        }
    }

    /// Whether the page has room; if not, this is where the next one begins.
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

    /// Whether there is an object in the directory or below it, `own` telling whether that of its
    /// own name counts. A directory without any entry is
    /// what a crash between `mkdir` and `rename` has left: it is removed.
    fn has_object(&self, path: &[u8], before: &str, own: bool) -> Result<bool> {
        let fd = match self.tree.session.root.open_directory(path) {
            Ok(fd) => fd,
            Err(error) if is_absent(error) => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        let mut found = false;
        let mut empty = true;
        let mut below = Vec::new();
        entries::for_each(&fd, |name, kind| {
            empty = false;
            match (kind, read_name(name, before)) {
                (Kind::File, Name::Component(_)) => found = true,
                (Kind::File, Name::Own) => found |= own,
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

/// Reads a directory. Returns whether that is all, or it was left after `limit` entries, and the
/// directories that continue long names.
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
            Name::Continued(_) | Name::Own | Name::Foreign => {}
        }
        count += 1;
        count < limit
    })?;
    Ok((count < limit, continued))
}
