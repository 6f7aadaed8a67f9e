//! The sharded map from bucket and key to the current version. Each operation hashes the pair once:
//! the hash selects the shard and is stored with the entry.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::{Result, StoreError};
use crate::memory::buckets::Bucket;
use crate::object::MemoryVersion;
use crate::types::Condition;

/// Number of shards: enough that 64 threads seldom collide, yet few enough to cost little memory.
const SHARDS: usize = 256;

/// Bucket and key with their hash, owned or borrowed, so that a lookup does not allocate.
trait Pair {
    fn hash(&self) -> u64;
    fn pair(&self) -> (&str, &str);
}

struct OwnedPair {
    hash: u64,
    bucket: Arc<str>,
    key: Arc<str>,
}

struct BorrowedPair<'a> {
    hash: u64,
    bucket: &'a str,
    key: &'a str,
}

impl Pair for OwnedPair {
    fn hash(&self) -> u64 {
        self.hash
    }

    fn pair(&self) -> (&str, &str) {
        (&self.bucket, &self.key)
    }
}

impl Pair for BorrowedPair<'_> {
    fn hash(&self) -> u64 {
        self.hash
    }

    fn pair(&self) -> (&str, &str) {
        (self.bucket, self.key)
    }
}

impl<'a> Borrow<dyn Pair + 'a> for OwnedPair {
    fn borrow(&self) -> &(dyn Pair + 'a) {
        self
    }
}

impl Hash for dyn Pair + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(Pair::hash(self));
    }
}

impl PartialEq for dyn Pair + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.pair() == other.pair()
    }
}

impl Eq for dyn Pair + '_ {}

impl Hash for OwnedPair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialEq for OwnedPair {
    fn eq(&self, other: &Self) -> bool {
        self.pair() == other.pair()
    }
}

impl Eq for OwnedPair {}

/// Passes on a precomputed 64-bit hash.
#[derive(Default)]
struct Prehashed(u64);

impl Hasher for Prehashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("pairs hash by write_u64 only");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

type Map = HashMap<OwnedPair, Arc<MemoryVersion>, BuildHasherDefault<Prehashed>>;

/// A locked map, aligned to its own cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Shard(RwLock<Map>);

pub(super) struct Shards {
    state: RandomState,
    shards: Box<[Shard]>,
}

impl Shards {
    pub(super) fn new() -> Self {
        Self {
            state: RandomState::new(),
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
        }
    }

    fn locate<'a>(&self, bucket: &'a str, key: &'a str) -> (&RwLock<Map>, BorrowedPair<'a>) {
        let hash = self.state.hash_one((bucket, key));
        // Middle bits: the map itself uses the lowest and the highest bits.
        let shard = (hash >> 40) as usize % SHARDS;
        (&self.shards[shard].0, BorrowedPair { hash, bucket, key })
    }

    pub(super) fn get(&self, bucket: &str, key: &str) -> Option<Arc<MemoryVersion>> {
        let (shard, pair) = self.locate(bucket, key);
        let map = shard.read().unwrap_or_else(PoisonError::into_inner);
        map.get(&pair as &dyn Pair).map(Arc::clone)
    }

    /// Makes `version` current if the condition holds. Returns the replaced version, so that the
    /// caller frees it after the lock is released.
    pub(super) fn insert(
        &self,
        bucket: &Bucket,
        key: &str,
        version: Arc<MemoryVersion>,
        condition: &Condition,
    ) -> Result<Option<Arc<MemoryVersion>>> {
        let shared: Arc<str> = key.into();
        let (shard, BorrowedPair { hash, .. }) = self.locate(bucket.name(), key);
        let owned = OwnedPair {
            hash,
            bucket: Arc::clone(bucket.name()),
            key: Arc::clone(&shared),
        };
        let mut map = shard.write().unwrap_or_else(PoisonError::into_inner);
        match map.entry(owned) {
            Entry::Occupied(mut entry) => {
                condition.check(Some(entry.get().info.etag))?;
                Ok(Some(entry.insert(version)))
            }
            Entry::Vacant(entry) => {
                condition.check(None)?;
                bucket.index_insert(shared)?;
                entry.insert(version);
                Ok(None)
            }
        }
    }

    /// Removes the current version if the condition holds.
    pub(super) fn remove(
        &self,
        bucket: &Bucket,
        key: &str,
        condition: &Condition,
    ) -> Result<Option<Arc<MemoryVersion>>> {
        let (shard, pair) = self.locate(bucket.name(), key);
        let mut map = shard.write().unwrap_or_else(PoisonError::into_inner);
        condition.check(map.get(&pair as &dyn Pair).map(|version| version.info.etag))?;
        let removed = map.remove(&pair as &dyn Pair);
        if removed.is_some() {
            bucket.index_remove(key);
        }
        Ok(removed)
    }

    /// Replaces the current version with one derived from it.
    pub(super) fn update(
        &self,
        bucket: &str,
        key: &str,
        derive: impl FnOnce(&MemoryVersion) -> Result<MemoryVersion>,
    ) -> Result<()> {
        let (shard, pair) = self.locate(bucket, key);
        let mut map = shard.write().unwrap_or_else(PoisonError::into_inner);
        let current = map
            .get_mut(&pair as &dyn Pair)
            .ok_or(StoreError::NoSuchKey)?;
        let derived = Arc::new(derive(current)?);
        let replaced = std::mem::replace(current, derived);
        drop(map);
        drop(replaced);
        Ok(())
    }
}
