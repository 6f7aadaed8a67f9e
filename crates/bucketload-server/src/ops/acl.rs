//! Access control lists. Only the owner has keys, so what matters of a grant is whether it is to everyone:
//! it admits requests without a signature, as a bucket's policy may. Other grants are kept and read back.

use super::grants::{self, ALL, Asked, KNOWN};
use super::{Ctx, policy};
use crate::error::{Code, S3Error, S3Result};
use crate::headers::Name;
use crate::respond::Body;
use crate::router::Operation;
use crate::xml::{OWNER_ID, OWNER_NAME};
use crate::xml_in::walk;

/// Name of a bucket's document, and of an object's header, with the list.
const NAME: &str = Name::Acl.text();
/// The document that restricts public lists.
pub(crate) const BLOCK: &str = "publicAccessBlock";
/// The document that says who owns objects, and whether there are lists at all.
pub(crate) const OWNERSHIP: &str = "ownershipControls";
/// The ownership without lists.
const ENFORCED: &str = "BucketOwnerEnforced";

/// Whether a request without a signature may do `operation`: the bucket's policy or the lists of bucket
/// and object grant it to everyone.
pub(crate) fn admits_everyone(ctx: &Ctx<'_>, operation: Operation) -> bool {
    if blocks(ctx, &["RestrictPublicBuckets"]) {
        return false;
    }
    match policy::decides(ctx, operation) {
        Some(decided) => decided,
        None => lists_admit(ctx, operation),
    }
}

fn lists_admit(ctx: &Ctx<'_>, operation: Operation) -> bool {
    if blocks(ctx, &["IgnorePublicAcls"]) || is_enforced(ctx) {
        return false;
    }
    let kept = of(ctx);
    let allows = |permission| to_everyone(kept.as_deref(), permission);
    match operation {
        Operation::Get | Operation::Head => match ctx.object_info() {
            Ok(info) => to_everyone(info.headers.get(NAME), "READ"),
            // Who may list may learn that there is no such object.
            Err(_) => allows("READ"),
        },
        Operation::HeadBucket
        | Operation::List
        | Operation::ListV1
        | Operation::ListVersions
        | Operation::ListUploads => allows("READ"),
        Operation::Put | Operation::Delete | Operation::DeleteMany => {
            allows("WRITE") && !ctx.target.has("versionId")
        }
        _ => false,
    }
}

/// Whether a list grants `permission` to everyone.
fn to_everyone(list: Option<&str>, permission: &str) -> bool {
    let grants = grants::of(list);
    grants.iter().any(|grant| {
        grant.grantee == ALL && [permission, "FULL_CONTROL"].contains(&grant.permission)
    })
}

/// The bucket's list. One that cannot be read is `private`.
fn of(ctx: &Ctx<'_>) -> Option<String> {
    let kept = ctx.store().document(ctx.target.bucket(), NAME);
    String::from_utf8(kept.ok().flatten()?).ok()
}

/// PutBucketAcl and PutObjectAcl with the list `asked` for in the headers, or in the document `input`.
pub(crate) fn put(ctx: &mut Ctx<'_>, asked: Option<Asked>, input: &[u8]) -> S3Result<Body> {
    let asked = match asked {
        Some(asked) => asked,
        None => grants::from_document(input)?,
    };
    check(ctx, &asked)?;
    let list = asked.list;
    let (bucket, key) = (ctx.target.bucket(), ctx.target.key());
    if key.is_empty() {
        keep(ctx, list)?;
        return Ok(ctx.empty(200));
    }
    let info = ctx.object_info()?;
    if list.is_some() || info.headers.get(NAME).is_some() {
        let version = ctx.version()?;
        ctx.store().amend(bucket, key, version, &mut |headers, _| {
            headers.set(NAME, list.clone());
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
pub(crate) fn blocks(ctx: &Ctx<'_>, settings: &[&str]) -> bool {
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

/// Whether the bucket's ownership setting leaves no lists.
fn is_enforced(ctx: &Ctx<'_>) -> bool {
    let controls = ctx.store().document(ctx.target.bucket(), OWNERSHIP);
    let controls = controls.ok().flatten();
    controls.is_some_and(|controls| ownership(&controls).is_ok_and(|setting| setting == ENFORCED))
}

/// The setting in the document of a bucket's ownership.
///
/// # Errors
/// `MalformedXML`.
fn ownership(document: &[u8]) -> S3Result<&'static str> {
    let mut found = None;
    walk(document, |path, text| {
        if path == ["OwnershipControls", "Rule", "ObjectOwnership"] {
            found = OWNERSHIPS.into_iter().find(|setting| text.is(setting));
        }
        Ok(())
    })?;
    found.ok_or_else(crate::xml_in::malformed)
}

/// The settings of ownership.
pub(crate) const OWNERSHIPS: [&str; 3] = [ENFORCED, "BucketOwnerPreferred", "ObjectWriter"];

/// Checks the document of a bucket's ownership before it is kept.
///
/// # Errors
/// `MalformedXML`; `InvalidBucketAclWithObjectOwnership` if it would leave no lists but the bucket has one.
pub(crate) fn check_ownership(ctx: &Ctx<'_>, document: &[u8]) -> S3Result<()> {
    if ownership(document)? == ENFORCED && of(ctx).is_some() {
        return Err(Code::InvalidBucketAclWithObjectOwnership.into());
    }
    Ok(())
}

/// Refuses a list if the bucket has none, or if it grants something to everyone and the bucket blocks that.
///
/// # Errors
/// `AccessControlListNotSupported`, `AccessDenied`.
pub(crate) fn check(ctx: &Ctx<'_>, asked: &Asked) -> S3Result<()> {
    if !asked.owners && is_enforced(ctx) {
        return Err(Code::AccessControlListNotSupported.into());
    }
    let grants = grants::of(asked.list.as_deref());
    let public = grants
        .iter()
        .any(|grant| [ALL, KNOWN].contains(&grant.grantee));
    if public && blocks(ctx, &["BlockPublicAcls"]) {
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
pub(crate) fn keep(ctx: &Ctx<'_>, list: Option<String>) -> S3Result<()> {
    let document = list.map(String::into_bytes);
    Ok(ctx
        .store()
        .set_document(ctx.target.bucket(), NAME, document)?)
}

/// GetBucketAcl.
pub(crate) fn of_bucket(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    let kept = of(ctx);
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
    for grant in grants::of(list) {
        doc.open("Grant");
        if grant.to_group() {
            doc.open(&[XSI, "\"Group\""].concat())
                .text("URI", grant.grantee);
        } else {
            doc.open(&[XSI, "\"CanonicalUser\""].concat())
                .text("ID", grant.grantee);
            if grant.grantee == OWNER_ID {
                doc.text("DisplayName", OWNER_NAME);
            }
        }
        doc.close("Grantee")
            .text("Permission", grant.permission)
            .close("Grant");
    }
    doc.close("AccessControlList");
    doc.finish()
}
