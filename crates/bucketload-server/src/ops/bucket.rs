//! Buckets. They have no configurations, so reading one reports its absence.

use super::Ctx;
use crate::error::{Code, S3Error, S3Result};
use crate::respond::Body;
use crate::router::BUCKET_CONFIGS;
use crate::xml::{Doc, OWNER_ID, OWNER_NAME};
use crate::xml_in;

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

/// CreateBucket; the body may name the region.
pub(crate) fn create(ctx: &mut Ctx<'_>, input: &[u8]) -> S3Result<Body> {
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
    ctx.store().create_bucket(bucket)?;
    ctx.head
        .start(200)
        .header("Location", ["/", bucket].concat().as_bytes());
    Ok(Body::Empty)
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

/// GET of a bucket's configuration: the response of a bucket without one.
pub(crate) fn config(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    ctx.require_bucket()?;
    let Some((name, missing)) = BUCKET_CONFIGS.iter().find(|(name, _)| ctx.target.has(name)) else {
        return Err(Code::NotImplemented.into());
    };
    if let Some(code) = missing {
        return Err((*code).into());
    }
    Ok(match *name {
        "acl" => private_acl(ctx),
        "accelerate" => ctx.xml("AccelerateConfiguration").finish(),
        "logging" => ctx.xml("BucketLoggingStatus").finish(),
        "notification" => ctx.xml("NotificationConfiguration").finish(),
        "requestPayment" => {
            let mut doc = ctx.xml("RequestPaymentConfiguration");
            doc.text("Payer", "BucketOwner");
            doc.finish()
        }
        _ => ctx.xml("VersioningConfiguration").finish(),
    })
}

/// DELETE of a bucket's configuration: succeeds although there is none, as in S3.
pub(crate) fn delete_config(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    ctx.require_bucket()?;
    Ok(ctx.empty(204))
}

/// PutBucketAcl and PutObjectAcl: `private` changes nothing; everything else is refused.
pub(crate) fn put_acl(ctx: &mut Ctx<'_>, canned: bool) -> S3Result<Body> {
    if ctx.target.key().is_empty() {
        ctx.require_bucket()?;
    } else {
        ctx.object_info()?;
    }
    if canned {
        Ok(ctx.empty(200))
    } else {
        Err(S3Error::new(
            Code::NotImplemented,
            "Only the canned ACL 'private' is implemented.",
        ))
    }
}

/// The ACL of every bucket and object.
pub(crate) fn private_acl(ctx: &mut Ctx<'_>) -> Body {
    const GRANTEE: &str = "Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"CanonicalUser\"";
    let mut doc = ctx.xml("AccessControlPolicy");
    doc.owner("Owner")
        .open("AccessControlList")
        .open("Grant")
        .open(GRANTEE);
    doc.text("ID", OWNER_ID).text("DisplayName", OWNER_NAME);
    doc.close("Grantee")
        .text("Permission", "FULL_CONTROL")
        .close("Grant");
    doc.close("AccessControlList");
    doc.finish()
}
