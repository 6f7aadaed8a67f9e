//! Writes, deletes and listings that fault rules may corrupt: they lose or tear writes, bring deleted
//! objects back, and make listings stale. Without rules, each is the plain store operation.

use super::Ctx;
use crate::error::S3Result;
use crate::quirks::{self, Quirk};
use crate::router::Operation;
use bucketload_store::{
    Commit, Condition, ETag, Guard, ListEntry, ListRequest, ListVersionsRequest, Listing, Object,
    ObjectUpload, PutOptions, Removed, VersionId, VersionListing, Versioning, Written,
};

impl Ctx<'_> {
    /// Commits an uploaded object, unless a rule loses or tears it.
    pub(crate) fn commit(
        &self,
        upload: Box<dyn ObjectUpload>,
        commit: Commit,
    ) -> S3Result<Written> {
        let (server, bucket, key) = (self.server, self.target.bucket(), self.target.key());
        let (faults, quirks) = (&server.faults, server.config.quirks);
        if faults.is_empty() && quirks.is_empty() {
            return Ok(upload.commit(commit)?);
        }
        if commit.condition == Condition::None && faults.loses(Operation::Put, key) {
            return Ok(Written {
                etag: ETag::opaque([0; 16]),
                size: upload.written(),
                modified: std::time::SystemTime::now(),
                version: None,
            });
        }
        let lag = faults.longest_lag().max(quirks.list_lag());
        let new = lag.is_some() && self.store().head(bucket, key).is_err();
        let previous = faults
            .may_tear(Operation::Put, key)
            .then(|| self.store().open(bucket, key).ok())
            .flatten()
            .filter(|previous| previous.info().size > upload.written() / 2 && upload.written() > 1);
        let torn = previous.filter(|_| faults.tears(Operation::Put, key));
        self.keep_previous(key);
        server.history.resurrections.forget(bucket, key);
        let headers = torn.as_ref().map(|_| commit.headers.clone());
        let written = upload.commit(commit)?;
        if let (true, Some(lag)) = (new, lag) {
            server.history.changes.appeared(bucket, key, lag);
        }
        if let (Some(previous), Some(headers)) = (torn, headers) {
            self.tear(&previous, headers)?;
        }
        Ok(written)
    }

    /// Overwrites the second half of the current version with that of `previous`, as far as `previous`
    /// reaches.
    fn tear(&self, previous: &Object, headers: bucketload_store::Headers) -> S3Result<()> {
        let (bucket, key) = (self.target.bucket(), self.target.key());
        let current = self.store().open(bucket, key)?;
        let size = current.info().size;
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        current.read_at(0, &mut bytes)?;
        let half = bytes.len() / 2;
        previous.read_at(half as u64, &mut bytes[half..])?;
        let mut upload = self.store().put(bucket, key, &PutOptions::sized(size))?;
        upload.write(&bytes)?;
        upload.commit(Commit {
            headers,
            ..Commit::default()
        })?;
        Ok(())
    }

    /// Deletes an object; a rule may bring it back later.
    pub(crate) fn delete(
        &self,
        operation: Operation,
        key: &str,
        version: Option<VersionId>,
        condition: &Condition,
        guard: Guard<'_>,
    ) -> S3Result<Removed> {
        let (server, bucket) = (self.server, self.target.bucket());
        let faults = &server.faults;
        if operation == Operation::DeleteMany && server.config.quirks.has(Quirk::DeleteManySilent) {
            return Ok(Removed::default());
        }
        if faults.is_empty() || version.is_some() {
            return Ok(self
                .store()
                .remove(bucket, key, version, condition, guard)?);
        }
        self.keep_previous(key);
        let lag = faults.longest_lag();
        let deleted = faults
            .may_resurrect(operation, key)
            .then(|| self.store().open(bucket, key).ok())
            .flatten();
        let listed = lag.and_then(|_| self.store().head(bucket, key).ok());
        let removed = self.store().remove(bucket, key, None, condition, guard)?;
        if let (Some(lag), Some(info)) = (lag, listed) {
            let entry = ListEntry::of(key.to_owned(), &info);
            server.history.changes.vanished(bucket, entry, lag);
        }
        if let Some(object) = deleted
            && let Some(age) = faults.resurrects(operation, key)
        {
            server
                .history
                .resurrections
                .schedule(bucket, key, object, age);
        }
        Ok(removed)
    }

    /// Brings the target object of a read back, if it was deleted and is due.
    pub(crate) fn resurrect_due(&self) {
        let server = self.server;
        if !server.faults.is_empty() {
            let (bucket, wanted) = (self.target.bucket(), self.target.key());
            let deleted = &server.history.resurrections;
            deleted.restore_due(self.store(), bucket, |key| key == wanted);
        }
    }

    /// A page of the versions of a bucket.
    pub(crate) fn version_page(
        &self,
        request: &ListVersionsRequest<'_>,
    ) -> S3Result<VersionListing> {
        let (server, bucket) = (self.server, self.target.bucket());
        if !server.faults.is_empty() {
            let deleted = &server.history.resurrections;
            if self.store().versioning(bucket)? == Versioning::Off {
                let page = self.page(Operation::ListVersions, &request.keys)?;
                return Ok(page.into());
            }
            deleted.restore_due(self.store(), bucket, |key| {
                key.starts_with(request.keys.prefix)
            });
        }
        Ok(self.store().list_versions(bucket, request)?)
    }

    /// A page of a listing; a rule may show it as it was some time ago, and a quirk may bend it.
    pub(crate) fn page(
        &self,
        operation: Operation,
        request: &ListRequest<'_>,
    ) -> S3Result<Listing> {
        let (server, bucket) = (self.server, self.target.bucket());
        if server.faults.is_empty() && server.config.quirks.is_empty() {
            return Ok(self.store().list(bucket, request)?);
        }
        let deleted = &server.history.resurrections;
        deleted.restore_due(self.store(), bucket, |key| key.starts_with(request.prefix));
        let mut listing = self.store().list(bucket, request)?;
        if let Some(lag) = server.faults.lag(operation, request.prefix) {
            server
                .history
                .changes
                .undo(bucket, request, &mut listing, lag);
        }
        quirks::listing(server, bucket, request, &mut listing);
        Ok(listing)
    }
}
