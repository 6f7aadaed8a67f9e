//! Buckets. `config` has their configurations.

use super::grants::Asked;
use super::{Ctx, acl, lock};
use crate::error::{Code, S3Error, S3Result};
use crate::headers::{Headers, Name};
use crate::respond::Body;
use crate::xml::Doc;
use crate::xml_in;
use bucketload_store::{StoreError, Versioning};

/// ListBuckets, with `prefix`, `max-buckets` and `continuation-token`.
pub(crate) fn list(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    let buckets = ctx.store().list_buckets()?;
    let target = ctx.target;
    let prefix = target.param("prefix").unwrap_or_default();
    let max = match target.param("max-buckets") {
        None => usize::MAX,
        Some(text) => text
            .parse()
            .ok()
            .filter(|n| (1..=10_000).contains(n))
            .ok_or_else(|| {
                S3Error::new(
                    Code::InvalidArgument,
                    "The parameter max-buckets must be between 1 and 10000.",
                )
            })?,
    };
    let after = match target.param("continuation-token") {
        None => String::new(),
        Some(token) => super::list::decode_token(token)?,
    };
    let wanted =
        |name: &str| name.starts_with(prefix) && (after.is_empty() || name > after.as_str());
    let mut page: Vec<_> = buckets
        .iter()
        .filter(|bucket| wanted(&bucket.name))
        .collect();
    let more = page.len() > max;
    page.truncate(max);
    let region = &ctx.server.config.region;
    let mut doc = ctx.xml("ListAllMyBucketsResult");
    doc.owner("Owner").open("Buckets");
    for bucket in &page {
        doc.open("Bucket")
            .text("Name", &bucket.name)
            .time("CreationDate", bucket.created);
        doc.text("BucketRegion", region).close("Bucket");
    }
    doc.close("Buckets");
    if let (true, Some(last)) = (more, page.last()) {
        doc.text("ContinuationToken", &super::list::encode_token(&last.name));
    }
    if !prefix.is_empty() {
        doc.text("Prefix", prefix);
    }
    Ok(doc.finish())
}

/// The ownership of objects that the headers of CreateBucket name.
///
/// # Errors
/// `InvalidArgument` for an unknown one.
pub(crate) fn ownership(headers: &Headers<'_, '_>) -> S3Result<Option<&'static str>> {
    let Some(asked) = headers.text(Name::ObjectOwnership)? else {
        return Ok(None);
    };
    let known = acl::OWNERSHIPS.into_iter().find(|known| *known == asked);
    known.map(Some).ok_or_else(|| {
        S3Error::new(
            Code::InvalidArgument,
            "Invalid x-amz-object-ownership header.",
        )
    })
}

/// CreateBucket; the body may name the region. `locked` asks for object lock.
pub(crate) fn create(
    ctx: &mut Ctx<'_>,
    input: &[u8],
    locked: bool,
    asked: Option<Asked>,
    ownership: Option<&'static str>,
) -> S3Result<Body> {
    let region = &ctx.server.config.region;
    if let Some(location) = xml_in::location(input)?
        && location != *region
    {
        return Err(S3Error::new(
            Code::IllegalLocationConstraintException,
            format!(
                "The location constraint '{location}' is not the region '{region}' of this server."
            ),
        ));
    }
    let bucket = ctx.target.bucket();
    let store = ctx.store();
    match store.create_bucket(bucket) {
        // As S3 does in its first region only.
        Err(StoreError::BucketAlreadyOwnedByYou) if region == "us-east-1" => {
            return Ok(created(ctx));
        }
        outcome => outcome?,
    }
    let equipped = || {
        if locked {
            store.set_versioning(bucket, Versioning::Enabled)?;
            store.set_document(bucket, lock::DOCUMENT, Some(lock::CREATED.to_vec()))?;
        }
        // The list first: some leave no room for the ownership.
        acl::keep(ctx, asked.and_then(|asked| asked.list))?;
        let Some(ownership) = ownership else {
            return Ok(());
        };
        let controls = format!(
            "<OwnershipControls><Rule><ObjectOwnership>{ownership}</ObjectOwnership></Rule></OwnershipControls>"
        );
        let controls = controls.into_bytes();
        acl::check_ownership(ctx, &controls)?;
        Ok(store.set_document(bucket, acl::OWNERSHIP, Some(controls))?)
    };
    if let Err(error) = equipped() {
        // A bucket without what was asked for is not what the client wants.
        store.delete_bucket(bucket)?;
        return Err(error);
    }
    Ok(created(ctx))
}

fn created(ctx: &mut Ctx<'_>) -> Body {
    let location = ["/", ctx.target.bucket()].concat();
    ctx.head.start(200).header("Location", location.as_bytes());
    Body::Empty
}

/// HeadBucket.
pub(crate) fn head(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    ctx.require_bucket()?;
    ctx.head
        .start(200)
        .header("x-amz-bucket-region", ctx.server.config.region.as_bytes());
    Ok(Body::Empty)
}

/// DeleteBucket.
pub(crate) fn delete(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    ctx.store().delete_bucket(ctx.target.bucket())?;
    Ok(ctx.empty(204))
}

/// GetBucketLocation; `us-east-1` is an empty element, as in S3.
pub(crate) fn location(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    ctx.require_bucket()?;
    let region = &ctx.server.config.region;
    ctx.head
        .start(200)
        .header("Content-Type", b"application/xml");
    let text = if region == "us-east-1" { "" } else { region };
    Ok(Doc::leaf(ctx.document, "LocationConstraint", text))
}
