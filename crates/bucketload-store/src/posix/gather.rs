//! The smallest entries of a directory that a page of a listing may need.
//!
//! Entries are ordered by what they contribute to the key: a file by its name, a directory by its
//! name and `/`. A directory is also a candidate for the object of its own name (`%self`). Only the
//! smallest candidates are kept, so that memory is bounded whatever the size of the directory.

use crate::listing::{after_prefix, common_prefix};
use crate::posix::entries::Kind;
use crate::types::ListRequest;

/// Candidates kept of one directory. More than a page, so that one reading usually serves a page
/// even if some candidates turn out not to be objects.
const KEPT: usize = 4096;

/// An entry that may contribute to the page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// The key, or the beginning of all keys of the subtree.
    pub(super) key: String,
    /// Whether it is a subtree.
    pub(super) subtree: bool,
}

/// The smallest candidates of a directory that are not below the bound.
pub(super) struct Gathering<'a> {
    request: &'a ListRequest<'a>,
    lower: &'a [u8],
    candidates: Vec<Candidate>,
    /// Candidates from this one on were dropped.
    ceiling: Option<Candidate>,
}

impl<'a> Gathering<'a> {
    pub(super) const fn new(request: &'a ListRequest<'a>, lower: &'a [u8]) -> Self {
        Self {
            request,
            lower,
            candidates: Vec::new(),
            ceiling: None,
        }
    }

    /// Forgets all candidates.
    pub(super) fn clear(&mut self) {
        self.candidates.clear();
        self.ceiling = None;
    }

    /// The candidates in order, and the first one that was dropped.
    pub(super) fn finish(mut self) -> (Vec<Candidate>, Option<Candidate>) {
        self.sort();
        (self.candidates, self.ceiling)
    }

    /// Whether keys that begin with `start` can be wanted.
    pub(super) fn reaches(&self, start: &str) -> bool {
        let prefix = self.request.prefix;
        (start.starts_with(prefix) || prefix.starts_with(start))
            && after_prefix(start).as_slice() > self.lower
    }

    /// Where the names that matter begin in a directory that stands for `directory`.
    pub(super) fn start_in(&self, directory: &str) -> Vec<u8> {
        let Some(rest) = self.lower.strip_prefix(directory.as_bytes()) else {
            // The bound lies before the directory; one behind it makes all candidates irrelevant.
            return Vec::new();
        };
        // A subtree begins before the bound if the bound lies in it.
        let end = rest
            .iter()
            .position(|b| *b == b'/')
            .map_or(rest.len(), |slash| slash + 1);
        rest[..end].to_vec()
    }

    /// Whether no name from `component` on matters.
    pub(super) fn is_behind(&self, directory: &str, component: &str) -> bool {
        let prefix = self.request.prefix;
        match prefix.strip_prefix(directory) {
            Some(rest) => component > rest && !component.starts_with(rest),
            None => !directory.starts_with(prefix),
        }
    }

    fn add(&mut self, candidate: Candidate) {
        let Candidate { key, subtree } = &candidate;
        let relevant = if *subtree {
            self.reaches(key)
        } else {
            key.starts_with(self.request.prefix) && key.as_bytes() >= self.lower
        };
        if !relevant
            || self
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

    /// For candidates that are added in order: when there are enough, makes the last one the
    /// ceiling and returns `true`.
    pub(super) fn cut_behind_last(&mut self) -> bool {
        // A page and one more, which tells that there are more.
        let enough = self.request.max_keys.saturating_add(1).clamp(16, KEPT);
        if self.candidates.len() <= enough {
            return false;
        }
        self.ceiling = self.candidates.pop();
        true
    }

    /// Adds a file of the directory that stands for `directory`. If it belongs to a common prefix,
    /// returns the bound behind all keys of this prefix.
    pub(super) fn add_file(&mut self, directory: &str, component: &str) -> Option<Vec<u8>> {
        let mut key = [directory, component].concat();
        let common = common_prefix(&key, self.request.prefix, self.request.delimiter);
        let Some(common) = common.map(str::len) else {
            self.add(Candidate {
                key,
                subtree: false,
            });
            return None;
        };
        // A file proves that its common prefix has an object; one candidate suffices.
        key.truncate(common);
        let behind = after_prefix(&key);
        self.add(Candidate {
            key,
            subtree: false,
        });
        Some(behind)
    }

    /// Adds the object that a directory may hold under its own name. If it belonged to a common
    /// prefix, so would the rest of the directory, which stands for it.
    pub(super) fn add_own(&mut self, directory: &str, component: &str) {
        let key = [directory, component].concat();
        if common_prefix(&key, self.request.prefix, self.request.delimiter).is_none() {
            self.add(Candidate {
                key,
                subtree: false,
            });
        }
    }

    /// Adds a directory that stands for `key`, which ends with `/`.
    pub(super) fn add_subtree(&mut self, key: String) {
        self.add(Candidate { key, subtree: true });
    }

    /// Adds an entry of the directory that stands for `directory`.
    pub(super) fn add_entry(&mut self, directory: &str, component: &str, kind: Kind) {
        match kind {
            Kind::File => {
                self.add_file(directory, component);
            }
            Kind::Directory => {
                self.add_own(directory, component);
                self.add_subtree([directory, component, "/"].concat());
            }
            Kind::Other => {}
        }
    }

    fn sort(&mut self) {
        self.candidates.sort_unstable();
        self.candidates.dedup();
    }
}
