//! DeleteObject and DeleteObjects.

use super::{Ctx, conditions};
use crate::Condition;
use crate::server::error::{Code, S3Error, S3Result};
use crate::server::headers::Headers;
use crate::server::respond::Body;
use crate::server::xml_in;

/// DeleteObject.
pub(crate) fn one(ctx: &mut Ctx<'_>, headers: &Headers<'_, '_>) -> S3Result<Body> {
    let condition = conditions::of_write(headers)?;
    let (bucket, key) = (ctx.target.bucket(), ctx.target.key());
    ctx.keep_former(key);
    ctx.store().delete(bucket, key, &condition)?;
    Ok(ctx.empty(204))
}

/// DeleteObjects: each key by itself, failures listed.
pub(crate) fn many(ctx: &mut Ctx<'_>, input: &[u8]) -> S3Result<Body> {
    let deletion = xml_in::deletion(input)?;
    let (store, bucket) = (ctx.store(), ctx.target.bucket());
    store.head_bucket(bucket)?;
    let mut failures = Vec::new();
    for (number, (key, version)) in deletion.objects.iter().enumerate() {
        let outcome = if version.is_empty() || version == "null" {
            ctx.keep_former(key);
            store
                .delete(bucket, key, &Condition::None)
                .map(drop)
                .map_err(S3Error::from)
        } else {
            Err(Code::NoSuchVersion.into())
        };
        if let Err(error) = outcome {
            failures.push((number, error));
        }
    }
    let mut doc = ctx.xml("DeleteResult");
    let mut failed = failures.iter().peekable();
    for (number, (key, version)) in deletion.objects.iter().enumerate() {
        if let Some((_, error)) = failed.next_if(|(at, _)| *at == number) {
            doc.open("Error").text("Key", key);
            if !version.is_empty() {
                doc.text("VersionId", version);
            }
            doc.text("Code", error.code.name())
                .text("Message", error.message())
                .close("Error");
        } else if !deletion.quiet {
            doc.open("Deleted").text("Key", key);
            if !version.is_empty() {
                doc.text("VersionId", version);
            }
            doc.close("Deleted");
        }
    }
    doc.finish();
    Ok(Body::Document)
}
