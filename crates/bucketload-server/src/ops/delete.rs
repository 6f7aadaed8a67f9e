//! DeleteObject and DeleteObjects.

use super::Ctx;
use super::conditions::DeleteConditions;
use crate::error::{Code, S3Result};
use crate::headers::Headers;
use crate::respond::Body;
use crate::router::Operation;
use crate::xml_in::{self, ObjectToDelete};

/// DeleteObject.
pub(crate) fn one(ctx: &mut Ctx<'_>, headers: &Headers<'_, '_>) -> S3Result<Body> {
    let key = ctx.target.key();
    let condition = DeleteConditions::of(headers)?.resolve(ctx, key)?;
    ctx.delete(Operation::Delete, key, &condition)?;
    Ok(ctx.empty(204))
}

fn one_of_many(ctx: &Ctx<'_>, object: &mut ObjectToDelete) -> S3Result<()> {
    if !matches!(&*object.version, "" | "null") {
        return Err(Code::NoSuchVersion.into());
    }
    let conditions = std::mem::take(&mut object.conditions);
    let condition = conditions.resolve(ctx, &object.key)?;
    ctx.delete(Operation::DeleteMany, &object.key, &condition)
}

/// DeleteObjects: deletes each key and lists the failures.
pub(crate) fn many(ctx: &mut Ctx<'_>, input: &[u8]) -> S3Result<Body> {
    let mut deletion = xml_in::deletion(input)?;
    ctx.require_bucket()?;
    let mut failures = Vec::new();
    for (number, object) in deletion.objects.iter_mut().enumerate() {
        if let Err(error) = one_of_many(ctx, object) {
            failures.push((number, error));
        }
    }
    let mut doc = ctx.xml("DeleteResult");
    let mut failed = failures.iter().peekable();
    for (number, ObjectToDelete { key, version, .. }) in deletion.objects.iter().enumerate() {
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
