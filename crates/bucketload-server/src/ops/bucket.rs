//! Buckets and their configurations, of which there are none.

use super::Ctx;
use crate::error::{Code, S3Error, S3Result};
use crate::respond::Body;
use crate::router::BUCKET_CONFIGS;
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
    let region = &ctx.shared.config.region;
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
    doc.finish();
    Ok(Body::Document)
}

/// CreateBucket; the body may name the region.
pub(crate) fn create(ctx: &mut Ctx<'_>, input: &[u8]) -> S3Result<Body> {
    let region = &ctx.shared.config.region;
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
    ctx.store().head_bucket(ctx.target.bucket())?;
    ctx.head
        .start(200)
        .header("x-amz-bucket-region", ctx.shared.config.region.as_bytes());
    Ok(Body::Empty)
}

/// DeleteBucket.
pub(crate) fn delete(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    ctx.store().delete_bucket(ctx.target.bucket())?;
    Ok(ctx.empty(204))
}

/// GetBucketLocation; the classic region is an empty element.
pub(crate) fn location(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    ctx.store().head_bucket(ctx.target.bucket())?;
    let region = &ctx.shared.config.region;
    ctx.head
        .start(200)
        .header("Content-Type", b"application/xml");
    let text = if region == "us-east-1" { "" } else { region };
    crate::xml::Doc::leaf(ctx.document, "LocationConstraint", text);
    Ok(Body::Document)
}

/// What a bucket without any configuration answers to GET of a subresource.
pub(crate) fn config(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    ctx.store().head_bucket(ctx.target.bucket())?;
    let Some((name, missing)) = BUCKET_CONFIGS.iter().find(|(name, _)| ctx.target.has(name)) else {
        return Err(Code::NotImplemented.into());
    };
    if let Some(code) = missing {
        return Err((*code).into());
    }
    match *name {
        "acl" => private_acl(ctx),
        "accelerate" => ctx.xml("AccelerateConfiguration").finish(),
        "logging" => ctx.xml("BucketLoggingStatus").finish(),
        "notification" => ctx.xml("NotificationConfiguration").finish(),
        "requestPayment" => {
            let mut doc = ctx.xml("RequestPaymentConfiguration");
            doc.text("Payer", "BucketOwner");
            doc.finish();
        }
        _ => ctx.xml("VersioningConfiguration").finish(),
    }
    Ok(Body::Document)
}

/// Deleting a configuration that is not there succeeds, as in S3.
pub(crate) fn delete_config(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    ctx.store().head_bucket(ctx.target.bucket())?;
    Ok(ctx.empty(204))
}

/// PutBucketAcl and PutObjectAcl: `private` changes nothing, all else is refused.
pub(crate) fn put_acl(ctx: &mut Ctx<'_>, canned: bool) -> S3Result<Body> {
    let (bucket, key) = (ctx.target.bucket(), ctx.target.key());
    if key.is_empty() {
        ctx.store().head_bucket(bucket)?;
    } else {
        ctx.store().head(bucket, key)?;
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

/// Writes the ACL that everything has.
pub(crate) fn private_acl(ctx: &mut Ctx<'_>) {
    const GRANTEE: &str = "Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"CanonicalUser\"";
    let mut doc = ctx.xml("AccessControlPolicy");
    doc.owner("Owner")
        .open("AccessControlList")
        .open("Grant")
        .open(GRANTEE);
    doc.text("ID", crate::xml::OWNER_ID)
        .text("DisplayName", crate::xml::OWNER_NAME);
    doc.close("Grantee")
        .text("Permission", "FULL_CONTROL")
        .close("Grant");
    doc.close("AccessControlList");
    doc.finish();
}
