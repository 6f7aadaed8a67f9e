//! Former versions of objects, kept for stale reads.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::Object;

/// Most versions kept: each may hold a file open.
const MAX_VERSIONS: usize = 256;
/// Most bytes of content kept.
const MAX_BYTES: u64 = 256 << 20;

type Name = (Box<str>, Box<str>);

/// The version before the current one of the objects written last. Bounded: the oldest go first.
#[derive(Default)]
pub(crate) struct History(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    versions: HashMap<Name, std::sync::Arc<Object>>,
    order: VecDeque<Name>,
    bytes: u64,
}

impl History {
    /// Remembers `former` as the version that a write or a delete is about to replace.
    pub(crate) fn keep(&self, bucket: &str, key: &str, former: Object) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name: Name = (bucket.into(), key.into());
        kept.forget(&name);
        kept.bytes += former.info().size;
        kept.versions
            .insert(name.clone(), std::sync::Arc::new(former));
        kept.order.push_back(name);
        while kept.order.len() > MAX_VERSIONS || kept.bytes > MAX_BYTES {
            let Some(oldest) = kept.order.front().cloned() else {
                break;
            };
            kept.forget(&oldest);
        }
    }

    /// The version before the current one, if it is known.
    pub(crate) fn former(&self, bucket: &str, key: &str) -> Option<std::sync::Arc<Object>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.versions.get(&(bucket.into(), key.into())).cloned()
    }
}

impl Kept {
    fn forget(&mut self, name: &Name) {
        if let Some(version) = self.versions.remove(name) {
            self.bytes -= version.info().size;
            self.order.retain(|other| other != name);
        }
    }
}
