//! DeleteObject and DeleteObjects.

use super::{Ctx, conditions};
use crate::error::{Code, S3Result};
use crate::headers::Headers;
use crate::respond::Body;
use crate::router::Operation;
use crate::xml_in;
use bucketload_store::Condition;

/// DeleteObject.
pub(crate) fn one(ctx: &mut Ctx<'_>, headers: &Headers<'_, '_>) -> S3Result<Body> {
    let condition = conditions::of_write(headers)?;
    ctx.delete(Operation::Delete, ctx.target.key(), &condition)?;
    Ok(ctx.empty(204))
}

/// DeleteObjects: deletes each key and lists the failures.
pub(crate) fn many(ctx: &mut Ctx<'_>, input: &[u8]) -> S3Result<Body> {
    let deletion = xml_in::deletion(input)?;
    ctx.require_bucket()?;
    let mut failures = Vec::new();
    for (number, (key, version)) in deletion.objects.iter().enumerate() {
        let outcome = if version.is_empty() || version == "null" {
            ctx.delete(Operation::DeleteMany, key, &Condition::None)
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
    Ok(doc.finish())
}
