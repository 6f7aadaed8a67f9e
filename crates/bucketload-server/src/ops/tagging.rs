//! Object tags.

use super::Ctx;
use crate::error::S3Result;
use crate::respond::Body;
use crate::tags;
use bucketload_store::Tags;

/// GetObjectTagging.
pub(crate) fn get(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    let tags = match ctx.version()? {
        None => ctx.store().tags(ctx.target.bucket(), ctx.target.key())?,
        Some(_) => ctx.object_info()?.tags,
    };
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
    set(ctx, tags)?;
    Ok(ctx.empty(200))
}

/// DeleteObjectTagging.
pub(crate) fn delete(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    set(ctx, Tags::new())?;
    Ok(ctx.empty(204))
}

fn set(ctx: &Ctx<'_>, tags: Tags) -> S3Result<()> {
    let (bucket, key) = (ctx.target.bucket(), ctx.target.key());
    let Some(version) = ctx.version()? else {
        return Ok(ctx.store().set_tags(bucket, key, tags)?);
    };
    let mut tags = Some(tags);
    ctx.store()
        .amend(bucket, key, Some(version), &mut |_, old| {
            *old = tags.take().unwrap_or_default();
            Ok(())
        })?;
    Ok(())
}
