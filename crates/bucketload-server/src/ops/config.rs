//! The configurations of buckets. `versioning` and `object-lock` change what the store does; the other
//! ones that can be set are documents that clients get back. Of those, `encryption` names the default
//! of new objects, and `publicAccessBlock` restricts ACLs; nothing acts on the others.

use std::sync::atomic::Ordering::Relaxed;

use super::{Ctx, acl, lock, sse};
use crate::error::{Code, S3Error, S3Result};
use crate::respond::Body;
use crate::router::BUCKET_CONFIGS;
use crate::tags;
use crate::xml_in::{malformed, walk};
use bucketload_store::Versioning;

/// The documents that are kept as they come, each with its root element. A policy is JSON.
const KEPT: [(&str, &str); 7] = [
    ("cors", "CORSConfiguration"),
    (sse::DOCUMENT, "ServerSideEncryptionConfiguration"),
    ("lifecycle", "LifecycleConfiguration"),
    ("ownershipControls", "OwnershipControls"),
    ("policy", ""),
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
            check(name, root, input)?;
            ctx.store()
                .set_document(ctx.target.bucket(), name, Some(input.to_vec()))?;
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
fn check(name: &str, root: &str, input: &[u8]) -> S3Result<()> {
    match name {
        "policy" => {
            let policy: Option<serde_json::Value> = serde_json::from_slice(input).ok();
            let stated = policy.is_some_and(|policy| policy.get("Statement").is_some());
            return if stated {
                Ok(())
            } else {
                Err(Code::MalformedPolicy.into())
            };
        }
        "tagging" => return tags::bucket_tagging(input).map(drop),
        "lifecycle" => return lifecycle(input),
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

/// Checks the rules of a lifecycle: a status each, identifiers that differ, and days and dates that
/// can be.
fn lifecycle(input: &[u8]) -> S3Result<()> {
    let invalid = |message: &'static str| S3Error::new(Code::InvalidArgument, message);
    let mut ids: Vec<String> = Vec::new();
    let (mut rules, mut status) = (0, false);
    walk(input, |path, text| {
        let ["LifecycleConfiguration", "Rule", rest @ ..] = path else {
            return Ok(());
        };
        match *rest {
            [] => {
                rules += 1;
                if !std::mem::take(&mut status) {
                    return Err(malformed());
                }
            }
            ["Status"] if matches!(text.get().trim(), "Enabled" | "Disabled") => status = true,
            ["Status"] => return Err(malformed()),
            ["ID"] => {
                let id = text.get();
                if id.chars().count() > 255 {
                    return Err(invalid("The ID of a rule must not exceed 255 characters."));
                }
                if ids.contains(&id) {
                    return Err(invalid("The IDs of two rules must differ."));
                }
                ids.push(id);
            }
            [_, "Days" | "NoncurrentDays" | "DaysAfterInitiation"] => {
                let days = text.get().trim().parse::<i64>().map_err(|_| malformed())?;
                if days < 0 || days == 0 && rest[0] == "Expiration" {
                    return Err(invalid("The days of a rule must be a positive number."));
                }
            }
            [_, "Date"] => {
                let second = bucketload_s3::date::parse_iso(text.get().trim());
                let second = second.ok_or_else(malformed)?;
                if second % 86_400 != 0 {
                    return Err(invalid("The date of a rule must be midnight."));
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    if rules == 0 { Err(malformed()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifecycles_are_checked() {
        let read = |rules: &str| {
            let body = format!("<LifecycleConfiguration>{rules}</LifecycleConfiguration>");
            lifecycle(body.as_bytes()).map_err(|error| error.code)
        };
        let rule = |inner: &str| format!("<Rule><Status>Enabled</Status>{inner}</Rule>");
        assert_eq!(
            read(&rule("<ID>a</ID><Expiration><Days>1</Days></Expiration>")),
            Ok(())
        );
        let twice = rule("<ID>a</ID>").repeat(2);
        let long = rule(&format!("<ID>{}</ID>", "a".repeat(256)));
        let zero = rule("<Expiration><Days>0</Days></Expiration>");
        let noon = rule("<Expiration><Date>2030-01-01T12:00:00Z</Date></Expiration>");
        for bad in [&twice, &long, &zero, &noon] {
            assert_eq!(read(bad), Err(Code::InvalidArgument), "{bad}");
        }
        for bad in [
            "",
            "<Rule/>",
            "<Rule><Status>enabled</Status></Rule>",
            &rule("<Expiration><Date>soon</Date></Expiration>"),
        ] {
            assert_eq!(read(bad), Err(Code::MalformedXML), "{bad}");
        }
    }
}
