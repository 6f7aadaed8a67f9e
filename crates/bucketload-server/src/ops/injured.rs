//! Writes, deletes and listings on which fault rules may act: what the store is made to forget, mix,
//! bring back or show late. Without rules each is the store's own operation.

use super::Ctx;
use crate::error::S3Result;
use crate::router::Operation;
use bucketload_store::{
    Commit, Condition, ETag, ListEntry, ListRequest, Listing, Object, ObjectInfo, ObjectUpload,
    PutOptions, Written,
};

/// What a listing shows of an object.
fn entry_of(key: &str, info: &ObjectInfo) -> ListEntry {
    ListEntry {
        key: key.to_owned(),
        size: info.size,
        etag: info.etag,
        modified: info.modified,
        checksums: info.checksums.iter().map(|sum| sum.algorithm).collect(),
    }
}

impl Ctx<'_> {
    /// Makes an uploaded object visible, unless a rule has it lost or torn.
    pub(crate) fn commit(
        &self,
        upload: Box<dyn ObjectUpload>,
        commit: Commit,
    ) -> S3Result<Written> {
        let (shared, bucket, key) = (self.shared, self.target.bucket(), self.target.key());
        let faults = &shared.faults;
        if faults.is_empty() {
            return Ok(upload.commit(commit)?);
        }
        if commit.condition == Condition::None && faults.loses(Operation::Put, key) {
            return Ok(Written {
                etag: ETag::opaque([0; 16]),
                size: upload.written(),
                modified: std::time::SystemTime::now(),
            });
        }
        let lag = faults.longest_lag();
        let new = lag.is_some() && self.store().head(bucket, key).is_err();
        let former = faults
            .may_tear(Operation::Put, key)
            .then(|| self.store().open(bucket, key).ok())
            .flatten()
            .filter(|former| former.info().size > upload.written() / 2 && upload.written() > 1);
        let torn = former.filter(|_| faults.tears(Operation::Put, key));
        self.keep_former(key);
        shared.history.revenants.forget(bucket, key);
        let headers = torn.as_ref().map(|_| commit.headers.clone());
        let written = upload.commit(commit)?;
        if let (true, Some(lag)) = (new, lag) {
            shared.history.changes.appeared(bucket, key, lag);
        }
        if let (Some(former), Some(headers)) = (torn, headers) {
            self.tear(&former, headers)?;
        }
        Ok(written)
    }

    /// Replaces the second half of the current version by that of `former`, as far as it reaches.
    fn tear(&self, former: &Object, headers: bucketload_store::Headers) -> S3Result<()> {
        let (bucket, key) = (self.target.bucket(), self.target.key());
        let current = self.store().open(bucket, key)?;
        let size = current.info().size;
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        current.read_at(0, &mut bytes)?;
        let half = bytes.len() / 2;
        former.read_at(half as u64, &mut bytes[half..])?;
        let mut upload = self.store().put(bucket, key, &PutOptions::sized(size))?;
        upload.write(&bytes)?;
        upload.commit(Commit {
            headers,
            ..Commit::default()
        })?;
        Ok(())
    }

    /// Deletes an object, which a rule may bring back later.
    pub(crate) fn delete(
        &self,
        operation: Operation,
        key: &str,
        condition: &Condition,
    ) -> S3Result<()> {
        let (shared, bucket) = (self.shared, self.target.bucket());
        let faults = &shared.faults;
        if faults.is_empty() {
            self.store().delete(bucket, key, condition)?;
            return Ok(());
        }
        self.keep_former(key);
        let lag = faults.longest_lag();
        let buried = faults
            .may_resurrect(operation, key)
            .then(|| self.store().open(bucket, key).ok())
            .flatten();
        let shown = lag.and_then(|_| self.store().head(bucket, key).ok());
        self.store().delete(bucket, key, condition)?;
        if let (Some(lag), Some(info)) = (lag, shown) {
            let entry = entry_of(key, &info);
            shared.history.changes.vanished(bucket, entry, lag);
        }
        if let Some(object) = buried
            && let Some(age) = faults.resurrects(operation, key)
        {
            shared.history.revenants.bury(bucket, key, object, age);
        }
        Ok(())
    }

    /// Brings back the deleted objects that are due under the key of a read.
    pub(crate) fn raise(&self) {
        let shared = self.shared;
        if !shared.faults.is_empty() {
            let (bucket, wanted) = (self.target.bucket(), self.target.key());
            let revenants = &shared.history.revenants;
            revenants.raise(self.store(), bucket, |key| key == wanted);
        }
    }

    /// A page of a listing, which a rule may show as it was a while ago.
    pub(crate) fn page(
        &self,
        operation: Operation,
        request: &ListRequest<'_>,
    ) -> S3Result<Listing> {
        let (shared, bucket) = (self.shared, self.target.bucket());
        if shared.faults.is_empty() {
            return Ok(self.store().list(bucket, request)?);
        }
        let revenants = &shared.history.revenants;
        revenants.raise(self.store(), bucket, |key| key.starts_with(request.prefix));
        let mut listing = self.store().list(bucket, request)?;
        if let Some(lag) = shared.faults.lag(operation, request.prefix) {
            shared
                .history
                .changes
                .undo(bucket, request, &mut listing, lag);
        }
        Ok(listing)
    }
}
