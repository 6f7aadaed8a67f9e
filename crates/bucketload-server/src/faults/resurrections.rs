//! Deleted objects that will come back.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::ObjectName;
use bucketload_store::{Commit, Object, Store};

/// Deleted objects, each with the instant from which it may come back. The `count` of the rules bounds
/// their number.
#[derive(Default)]
pub(crate) struct Resurrections(Mutex<HashMap<ObjectName, (Instant, Object)>>);

impl Resurrections {
    /// Records that `object` was deleted and comes back `age` from now.
    pub(crate) fn schedule(&self, bucket: &str, key: &str, object: Object, age: Duration) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = Instant::now() + age;
        all.insert((bucket.into(), key.into()), (due, object));
    }

    /// Forgets the deleted object under `key`, because the key was written again.
    pub(crate) fn forget(&self, bucket: &str, key: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.is_empty() {
            all.remove(&(bucket.into(), key.into()));
        }
    }

    /// Writes the objects that are due back to `store`, for keys that `concerned` accepts.
    pub(crate) fn restore_due(
        &self,
        store: &dyn Store,
        bucket: &str,
        concerned: impl Fn(&str) -> bool,
    ) {
        let now = Instant::now();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Holds the lock throughout, so that no two requests bring back the same object.
        all.retain(|(of, key), (due, object)| {
            if **of != *bucket || *due > now || !concerned(key) {
                return true;
            }
            if store.head(bucket, key).is_err() {
                let commit = Commit {
                    headers: object.info().headers.clone(),
                    ..Commit::default()
                };
                // The fault is best effort: the store may be full.
                let _ = store.copy(object, bucket, key, commit);
            }
            false
        });
    }
}
