//! Versions in memory. A bucket that has or had versioning keeps a table of the versions of each key
//! that was written or deleted since; the map of current objects (`shards`) stays what reads use. A
//! key that the table lacks has one version, the null version, if it has an object. Buckets without
//! versioning pay nothing: their table is empty and no path of theirs takes its lock.
//!
//! The lock of the table comes before those of shards and index, so changes to one bucket with
//! versioning happen one after the other.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use crate::api::{Amend, Guard};
use crate::content::Charge;
use crate::error::{Result, StoreError};
use crate::etag::ETag;
use crate::listing::{after_prefix, common_prefix, lower_bound};
use crate::memory::Inner;
use crate::memory::buckets::{Bucket, IndexKey};
use crate::memory::shards::Shards;
use crate::object::{MemoryBody, MemoryVersion};
use crate::types::{Condition, Headers, ListEntry, ObjectInfo, Written};
use crate::versions::{
    ListVersionsRequest, Removed, VersionEntry, VersionId, VersionListing, Versioning,
};

/// A version of a key.
pub(super) enum Version {
    Object(Arc<MemoryVersion>),
    Marker(Marker),
}

pub(super) struct Marker {
    id: VersionId,
    modified: SystemTime,
    _charge: Charge,
}

impl Version {
    fn id(&self) -> VersionId {
        match self {
            Self::Object(version) => id_of(&version.info),
            Self::Marker(marker) => marker.id,
        }
    }

    fn object(&self) -> Option<&Arc<MemoryVersion>> {
        match self {
            Self::Object(version) => Some(version),
            Self::Marker(_) => None,
        }
    }

    fn listed(&self, key: &str, latest: bool) -> VersionEntry {
        let entry = match self {
            Self::Object(version) => ListEntry::of(key.to_owned(), &version.info),
            Self::Marker(marker) => ListEntry::of(
                key.to_owned(),
                &ObjectInfo::bare(0, ETag::opaque([0; 16]), marker.modified),
            ),
        };
        VersionEntry {
            entry,
            version: self.id(),
            latest,
            marker: self.object().is_none(),
        }
    }
}

/// The id of an object's version. Objects written before versioning have none: the null version.
fn id_of(info: &ObjectInfo) -> VersionId {
    info.headers.version().unwrap_or(VersionId::NULL)
}

/// The versions of each key, from the oldest to the newest.
#[derive(Default)]
pub(super) struct Table(BTreeMap<IndexKey, Vec<Version>>);

impl Table {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn get(&self, key: &str) -> Option<&Vec<Version>> {
        self.0.get(key.as_bytes())
    }

    /// The versions of `key`, brought into line with its `current` object: one written before the
    /// bucket had versioning becomes the null version.
    fn known(&mut self, key: &str, current: Option<&Arc<MemoryVersion>>) -> &mut Vec<Version> {
        let versions = self.0.entry(IndexKey(key.into())).or_default();
        if let Some(current) = current {
            let id = id_of(&current.info);
            // Usually the newest.
            let mut newest_first = versions.iter_mut().rev();
            match newest_first.find(|version| version.id() == id) {
                Some(known) => *known = Version::Object(Arc::clone(current)),
                None => versions.push(Version::Object(Arc::clone(current))),
            }
        }
        versions
    }

    fn first_from(&self, from: &[u8]) -> Option<(&IndexKey, &Vec<Version>)> {
        self.0
            .range::<[u8], _>((Bound::Included(from), Bound::Unbounded))
            .next()
    }
}

impl Inner {
    /// As `publish`, in a bucket that has or had versioning.
    pub(super) fn publish_version(
        &self,
        bucket: &Bucket,
        key: &str,
        body: MemoryBody,
        mut info: ObjectInfo,
        condition: &Condition,
    ) -> Result<Written> {
        let charge = self.charge_key(key)?;
        let mut table = bucket.table();
        let current = self.shards.get(bucket.name(), key);
        condition.check(current.as_ref().map(|version| version.info.etag))?;
        let id = bucket.next_version();
        info.headers.set(Headers::VERSION_ID, Some(id.to_string()));
        bucket.retain_by_default(&mut info.headers);
        let written = Written {
            version: Some(id),
            ..info.written()
        };
        let version = Arc::new(MemoryVersion {
            info,
            content: body.content,
            part_sums: body.part_sums,
            _charge: charge,
        });
        let versions = table.known(key, current.as_ref());
        let replaced = take_null(versions, id);
        let added = Arc::clone(&version);
        self.shards.insert(bucket, key, added, &Condition::None)?;
        versions.push(Version::Object(version));
        if replaced.and_then(|old| old.object().cloned()).is_none() {
            self.objects.fetch_add(1, Ordering::Relaxed);
        }
        Ok(written)
    }

    /// Deletes a version, or adds a delete marker if none is named.
    pub(super) fn remove_version(
        &self,
        bucket: &Bucket,
        key: &str,
        version: Option<VersionId>,
        condition: &Condition,
        guard: Guard<'_>,
    ) -> Result<Removed> {
        let charge = self.charge_key(key)?;
        let mut table = bucket.table();
        let current = self.shards.get(bucket.name(), key);
        let versions = table.known(key, current.as_ref());
        let outcome = match version {
            Some(id) => self.remove_named(bucket, key, versions, id, condition, guard),
            None => self.add_marker(bucket, key, versions, charge, condition, guard),
        };
        if versions.is_empty() {
            table.0.remove(key.as_bytes());
        }
        outcome
    }

    fn add_marker(
        &self,
        bucket: &Bucket,
        key: &str,
        versions: &mut Vec<Version>,
        charge: Charge,
        condition: &Condition,
        guard: Guard<'_>,
    ) -> Result<Removed> {
        let current = versions.last().and_then(Version::object);
        condition.check(current.map(|version| version.info.etag))?;
        let id = bucket.next_version();
        if id == VersionId::NULL {
            let null = versions.iter().find(|version| version.id() == id);
            if let Some(null) = null.and_then(Version::object) {
                guard(&null.info)?;
            }
        }
        let replaced = take_null(versions, id);
        versions.push(Version::Marker(Marker {
            id,
            modified: SystemTime::now(),
            _charge: charge,
        }));
        self.shards.remove(bucket, key, &Condition::None)?;
        if replaced.is_some_and(|old| old.object().is_some()) {
            self.objects.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(Removed {
            version: Some(id),
            marker: true,
        })
    }

    fn remove_named(
        &self,
        bucket: &Bucket,
        key: &str,
        versions: &mut Vec<Version>,
        id: VersionId,
        condition: &Condition,
        guard: Guard<'_>,
    ) -> Result<Removed> {
        let at = versions.iter().position(|version| version.id() == id);
        let object = at.and_then(|at| versions[at].object());
        condition.check(object.map(|version| version.info.etag))?;
        if let Some(version) = object {
            guard(&version.info)?;
        }
        let removed = at.map(|at| versions.remove(at));
        if at == Some(versions.len()) {
            // It was the newest: the one before it is current again.
            match versions.last() {
                Some(Version::Object(version)) => {
                    let again = Arc::clone(version);
                    self.shards.insert(bucket, key, again, &Condition::None)?;
                }
                _ => {
                    self.shards.remove(bucket, key, &Condition::None)?;
                }
            }
        }
        if removed.as_ref().is_some_and(|old| old.object().is_some()) {
            self.objects.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(Removed {
            version: Some(id),
            marker: removed.is_some_and(|old| old.object().is_none()),
        })
    }

    /// The version `id` of a key.
    pub(super) fn named_version(
        &self,
        bucket: &Bucket,
        key: &str,
        id: VersionId,
    ) -> Result<Arc<MemoryVersion>> {
        let table = bucket.table();
        let current = self.shards.get(bucket.name(), key);
        if let Some(current) = current.filter(|current| id_of(&current.info) == id) {
            return Ok(current);
        }
        let mut versions = table.get(key).into_iter().flatten();
        match versions.find(|version| version.id() == id) {
            Some(Version::Object(version)) => Ok(Arc::clone(version)),
            Some(Version::Marker(_)) => Err(StoreError::DeleteMarker {
                version: id,
                named: true,
            }),
            None => Err(StoreError::NoSuchVersion),
        }
    }

    /// Why a key without a current object has none.
    pub(super) fn absence(bucket: &Bucket, key: &str) -> StoreError {
        if bucket.versioning() == Versioning::Off {
            return StoreError::NoSuchKey;
        }
        match bucket.table().get(key).and_then(|all| all.last()) {
            Some(Version::Marker(marker)) => StoreError::DeleteMarker {
                version: marker.id,
                named: false,
            },
            _ => StoreError::NoSuchKey,
        }
    }

    /// Changes the metadata of a version in a bucket that has or had versioning.
    pub(super) fn amend_version(
        &self,
        bucket: &Bucket,
        key: &str,
        version: Option<VersionId>,
        change: Amend<'_>,
    ) -> Result<()> {
        let charge = self.charge_key(key)?;
        let mut table = bucket.table();
        let current = self.shards.get(bucket.name(), key);
        let versions = table.known(key, current.as_ref());
        let at = match version {
            Some(id) => versions.iter().position(|version| version.id() == id),
            None => versions.len().checked_sub(1),
        };
        let latest = at.is_some() && at == versions.len().checked_sub(1);
        let Some(known) = at.and_then(|at| versions.get_mut(at)) else {
            if versions.is_empty() {
                table.0.remove(key.as_bytes());
            }
            return Err(version.map_or(StoreError::NoSuchKey, |_| StoreError::NoSuchVersion));
        };
        let Version::Object(old) = known else {
            return Err(StoreError::DeleteMarker {
                version: known.id(),
                named: version.is_some(),
            });
        };
        let amended = Arc::new(old.amended(change, charge)?);
        *old = Arc::clone(&amended);
        if latest {
            self.shards.insert(bucket, key, amended, &Condition::None)?;
        }
        Ok(())
    }
}

/// Takes the null version out, if `id` is that of the null version.
fn take_null(versions: &mut Vec<Version>, id: VersionId) -> Option<Version> {
    if id != VersionId::NULL {
        return None;
    }
    let null = versions.iter().position(|version| version.id() == id)?;
    Some(versions.remove(null))
}

impl Bucket {
    /// One page of versions.
    pub(super) fn list_versions(
        &self,
        shards: &Shards,
        request: &ListVersionsRequest<'_>,
    ) -> VersionListing {
        let keys = &request.keys;
        let mut page = VersionListing::default();
        if keys.max_keys == 0 {
            return page;
        }
        let mut from = match request.after {
            Some(_) if keys.start_after >= keys.prefix => keys.start_after.as_bytes().to_vec(),
            _ => lower_bound(keys.prefix, keys.delimiter, keys.start_after),
        };
        let table = self.table();
        let mut last = None;
        while let Some(key) = self.next_key(&table, &from) {
            if !key.starts_with(keys.prefix) {
                break;
            }
            let full = |page: &VersionListing| {
                page.versions.len() + page.common_prefixes.len() == keys.max_keys
            };
            if let Some(common) = common_prefix(&key, keys.prefix, keys.delimiter) {
                if full(&page) {
                    page.next = last;
                    return page;
                }
                page.common_prefixes.push(common.to_owned());
                last = Some((common.to_owned(), None));
                from = after_prefix(common);
                continue;
            }
            let mut versions = self.versions_of(&table, shards, &key);
            if let (Some(after), true) = (request.after, *key == *keys.start_after) {
                // A version deleted since the last page leaves its place to the next older one.
                let older = |entry: &VersionEntry| {
                    entry.version < after && entry.version != VersionId::NULL
                };
                let at = match versions.iter().position(|entry| entry.version == after) {
                    Some(at) => at + 1,
                    None => versions.iter().position(older).unwrap_or(versions.len()),
                };
                versions.drain(..at);
            }
            for entry in versions {
                if full(&page) {
                    page.next = last;
                    return page;
                }
                last = Some((key.to_string(), Some(entry.version)));
                page.versions.push(entry);
            }
            from = key.as_bytes().to_vec();
            from.push(0);
        }
        page
    }

    fn next_key(&self, table: &Table, from: &[u8]) -> Option<Arc<str>> {
        let current = self.first_key_from(from);
        let Some((IndexKey(versioned), _)) = table.first_from(from) else {
            return current;
        };
        match current {
            Some(current) if current < *versioned => Some(current),
            _ => Some(Arc::clone(versioned)),
        }
    }

    /// The versions of `key`, newest first.
    fn versions_of(&self, table: &Table, shards: &Shards, key: &str) -> Vec<VersionEntry> {
        match table.get(key) {
            Some(versions) => {
                let all = versions.iter().rev().enumerate();
                all.map(|(age, version)| version.listed(key, age == 0))
                    .collect()
            }
            None => {
                let current = shards.get(self.name(), key).map(Version::Object);
                let current = current.map(|version| version.listed(key, true));
                current.into_iter().collect()
            }
        }
    }
}
