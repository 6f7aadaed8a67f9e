//! What the operations do: one function for each, from a checked request to an answer.
//!
//! `dispatch` carries out operations without a request body; those with one are begun by
//! `intake` and end in `finish`.

use super::error::S3Result;
use super::headers::Headers;
use super::respond::{Body, Extract, Head};
use super::router::Operation;
use super::thread::Shared;
use super::uri::Target;
use super::xml::Doc;
use bucketload_store::Store;

pub(crate) mod bucket;
pub(crate) mod conditions;
pub(crate) mod copy;
pub(crate) mod delete;
mod injured;
pub(crate) mod list;
pub(crate) mod metadata;
pub(crate) mod multipart;
pub(crate) mod object;
pub(crate) mod range;
pub(crate) mod restore;
pub(crate) mod tagging;

/// What every operation works with.
pub(crate) struct Ctx<'a> {
    /// The server's configuration, store and faults.
    pub(crate) shared: &'a Shared,
    /// Bucket, key and parameters.
    pub(crate) target: &'a Target,
    /// The answer's head.
    pub(crate) head: &'a mut Head,
    /// The answer's document, where it has one.
    pub(crate) document: &'a mut Vec<u8>,
    /// The object's bytes that the answer sends, where it does.
    pub(crate) extract: &'a mut Option<Extract>,
}

impl<'a> Ctx<'a> {
    /// The store, for as long as the server lives.
    pub(crate) fn store(&self) -> &'a dyn Store {
        &*self.shared.store
    }

    /// Starts a 200 with an XML document of root element `root`.
    pub(crate) fn xml(&mut self, root: &'static str) -> Doc<'_> {
        self.head
            .start(200)
            .header("Content-Type", b"application/xml");
        Doc::new(self.document, root)
    }

    /// Starts an answer that has nothing but a head.
    pub(crate) fn empty(&mut self, status: u16) -> Body {
        self.head.start(status);
        Body::Empty
    }

    /// Keeps the version that a write or delete is about to replace, where stale reads are
    /// injected.
    pub(crate) fn keep_former(&self, key: &str) {
        let shared = self.shared;
        if !shared.faults.is_empty() && shared.faults.keeps_history(key) {
            let bucket = self.target.bucket();
            if let Ok(former) = shared.store.open(bucket, key) {
                shared.history.keep(bucket, key, former);
            }
        }
    }
}

/// Carries out an operation that needs no request body.
pub(crate) fn dispatch(
    operation: Operation,
    ctx: &mut Ctx<'_>,
    headers: &Headers<'_, '_>,
) -> S3Result<Body> {
    match operation {
        Operation::Get => object::get(ctx, headers),
        Operation::Head => object::head(ctx, headers),
        Operation::GetAttributes => object::attributes(ctx, headers),
        Operation::GetAcl => object::acl(ctx),
        Operation::GetObjectLock => object::lock(ctx),
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
        Operation::GetBucketConfig => bucket::config(ctx),
        Operation::DeleteBucketConfig => bucket::delete_config(ctx),
        Operation::Put
        | Operation::UploadPart
        | Operation::DeleteMany
        | Operation::CompleteUpload
        | Operation::PutTagging
        | Operation::Restore
        | Operation::PutAcl
        | Operation::MakeBucket
        | Operation::Stats => {
            unreachable!("{} takes a body or is answered before", operation.name())
        }
    }
}
