//! The past states that fault rules need: previous versions of objects, deleted objects that will come
//! back, and changes that listings do not show yet.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::changes::Changes;
use super::resurrections::Resurrections;
use bucketload_store::Object;

/// Maximum number of versions kept. Each may hold a file open.
const MAX_VERSIONS: usize = 256;
/// Maximum bytes of content kept.
const MAX_BYTES: u64 = 256 << 20;

/// Bucket and key.
pub(crate) type ObjectName = (Box<str>, Box<str>);

/// The past states that fault rules need. The number of previous versions is bounded; the oldest are
/// dropped first.
#[derive(Default)]
pub(crate) struct History {
    previous: Mutex<PreviousVersions>,
    pub(crate) resurrections: Resurrections,
    pub(crate) changes: Changes,
}

/// The version before the current one, for the most recently written objects.
#[derive(Default)]
struct PreviousVersions {
    versions: HashMap<ObjectName, (Instant, Arc<Object>)>,
    order: VecDeque<ObjectName>,
    bytes: u64,
}

impl History {
    /// Keeps `previous`, the version that a write or a delete is about to replace.
    pub(crate) fn keep(&self, bucket: &str, key: &str, previous: Object) {
        let mut kept = self.previous.lock().unwrap_or_else(PoisonError::into_inner);
        let name: ObjectName = (bucket.into(), key.into());
        kept.forget(&name);
        kept.bytes += previous.info().size;
        let version = (Instant::now(), Arc::new(previous));
        kept.versions.insert(name.clone(), version);
        kept.order.push_back(name);
        while kept.order.len() > MAX_VERSIONS || kept.bytes > MAX_BYTES {
            let Some(oldest) = kept.order.front().cloned() else {
                break;
            };
            kept.forget(&oldest);
        }
    }

    /// The version before the current one, if known, and how long ago it was replaced.
    pub(crate) fn previous(&self, bucket: &str, key: &str) -> Option<(Duration, Arc<Object>)> {
        let kept = self.previous.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, version) = kept.versions.get(&(bucket.into(), key.into()))?;
        Some((since.elapsed(), Arc::clone(version)))
    }
}

impl PreviousVersions {
    fn forget(&mut self, name: &ObjectName) {
        if let Some((_, version)) = self.versions.remove(name) {
            self.bytes -= version.info().size;
            self.order.retain(|other| other != name);
        }
    }
}
