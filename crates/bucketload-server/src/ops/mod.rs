//! The operations: one function each, from a checked request to a response.
//!
//! [`dispatch`] runs the operations that have no request body. `begin` starts those with a body, and
//! `pending` finishes them.

use super::error::{Code, S3Result};
use super::headers::Headers;
use super::quirks::Quirk;
use super::respond::{Body, Head, ObjectBytes};
use super::router::Operation;
use super::thread::ServerState;
use super::uri::Target;
use super::xml::Doc;
use bucketload_store::{Object, ObjectInfo, Store, VersionId};

pub(crate) mod acl;
pub(crate) mod append;
pub(crate) mod archive;
pub(crate) mod bucket;
pub(crate) mod conditions;
pub(crate) mod config;
pub(crate) mod copy;
pub(crate) mod cors;
pub(crate) mod delete;
mod faulty;
pub(crate) mod form;
pub(crate) mod grants;
pub(crate) mod lifecycle;
pub(crate) mod list;
pub(crate) mod lock;
pub(crate) mod metadata;
pub(crate) mod multipart;
pub(crate) mod object;
pub(crate) mod policy;
pub(crate) mod range;
pub(crate) mod restore;
pub(crate) mod sse;
pub(crate) mod tagging;

/// The context of an operation.
pub(crate) struct Ctx<'a> {
    /// The server's configuration, store and faults.
    pub(crate) server: &'a ServerState,
    /// Bucket, key and parameters.
    pub(crate) target: &'a Target,
    /// The response's head.
    pub(crate) head: &'a mut Head,
    /// The response's document, if it has one.
    pub(crate) document: &'a mut Vec<u8>,
    /// The object bytes that the response sends, if any.
    pub(crate) object_bytes: &'a mut Option<ObjectBytes>,
}

impl<'a> Ctx<'a> {
    /// The store, borrowed for as long as the server state.
    pub(crate) fn store(&self) -> &'a dyn Store {
        &*self.server.store
    }

    /// The target object's metadata.
    ///
    /// # Errors
    /// The store's, if the bucket or the object does not exist.
    pub(crate) fn object_info(&self) -> S3Result<ObjectInfo> {
        let (bucket, key) = (self.target.bucket(), self.target.key());
        Ok(match self.version()? {
            None => self.store().head(bucket, key)?,
            Some(version) => {
                let object = self.store().open_version(bucket, key, version)?;
                object.info().clone()
            }
        })
    }

    /// The target object, or the version of it that the request names.
    ///
    /// # Errors
    /// The store's, if the bucket, the object or the version does not exist.
    pub(crate) fn open(&self) -> S3Result<Object> {
        let (bucket, key) = (self.target.bucket(), self.target.key());
        Ok(match self.version()? {
            None => self.store().open(bucket, key)?,
            Some(version) => self.store().open_version(bucket, key, version)?,
        })
    }

    /// The version that the request names.
    ///
    /// # Errors
    /// `NoSuchVersion` for an id that no store can have issued.
    pub(crate) fn version(&self) -> S3Result<Option<VersionId>> {
        self.target.param("versionId").map(version_id).transpose()
    }

    /// Makes sure that the target bucket exists.
    ///
    /// # Errors
    /// The store's, if it does not.
    pub(crate) fn require_bucket(&self) -> S3Result<()> {
        self.store().head_bucket(self.target.bucket())?;
        Ok(())
    }

    /// Starts a 200 response with an XML document whose root element is `root`.
    pub(crate) fn xml(&mut self, root: &'static str) -> Doc<'_> {
        self.head
            .start(200)
            .header("Content-Type", b"application/xml");
        Doc::new(self.document, root)
    }

    /// Starts a response without a body.
    pub(crate) fn empty(&mut self, status: u16) -> Body {
        self.head.start(status);
        Body::Empty
    }

    /// Keeps the version that a write or delete is about to replace, if reads may be stale.
    pub(crate) fn keep_previous(&self, key: &str) {
        let server = self.server;
        let stale = !server.faults.is_empty() && server.faults.keeps_history(key);
        if stale || server.config.quirks.has(Quirk::ReadStale) {
            let bucket = self.target.bucket();
            if let Ok(previous) = server.store.open(bucket, key) {
                server.history.keep(bucket, key, previous);
            }
        }
    }
}

/// Reads a version id.
///
/// # Errors
/// `NoSuchVersion` for an id that no store can have issued.
pub(crate) fn version_id(text: &str) -> S3Result<VersionId> {
    text.parse().map_err(|_| Code::NoSuchVersion.into())
}

/// Runs an operation that has no request body.
pub(crate) fn dispatch(
    operation: Operation,
    ctx: &mut Ctx<'_>,
    headers: &Headers<'_, '_>,
) -> S3Result<Body> {
    match operation {
        Operation::Get => object::get(ctx, headers),
        Operation::Head => object::head(ctx, headers),
        Operation::GetAttributes => object::attributes(ctx, headers),
        Operation::GetAcl => acl::of_object(ctx),
        Operation::GetObjectLock => lock::get(ctx),
        Operation::Delete => delete::one(ctx, headers),
        Operation::Copy => copy::object(ctx, headers),
        Operation::UploadPartCopy => copy::part(ctx, headers),
        Operation::List => list::v2(ctx),
        Operation::ListV1 => list::v1(ctx),
        Operation::ListVersions => list::versions(ctx),
        Operation::CreateUpload => multipart::create(ctx, headers),
        Operation::AbortUpload => multipart::abort(ctx),
        Operation::ListParts => multipart::list_parts(ctx),
        Operation::ListUploads => multipart::list_uploads(ctx),
        Operation::GetTagging => tagging::get(ctx),
        Operation::DeleteTagging => tagging::delete(ctx),
        Operation::ListBuckets => bucket::list(ctx),
        Operation::HeadBucket => bucket::head(ctx),
        Operation::DeleteBucket => bucket::delete(ctx),
        Operation::GetLocation => bucket::location(ctx),
        Operation::GetBucketConfig => config::get(ctx),
        Operation::DeleteBucketConfig => config::delete(ctx),
        Operation::Preflight => cors::preflight(ctx, headers),
        Operation::Put
        | Operation::UploadPart
        | Operation::DeleteMany
        | Operation::CompleteUpload
        | Operation::PutTagging
        | Operation::Restore
        | Operation::PutAcl
        | Operation::PostForm
        | Operation::PutBucketConfig
        | Operation::PutObjectLock
        | Operation::MakeBucket
        | Operation::Stats => {
            unreachable!("{} has a body or was handled before", operation.name())
        }
    }
}
