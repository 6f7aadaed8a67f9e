//! Deleted objects that are to come back.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Name;
use bucketload_store::{Commit, Object, Store};

/// Deleted objects with the instant from which on they may come back. Their number is bounded by the
/// `count` of the rules.
#[derive(Default)]
pub(crate) struct Revenants(Mutex<HashMap<Name, (Instant, Object)>>);

impl Revenants {
    /// `object` was deleted and will come back `age` from now.
    pub(crate) fn bury(&self, bucket: &str, key: &str, object: Object, age: Duration) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = Instant::now() + age;
        all.insert((bucket.into(), key.into()), (due, object));
    }

    /// The key is written: what was there before stays away.
    pub(crate) fn forget(&self, bucket: &str, key: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.is_empty() {
            all.remove(&(bucket.into(), key.into()));
        }
    }

    /// Brings back to `store` what is due under keys that `concerned` selects.
    pub(crate) fn raise(&self, store: &dyn Store, bucket: &str, concerned: impl Fn(&str) -> bool) {
        let now = Instant::now();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that no two requests bring back the same object.
        all.retain(|(of, key), (due, object)| {
            if **of != *bucket || *due > now || !concerned(key) {
                return true;
            }
            if store.head(bucket, key).is_err() {
                let commit = Commit {
                    headers: object.info().headers.clone(),
                    ..Commit::default()
                };
                // A store that cannot take it has no room for ghosts.
                let _ = store.copy(object, bucket, key, commit);
            }
            false
        });
    }
}
