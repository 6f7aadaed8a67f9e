//! DeleteObject and DeleteObjects.

use super::conditions::DeleteConditions;
use super::{Ctx, lock, version_id};
use crate::error::S3Result;
use crate::headers::Headers;
use crate::respond::Body;
use crate::router::Operation;
use crate::xml_in::{self, ObjectToDelete};
use bucketload_store::Removed;

/// DeleteObject.
pub(crate) fn one(ctx: &mut Ctx<'_>, headers: &Headers<'_, '_>) -> S3Result<Body> {
    let key = ctx.target.key();
    let version = ctx.version()?;
    let condition = DeleteConditions::of(headers)?.resolve(ctx, key, version)?;
    let guard = lock::guard(lock::bypasses(headers));
    let removed = ctx.delete(Operation::Delete, key, version, &condition, &guard)?;
    ctx.head.start(204);
    if let Some(id) = removed.version {
        ctx.head.version(id);
    }
    if removed.marker {
        ctx.head.header("x-amz-delete-marker", b"true");
    }
    Ok(Body::Empty)
}

fn one_of_many(ctx: &Ctx<'_>, object: &mut ObjectToDelete, bypass: bool) -> S3Result<Removed> {
    let version = match &*object.version {
        "" => None,
        id => Some(version_id(id)?),
    };
    let conditions = std::mem::take(&mut object.conditions);
    let condition = conditions.resolve(ctx, &object.key, version)?;
    let guard = lock::guard(bypass);
    ctx.delete(
        Operation::DeleteMany,
        &object.key,
        version,
        &condition,
        &guard,
    )
}

/// DeleteObjects: deletes each key and lists the failures. `bypass` is the right to ignore governance.
pub(crate) fn many(ctx: &mut Ctx<'_>, input: &[u8], bypass: bool) -> S3Result<Body> {
    let mut deletion = xml_in::deletion(input)?;
    ctx.require_bucket()?;
    let mut outcomes = Vec::with_capacity(deletion.objects.len());
    for object in &mut deletion.objects {
        outcomes.push(one_of_many(ctx, object, bypass));
    }
    let mut doc = ctx.xml("DeleteResult");
    for (ObjectToDelete { key, version, .. }, outcome) in deletion.objects.iter().zip(&outcomes) {
        let removed = match outcome {
            Err(error) => {
                doc.open("Error").text("Key", key);
                if !version.is_empty() {
                    doc.text("VersionId", version);
                }
                doc.text("Code", error.code.name())
                    .text("Message", error.message())
                    .close("Error");
                continue;
            }
            Ok(removed) => removed,
        };
        if deletion.quiet {
            continue;
        }
        doc.open("Deleted").text("Key", key);
        if !version.is_empty() {
            doc.text("VersionId", version);
        }
        if let (true, Some(id)) = (removed.marker, removed.version) {
            doc.flag("DeleteMarker", true)
                .text("DeleteMarkerVersionId", &id.to_string());
        }
        doc.close("Deleted");
    }
    Ok(doc.finish())
}
