//! Listing: a walk of the tree in byte order of the keys that reads only directories which can
//! hold keys of the page.
//!
//! Within a directory the entries are ordered by what they contribute to the key: a file by its
//! name, a directory by its name and `/`. A directory is also a candidate for the object of its own
//! name (`%self`). [`Gathering`] keeps the smallest candidates only, so that memory is bounded; a
//! directory with more is read again from where the walk has come to. A subtree that lies wholly in
//! one common prefix is not walked: one object in it suffices.

use std::ops::ControlFlow;

use rustix::io::Errno;

use super::entries::{self, Kind};
use super::escape::{Name, Place, directory_of_prefix, read_name};
use super::tree::Tree;
use crate::error::{Result, StoreError};
use crate::listing::{after_prefix, common_prefix, lower_bound};
use crate::types::{ListEntry, ListRequest, Listing};

/// Candidates kept of one directory. More than a page, so that one reading usually serves a page
/// even if some candidates turn out not to be objects.
const KEPT: usize = 4096;

/// An entry that may contribute to the page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// The key, or the beginning of all keys of the subtree.
    key: String,
    /// Whether it is a subtree.
    subtree: bool,
}

/// The smallest candidates of a directory that are not below the bound.
struct Gathering<'a> {
    request: &'a ListRequest<'a>,
    lower: &'a [u8],
    candidates: Vec<Candidate>,
    /// Candidates from this one on were dropped.
    ceiling: Option<Candidate>,
}

impl<'a> Gathering<'a> {
    const fn new(request: &'a ListRequest<'a>, lower: &'a [u8]) -> Self {
        Self {
            request,
            lower,
            candidates: Vec::new(),
            ceiling: None,
        }
    }

    /// Whether keys that begin with `start` can be wanted.
    fn reaches(&self, start: &str) -> bool {
        let prefix = self.request.prefix;
        (start.starts_with(prefix) || prefix.starts_with(start))
            && after_prefix(start).as_slice() > self.lower
    }

    fn add(&mut self, key: String, subtree: bool) {
        let relevant = if subtree {
            self.reaches(&key)
        } else {
            key.starts_with(self.request.prefix) && key.as_bytes() >= self.lower
        };
        if !relevant {
            return;
        }
        let candidate = Candidate { key, subtree };
        if self
            .ceiling
            .as_ref()
            .is_some_and(|ceiling| candidate >= *ceiling)
        {
            return;
        }
        self.candidates.push(candidate);
        if self.candidates.len() >= 2 * KEPT {
            self.sort();
            if self.candidates.len() > KEPT {
                self.ceiling = Some(self.candidates[KEPT].clone());
                self.candidates.truncate(KEPT);
            }
        }
    }

    /// Adds an entry of the directory that stands for `directory`.
    fn add_entry(&mut self, directory: &str, component: &str, kind: Kind) {
        let mut key = [directory, component].concat();
        let common = common_prefix(&key, self.request.prefix, self.request.delimiter);
        match (kind, common) {
            (Kind::File, None) => self.add(key, false),
            (Kind::File, Some(common)) => {
                // A file proves that its common prefix has an object; one candidate suffices.
                let common = common.to_owned();
                self.add(common, false);
            }
            (Kind::Directory, common) => {
                // An object `%self` in the directory belongs to the same common prefix as the rest.
                if common.is_none() {
                    self.add(key.clone(), false);
                }
                key.push('/');
                self.add(key, true);
            }
            (Kind::Other, _) => {}
        }
    }

    fn sort(&mut self) {
        self.candidates.sort_unstable();
        self.candidates.dedup();
    }
}

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
pub(super) fn list(tree: &Tree, bucket: &str, request: &ListRequest<'_>) -> Result<Listing> {
    let mut walk = Walk {
        tree,
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
            gathering.sort();
            let Gathering {
                candidates,
                ceiling,
                ..
            } = gathering;
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

    /// Reads a directory and those that continue long names of it.
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
        let mut continued = Vec::new();
        entries::for_each(&fd, |name, kind| {
            match read_name(name, before) {
                Name::Component(component) => gathering.add_entry(directory, &component, kind),
                Name::Continued(part) if kind == Kind::Directory => {
                    continued.push((name.to_vec(), part));
                }
                Name::Continued(_) | Name::Own | Name::Foreign => {}
            }
            true
        })
        .map_err(failed)?;
        drop(fd);
        for (name, part) in continued {
            if gathering.reaches(&[directory, &part].concat()) {
                let path = [path, b"/", &name].concat();
                self.gather(&path, directory, &part, gathering)?;
            }
        }
        Ok(())
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
