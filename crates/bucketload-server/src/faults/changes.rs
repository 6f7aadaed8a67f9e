//! Recently created and deleted keys, which a stale listing does not show yet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::ObjectName;
use bucketload_store::{ListEntry, ListRequest, Listing};

/// Maximum number of remembered changes.
const MAX_CHANGES: usize = 1 << 18;

/// What happened to a key.
enum Change {
    Appeared,
    /// With its last entry in listings.
    Vanished(ListEntry),
}

/// The recent changes, in order.
#[derive(Default)]
pub(crate) struct Changes(Mutex<VecDeque<(Instant, ObjectName, Change)>>);

impl Changes {
    /// Records that an object now exists under `key`. Forgets changes older than `lag`.
    pub(crate) fn appeared(&self, bucket: &str, key: &str, lag: Duration) {
        self.push(bucket, key, Change::Appeared, lag);
    }

    /// Records that the object listed as `entry` was deleted. Forgets changes older than `lag`.
    pub(crate) fn vanished(&self, bucket: &str, entry: ListEntry, lag: Duration) {
        let key = entry.key.clone();
        self.push(bucket, &key, Change::Vanished(entry), lag);
    }

    fn push(&self, bucket: &str, key: &str, change: Change, lag: Duration) {
        let now = Instant::now();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while all
            .front()
            .is_some_and(|(at, ..)| all.len() >= MAX_CHANGES || now - *at > lag)
        {
            all.pop_front();
        }
        all.push_back((now, (bucket.into(), key.into()), change));
    }

    /// Turns `listing`, the result of `request`, into what it would have been `lag` ago. Common
    /// prefixes stay unchanged.
    pub(crate) fn undo(
        &self,
        bucket: &str,
        request: &ListRequest<'_>,
        listing: &mut Listing,
        lag: Duration,
    ) {
        let now = Instant::now();
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = all.iter().filter(|(at, (of, key), _)| {
            now - *at <= lag
                && **of == *bucket
                && key.starts_with(request.prefix)
                && **key > *request.start_after
                && listing.next.as_deref().is_none_or(|next| &**key <= next)
        });
        // The oldest change of a key gives its state before.
        let mut before: BTreeMap<&str, Option<&ListEntry>> = BTreeMap::new();
        for (_, (_, key), change) in recent {
            before.entry(key).or_insert(match change {
                Change::Appeared => None,
                Change::Vanished(entry) => Some(entry),
            });
        }
        listing
            .objects
            .retain(|entry| !before.contains_key(entry.key.as_str()));
        let returned = before.into_values().flatten().cloned();
        listing.objects.extend(returned);
        listing.objects.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    }
}
