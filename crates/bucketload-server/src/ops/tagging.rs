//! Object tags.

use super::Ctx;
use crate::error::S3Result;
use crate::respond::Body;
use crate::tags;
use bucketload_store::Tags;

/// GetObjectTagging.
pub(crate) fn get(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    let tags = ctx.store().tags(ctx.target.bucket(), ctx.target.key())?;
    let mut doc = ctx.xml("Tagging");
    doc.open("TagSet");
    for (key, value) in &tags {
        doc.open("Tag")
            .text("Key", key)
            .text("Value", value)
            .close("Tag");
    }
    doc.close("TagSet");
    Ok(doc.finish())
}

/// PutObjectTagging.
pub(crate) fn put(ctx: &mut Ctx<'_>, input: &[u8]) -> S3Result<Body> {
    let tags = tags::tagging(input)?;
    ctx.store()
        .set_tags(ctx.target.bucket(), ctx.target.key(), tags)?;
    Ok(ctx.empty(200))
}

/// DeleteObjectTagging.
pub(crate) fn delete(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    ctx.store()
        .set_tags(ctx.target.bucket(), ctx.target.key(), Tags::new())?;
    Ok(ctx.empty(204))
}
