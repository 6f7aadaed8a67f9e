//! What fault rules remember of the past: former versions of objects, deleted objects that come back,
//! changes that listings do not show yet.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::changes::Changes;
use super::revenants::Revenants;
use bucketload_store::Object;

/// Most versions kept: each may hold a file open.
const MAX_VERSIONS: usize = 256;
/// Most bytes of content kept.
const MAX_BYTES: u64 = 256 << 20;

/// Bucket and key.
pub(crate) type Name = (Box<str>, Box<str>);

/// The past, as far as fault rules need it. Bounded: the oldest goes first.
#[derive(Default)]
pub(crate) struct History {
    former: Mutex<Kept>,
    pub(crate) revenants: Revenants,
    pub(crate) changes: Changes,
}

/// The version before the current one of the objects written last.
#[derive(Default)]
struct Kept {
    versions: HashMap<Name, (Instant, Arc<Object>)>,
    order: VecDeque<Name>,
    bytes: u64,
}

impl History {
    /// Remembers `former` as the version that a write or a delete is about to replace.
    pub(crate) fn keep(&self, bucket: &str, key: &str, former: Object) {
        let mut kept = self.former.lock().unwrap_or_else(PoisonError::into_inner);
        let name: Name = (bucket.into(), key.into());
        kept.forget(&name);
        kept.bytes += former.info().size;
        let version = (Instant::now(), Arc::new(former));
        kept.versions.insert(name.clone(), version);
        kept.order.push_back(name);
        while kept.order.len() > MAX_VERSIONS || kept.bytes > MAX_BYTES {
            let Some(oldest) = kept.order.front().cloned() else {
                break;
            };
            kept.forget(&oldest);
        }
    }

    /// The version before the current one, if it is known, and how long ago it was replaced.
    pub(crate) fn former(&self, bucket: &str, key: &str) -> Option<(Duration, Arc<Object>)> {
        let kept = self.former.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, version) = kept.versions.get(&(bucket.into(), key.into()))?;
        Some((since.elapsed(), Arc::clone(version)))
    }
}

impl Kept {
    fn forget(&mut self, name: &Name) {
        if let Some((_, version)) = self.versions.remove(name) {
            self.bytes -= version.info().size;
            self.order.retain(|other| other != name);
        }
    }
}
