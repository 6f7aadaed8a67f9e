//! The configurations of buckets. `versioning` and `object-lock` change what the store does; the other
//! ones that can be set are documents that clients get back. Of those, `encryption` names the default
//! of new objects, `publicAccessBlock` and `ownershipControls` restrict ACLs, `policy` says what is open to
//! requests without a signature, and `cors` what web pages of other sites may do; nothing acts on the others.

use std::sync::atomic::Ordering::Relaxed;

use super::{Ctx, acl, cors, lifecycle, lock, policy, sse};
use crate::error::{Code, S3Error, S3Result};
use crate::respond::Body;
use crate::router::BUCKET_CONFIGS;
use crate::tags;
use crate::xml_in::{malformed, walk};
use bucketload_store::Versioning;

/// The documents that are kept as they come, each with its root element. A policy is JSON.
const KEPT: [(&str, &str); 7] = [
    (cors::DOCUMENT, "CORSConfiguration"),
    (sse::DOCUMENT, "ServerSideEncryptionConfiguration"),
    (lifecycle::DOCUMENT, "LifecycleConfiguration"),
    (acl::OWNERSHIP, "OwnershipControls"),
    (policy::DOCUMENT, ""),
    (acl::BLOCK, "PublicAccessBlockConfiguration"),
    ("tagging", "Tagging"),
];

/// The configuration that a request is about, and the error that reports its absence.
fn named(ctx: &Ctx<'_>) -> S3Result<(&'static str, Option<Code>)> {
    let config = BUCKET_CONFIGS.iter().find(|(name, _)| ctx.target.has(name));
    config.copied().ok_or_else(|| Code::NotImplemented.into())
}

/// GET of a bucket's configuration.
pub(crate) fn get(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    ctx.require_bucket()?;
    let (name, missing) = named(ctx)?;
    let bucket = ctx.target.bucket();
    if name == "acl" {
        return acl::of_bucket(ctx);
    }
    if let Some(document) = ctx.store().document(bucket, name)? {
        let kind: &[u8] = match name {
            "policy" => b"application/json",
            _ => b"application/xml",
        };
        ctx.head.start(200).header("Content-Type", kind);
        ctx.document.clear();
        ctx.document.extend_from_slice(&document);
        return Ok(Body::Document);
    }
    if let Some(code) = missing {
        return Err(code.into());
    }
    Ok(match name {
        "accelerate" => ctx.xml("AccelerateConfiguration").finish(),
        "logging" => ctx.xml("BucketLoggingStatus").finish(),
        "notification" => ctx.xml("NotificationConfiguration").finish(),
        "requestPayment" => {
            let mut doc = ctx.xml("RequestPaymentConfiguration");
            doc.text("Payer", "BucketOwner");
            doc.finish()
        }
        _ => {
            let state = ctx.store().versioning(bucket)?;
            let mut doc = ctx.xml("VersioningConfiguration");
            match state {
                Versioning::Off => {}
                Versioning::Enabled => drop(doc.text("Status", "Enabled")),
                Versioning::Suspended => drop(doc.text("Status", "Suspended")),
            }
            doc.finish()
        }
    })
}

/// PUT of a bucket's configuration.
pub(crate) fn put(ctx: &mut Ctx<'_>, input: &[u8]) -> S3Result<Body> {
    ctx.require_bucket()?;
    let (name, _) = named(ctx)?;
    match name {
        "versioning" => put_versioning(ctx, input)?,
        "object-lock" => lock::put_rule(ctx, input)?,
        _ => {
            let Some((_, root)) = KEPT.iter().find(|(kept, _)| *kept == name) else {
                return Err(S3Error::new(
                    Code::NotImplemented,
                    format!("The bucket configuration {name} cannot be set."),
                ));
            };
            check(ctx, name, root, input)?;
            let document = match name {
                lifecycle::DOCUMENT => lifecycle::named(input),
                _ => input.to_vec(),
            };
            ctx.store()
                .set_document(ctx.target.bucket(), name, Some(document))?;
            if name == sse::DOCUMENT {
                ctx.server.default_encryption.store(true, Relaxed);
            }
        }
    }
    Ok(ctx.empty(if matches!(name, "policy" | "tagging") {
        204
    } else {
        200
    }))
}

/// DELETE of a bucket's configuration: succeeds also if there is none, as in S3.
pub(crate) fn delete(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    ctx.require_bucket()?;
    let (name, _) = named(ctx)?;
    if matches!(name, "object-lock" | "versioning" | "acl") {
        return Err(Code::MethodNotAllowed.into());
    }
    ctx.store().set_document(ctx.target.bucket(), name, None)?;
    Ok(ctx.empty(204))
}

fn put_versioning(ctx: &Ctx<'_>, input: &[u8]) -> S3Result<()> {
    let mut status = None;
    walk(input, |path, text| {
        if path == ["VersioningConfiguration", "Status"] {
            status = Some(text.get());
        }
        Ok(())
    })?;
    let state = match status.as_deref().map(str::trim) {
        Some("Enabled") => Versioning::Enabled,
        Some("Suspended") => Versioning::Suspended,
        _ => return Err(malformed()),
    };
    let bucket = ctx.target.bucket();
    let locked = ctx.store().document(bucket, lock::DOCUMENT)?.is_some();
    if locked && state != Versioning::Enabled {
        return Err(S3Error::new(
            Code::InvalidBucketState,
            "The versioning of a bucket with object lock cannot be suspended.",
        ));
    }
    Ok(ctx.store().set_versioning(bucket, state)?)
}

/// Checks the form of a document before it is kept.
fn check(ctx: &Ctx<'_>, name: &str, root: &str, input: &[u8]) -> S3Result<()> {
    match name {
        policy::DOCUMENT => return policy::check(ctx, input),
        "tagging" => return tags::bucket_tagging(input).map(drop),
        lifecycle::DOCUMENT => return lifecycle::check(input),
        cors::DOCUMENT => return cors::check(input),
        acl::OWNERSHIP => return acl::check_ownership(ctx, input),
        sse::DOCUMENT => return sse::check_default(input),
        _ => {}
    }
    let mut seen = false;
    walk(input, |path, _| {
        seen |= path == [root];
        Ok(())
    })?;
    if seen { Ok(()) } else { Err(malformed()) }
}
