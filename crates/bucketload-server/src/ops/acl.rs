//! Access control lists: the canned ones are kept and read back as grants. Only the owner has keys, so
//! what matters of a grant is whether it is to everyone: it admits requests without a signature.

use super::Ctx;
use crate::error::{Code, S3Error, S3Result};
use crate::headers::{Headers, Name};
use crate::respond::Body;
use crate::router::Operation;
use crate::xml::{OWNER_ID, OWNER_NAME};
use crate::xml_in::walk;

/// Name of a bucket's document, and of an object's header, with the canned list.
const NAME: &str = Name::Acl.text();
/// The document that restricts public lists.
pub(crate) const BLOCK: &str = "publicAccessBlock";
/// Everyone, with or without keys.
const ALL: &str = "http://acs.amazonaws.com/groups/global/AllUsers";
/// Everyone with keys.
const KNOWN: &str = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers";
/// The service that writes access logs.
const LOGS: &str = "http://acs.amazonaws.com/groups/s3/LogDelivery";

/// The groups and their permissions in the canned list `canned`, beside the owner's; `None` if there
/// is no such list.
fn groups(canned: &str) -> Option<&'static [(&'static str, &'static str)]> {
    Some(match canned {
        "private" | "bucket-owner-read" | "bucket-owner-full-control" | "aws-exec-read" => &[],
        "public-read" => &[(ALL, "READ")],
        "public-read-write" => &[(ALL, "READ"), (ALL, "WRITE")],
        "authenticated-read" => &[(KNOWN, "READ")],
        "log-delivery-write" => &[(LOGS, "WRITE"), (LOGS, "READ_ACP")],
        _ => return None,
    })
}

/// Whether a request without a signature may do `operation`: the lists of bucket and object grant it
/// to everyone.
pub(crate) fn admits_everyone(ctx: &Ctx<'_>, operation: Operation) -> bool {
    if blocks(ctx, &["IgnorePublicAcls", "RestrictPublicBuckets"]) {
        return false;
    }
    let kept = ctx.store().document(ctx.target.bucket(), NAME);
    let kept = kept.ok().flatten();
    let bucket = kept.as_deref().unwrap_or_default();
    let reads = matches!(bucket, b"public-read" | b"public-read-write");
    match operation {
        Operation::Get | Operation::Head => match ctx.object_info() {
            Ok(info) => {
                let list = info.headers.get(NAME).unwrap_or_default();
                matches!(list, "public-read" | "public-read-write")
            }
            // Who may list may learn that there is no such object.
            Err(_) => reads,
        },
        Operation::HeadBucket
        | Operation::List
        | Operation::ListV1
        | Operation::ListVersions
        | Operation::ListUploads => reads,
        Operation::Put | Operation::Delete | Operation::DeleteMany => {
            bucket == b"public-read-write" && !ctx.target.has("versionId")
        }
        _ => false,
    }
}

/// The canned list that a request names, unless it is `private`.
///
/// # Errors
/// `InvalidArgument` for an unknown one, `NotImplemented` for grants to single users.
pub(crate) fn canned(headers: &Headers<'_, '_>) -> S3Result<Option<&'static str>> {
    let grants = |header: &httparse::Header<'_>| {
        let name = header.name.as_bytes().get(..12);
        name.is_some_and(|name| name.eq_ignore_ascii_case(b"x-amz-grant-"))
    };
    if headers.all().iter().any(grants) {
        return Err(S3Error::new(
            Code::NotImplemented,
            "Grants to single users are not implemented: the owner is the only user.",
        ));
    }
    let Some(asked) = headers.text(Name::Acl)? else {
        return Ok(None);
    };
    if groups(asked).is_none() {
        return Err(S3Error::new(
            Code::InvalidArgument,
            "The canned ACL is unknown.",
        ));
    }
    Ok(LISTS.iter().copied().find(|list| *list == asked))
}

/// The canned lists that grant something to others than the owner.
const LISTS: [&str; 4] = [
    "public-read",
    "public-read-write",
    "authenticated-read",
    "log-delivery-write",
];

/// PutBucketAcl and PutObjectAcl with a canned list; `None` is `private`.
pub(crate) fn put(ctx: &mut Ctx<'_>, list: Option<&'static str>) -> S3Result<Body> {
    check(ctx, list)?;
    let (bucket, key) = (ctx.target.bucket(), ctx.target.key());
    if key.is_empty() {
        keep(ctx, list)?;
        return Ok(ctx.empty(200));
    }
    let info = ctx.object_info()?;
    if list.is_some() || info.headers.get(NAME).is_some() {
        let version = ctx.version()?;
        ctx.store().amend(bucket, key, version, &mut |headers, _| {
            headers.set(NAME, list.map(str::to_owned));
            Ok(())
        })?;
    }
    ctx.head.start(200);
    if let Some(id) = info.headers.version() {
        ctx.head.version(id);
    }
    Ok(Body::Empty)
}

/// Whether the bucket's public access block has one of `settings`. One that cannot be read has all.
fn blocks(ctx: &Ctx<'_>, settings: &[&str]) -> bool {
    let block = ctx.store().document(ctx.target.bucket(), BLOCK);
    let Some(block) = block.ok().flatten() else {
        return false;
    };
    let mut found = false;
    let read = walk(&block, |path, text| {
        let named = path.last().is_some_and(|name| settings.contains(name));
        found |= named && text.get().trim().eq_ignore_ascii_case("true");
        Ok(())
    });
    found || read.is_err()
}

/// Refuses a list that grants something to everyone, if the bucket blocks that.
///
/// # Errors
/// `AccessDenied`.
pub(crate) fn check(ctx: &Ctx<'_>, list: Option<&str>) -> S3Result<()> {
    if list.is_some() && blocks(ctx, &["BlockPublicAcls"]) {
        return Err(S3Error::new(
            Code::AccessDenied,
            "The bucket's public access block refuses public ACLs.",
        ));
    }
    Ok(())
}

/// Keeps the list of a bucket.
///
/// # Errors
/// The store's.
pub(crate) fn keep(ctx: &Ctx<'_>, list: Option<&'static str>) -> S3Result<()> {
    let document = list.map(|list| list.as_bytes().to_vec());
    Ok(ctx
        .store()
        .set_document(ctx.target.bucket(), NAME, document)?)
}

/// GetBucketAcl.
pub(crate) fn of_bucket(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    let kept = ctx.store().document(ctx.target.bucket(), NAME)?;
    let kept = kept.and_then(|list| String::from_utf8(list).ok());
    Ok(render(ctx, kept.as_deref()))
}

/// GetObjectAcl.
pub(crate) fn of_object(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    let info = ctx.object_info()?;
    let body = render(ctx, info.headers.get(NAME));
    if let Some(id) = info.headers.version() {
        ctx.head.version(id);
    }
    Ok(body)
}

fn render(ctx: &mut Ctx<'_>, list: Option<&str>) -> Body {
    const XSI: &str = "Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=";
    let mut doc = ctx.xml("AccessControlPolicy");
    doc.owner("Owner").open("AccessControlList");
    for (group, permission) in list.and_then(groups).unwrap_or_default() {
        doc.open("Grant").open(&[XSI, "\"Group\""].concat());
        doc.text("URI", group)
            .close("Grantee")
            .text("Permission", permission)
            .close("Grant");
    }
    doc.open("Grant").open(&[XSI, "\"CanonicalUser\""].concat());
    doc.text("ID", OWNER_ID).text("DisplayName", OWNER_NAME);
    doc.close("Grantee")
        .text("Permission", "FULL_CONTROL")
        .close("Grant");
    doc.close("AccessControlList");
    doc.finish()
}
