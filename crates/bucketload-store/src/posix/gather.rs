//! The smallest entries of a directory that a page of a listing may need.
//!
//! Entries are sorted by their part of the key: a file's name, or a directory's name and `/`. A
//! directory is also a candidate for the object of the same name (`%self`). Only the smallest candidates
//! are kept, so memory is bounded for directories of any size.

use crate::listing::{after_prefix, common_prefix};
use crate::posix::entries::Kind;
use crate::types::ListRequest;

/// Maximum number of candidates of one directory: more than a page, so that one pass is usually enough
/// even if some candidates turn out not to be objects.
const KEPT: usize = 4096;

/// An entry that may contribute to the page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// The key, or the prefix of all keys in the subtree.
    pub(super) key: String,
    pub(super) subtree: bool,
}

/// The smallest candidates of a directory that are not below the lower bound.
pub(super) struct Gathering<'a> {
    request: &'a ListRequest<'a>,
    lower: &'a [u8],
    candidates: Vec<Candidate>,
    /// The first of the candidates that were dropped.
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

    /// Removes all candidates.
    pub(super) fn clear(&mut self) {
        self.candidates.clear();
        self.ceiling = None;
    }

    /// The sorted candidates, and the first one that was dropped.
    pub(super) fn finish(mut self) -> (Vec<Candidate>, Option<Candidate>) {
        self.sort();
        (self.candidates, self.ceiling)
    }

    /// Whether the request may want keys that begin with `start`.
    pub(super) fn reaches(&self, start: &str) -> bool {
        let prefix = self.request.prefix;
        (start.starts_with(prefix) || prefix.starts_with(start))
            && after_prefix(start).as_slice() > self.lower
    }

    /// The first relevant name in the directory with the key prefix `directory`.
    pub(super) fn start_in(&self, directory: &str) -> Vec<u8> {
        let Some(rest) = self.lower.strip_prefix(directory.as_bytes()) else {
            // The bound lies before the directory. (If it lay after, no candidate would be relevant.)
            return Vec::new();
        };
        // A subtree that contains the bound begins before it.
        let end = rest
            .iter()
            .position(|b| *b == b'/')
            .map_or(rest.len(), |slash| slash + 1);
        rest[..end].to_vec()
    }

    /// Whether no name from `component` on is relevant.
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

    /// For candidates added in order: once there are enough, drops the last one, which becomes the
    /// ceiling, and returns `true`.
    pub(super) fn cut_behind_last(&mut self) -> bool {
        // One more than a page shows that there are more.
        let enough = self.request.max_keys.saturating_add(1).clamp(16, KEPT);
        if self.candidates.len() <= enough {
            return false;
        }
        self.ceiling = self.candidates.pop();
        true
    }

    /// Adds a file of the directory with the key prefix `directory`. If the file belongs to a common
    /// prefix, returns the bound after all keys with this prefix.
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
        // A file proves that its common prefix has an object; one candidate is enough.
        key.truncate(common);
        let behind = after_prefix(&key);
        self.add(Candidate {
            key,
            subtree: false,
        });
        Some(behind)
    }

    /// Adds the object that a directory may hold as `%self`. If that object belongs to a common
    /// prefix, so does the whole directory, which then represents it.
    pub(super) fn add_self_object(&mut self, directory: &str, component: &str) {
        let key = [directory, component].concat();
        if common_prefix(&key, self.request.prefix, self.request.delimiter).is_none() {
            self.add(Candidate {
                key,
                subtree: false,
            });
        }
    }

    /// Adds the directory with the key prefix `key`, which ends with `/`.
    pub(super) fn add_subtree(&mut self, key: String) {
        self.add(Candidate { key, subtree: true });
    }

    /// Adds an entry of the directory with the key prefix `directory`.
    pub(super) fn add_entry(&mut self, directory: &str, component: &str, kind: Kind) {
        match kind {
            Kind::File => {
                self.add_file(directory, component);
            }
            Kind::Directory => {
                self.add_self_object(directory, component);
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
