//! Checks of versions, object lock, access control lists, attributes and conditional deletes.

use std::cell::Cell;

use bucketload_core::driver::{KeyVersion, Session};
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::{BucketNeeds, Op, OpClass, Request, VersionId};

use super::{Context, Outcome, failed, same, worked};

/// Performs `class` on the version of `key` in `cell`, whose content is version `version` with `size` bytes. A write
/// stores its version there.
async fn on_version<S: Session>(
    c: &mut Context<S>,
    class: OpClass,
    (bucket, key): (&str, &str),
    (version, size, part): (u32, u64, u64),
    cell: &Cell<VersionId>,
) -> OpResult {
    let op = Op {
        size,
        version,
        count: part,
        ..Op::new(class)
    };
    let content = Context::<S>::content(&c.arena, key, version, size);
    let request = Request {
        content: (class != OpClass::DeleteVersion).then_some(content),
        verify: class.reads_body(),
        version: Some(cell),
        ..Request::new(&op, bucket, key)
    };
    c.probe.reset();
    let done = c.session.execute(&request, &mut c.probe).await;
    if done.is_ok() {
        c.worked.insert(class);
    }
    done
}

/// A bucket with `needs`; `None` if the server is documented not to offer that.
async fn bucket_with<S: Session>(
    c: &mut Context<S>,
    suffix: &str,
    needs: BucketNeeds,
) -> Result<Option<String>, String> {
    let bucket = format!("{}-{suffix}", c.bucket);
    let expect = match needs.lock {
        true => c.quirks.locks,
        false => c.quirks.versions,
    };
    let made = match c.session.ensure_bucket_with(&bucket, needs).await {
        Ok(true) => c.session.check_needs(&bucket, needs).await,
        Ok(false) => Err(OpError::new(
            ErrorKind::Conflict,
            "the bucket exists already",
        )),
        Err(error) => Err(error),
    };
    if expect.check("a bucket for it", made)?.is_some() {
        return Ok(Some(bucket));
    }
    // What was made of it is removed.
    match c.session.delete_bucket(&bucket).await {
        Err(error) if error.kind != ErrorKind::NotFound => Err(error.to_string()),
        _ => Ok(None),
    }
}

async fn versions_in<S: Session>(
    c: &mut Context<S>,
    bucket: &str,
) -> Result<Vec<KeyVersion>, String> {
    let page = c.session.list_versions(bucket, "", None).await;
    Ok(worked("list_versions", page)?.versions)
}

/// Removes everything from `bucket` and then the bucket.
async fn remove<S: Session>(c: &mut Context<S>, bucket: &str) -> Outcome {
    let versions = versions_in(c, bucket).await?;
    worked(
        "delete_versions",
        c.session.delete_versions(bucket, &versions).await,
    )?;
    worked("delete_bucket", c.session.delete_bucket(bucket).await)
}

pub(super) async fn versions_are_kept<S: Session>(c: &mut Context<S>) -> Outcome {
    let classes = [
        OpClass::ListVersions,
        OpClass::GetVersion,
        OpClass::DeleteVersion,
    ];
    if c.offered(&classes).await?.len() < classes.len() {
        return Ok(());
    }
    let plain = c.bucket.clone();
    let needs = BucketNeeds {
        versions: true,
        lock: false,
    };
    let lacks = c.session.check_needs(&plain, needs).await;
    failed(
        "a bucket without versions",
        lacks,
        &[ErrorKind::Rejected, ErrorKind::Unsupported],
    )?;
    let Some(bucket) = bucket_with(c, "versions", needs).await? else {
        return Ok(());
    };
    let place = (bucket.as_str(), "versions/key");
    let part = c.quirks.min_part.max(1000);
    let writes = [
        (OpClass::Put, (0, 5000, 0)),
        (OpClass::MultipartPut, (1, part + 10, part)),
        (OpClass::Put, (2, 0, 0)),
        (OpClass::Put, (3, 300_000, 0)),
    ];
    let mut cells: Vec<Cell<VersionId>> = Vec::new();
    for (class, what) in writes {
        let cell = Cell::default();
        worked(class.name(), on_version(c, class, place, what, &cell).await)?;
        if cells.iter().any(|earlier| earlier.get() == cell.get()) {
            return Err(format!("{class}: no version of its own: {:?}", cell.get()));
        }
        cells.push(cell);
    }
    let list = |count, pages| Op {
        count,
        pages,
        ..Op::new(OpClass::ListVersions)
    };
    for (op, items) in [(list(0, 0), 4), (list(3, 0), 4), (list(3, 1), 3)] {
        let listed = c.execute(&Request::new(&op, &bucket, "versions/")).await;
        same(
            "versions listed",
            worked("list-versions", listed)?.items,
            items,
        )?;
    }
    for ((_, what), cell) in writes.iter().zip(&cells) {
        let got = on_version(c, OpClass::GetVersion, place, *what, cell).await;
        same("bytes", worked("get-version", got)?.bytes, what.1)?;
    }
    let delete = Request::plain(OpClass::Delete, &bucket, place.1);
    worked("delete", c.execute(&delete).await)?;
    let head = Request::plain(OpClass::Head, &bucket, place.1);
    let gone = c.execute(&head).await;
    failed(
        "head after delete",
        gone,
        &[ErrorKind::NotFound, ErrorKind::Unsupported],
    )?;
    let got = on_version(c, OpClass::GetVersion, place, writes[3].1, &cells[3]).await;
    worked("get-version of what a delete marker hides", got)?;
    let deleted = on_version(c, OpClass::DeleteVersion, place, writes[1].1, &cells[1]).await;
    worked("delete-version", deleted)?;
    let gone = on_version(c, OpClass::GetVersion, place, writes[1].1, &cells[1]).await;
    failed(
        "get-version after its removal",
        gone,
        &[ErrorKind::NotFound],
    )?;
    let got = on_version(c, OpClass::GetVersion, place, writes[0].1, &cells[0]).await;
    worked("get-version of another", got)?;
    remove(c, &bucket).await
}

/// Without versions in the bucket, a write whose version somebody asks for fails instead of naming none.
pub(super) async fn writes_name_their_version<S: Session>(c: &mut Context<S>) -> Outcome {
    if !c.offers(OpClass::GetVersion).await? {
        return Ok(());
    }
    let bucket = c.bucket.clone();
    let place = (bucket.as_str(), "versions/none");
    let cell = Cell::default();
    let put = on_version(c, OpClass::Put, place, (0, 10, 0), &cell).await;
    match put {
        // Some servers call the only version `null`.
        Ok(_) => same("version", cell.get().as_str().is_empty(), false),
        Err(error) => failed("put", Err::<(), _>(error), &[ErrorKind::Protocol]),
    }
}

pub(super) async fn locks_hold_until_they_are_lifted<S: Session>(c: &mut Context<S>) -> Outcome {
    let classes = [
        OpClass::PutRetention,
        OpClass::GetRetention,
        OpClass::PutLegalHold,
        OpClass::GetLegalHold,
    ];
    if c.offered(&classes).await?.len() < classes.len() {
        return Ok(());
    }
    let needs = BucketNeeds {
        versions: true,
        lock: true,
    };
    let Some(bucket) = bucket_with(c, "locked", needs).await? else {
        return Ok(());
    };
    for (put, get, key) in [
        (OpClass::PutRetention, OpClass::GetRetention, "retained"),
        (OpClass::PutLegalHold, OpClass::GetLegalHold, "held"),
    ] {
        let cell = Cell::default();
        let place = (bucket.as_str(), key);
        worked(
            "put",
            on_version(c, OpClass::Put, place, (0, 10, 0), &cell).await,
        )?;
        let days = Op {
            count: 1,
            ..Op::new(put)
        };
        worked(
            put.name(),
            c.execute(&Request::new(&days, &bucket, key)).await,
        )?;
        let got = c.execute(&Request::plain(get, &bucket, key)).await;
        same(get.name(), worked(get.name(), got)?.items, 1)?;
        let kept = on_version(c, OpClass::DeleteVersion, place, (0, 10, 0), &cell).await;
        failed(
            "removal of a locked version",
            kept,
            &[ErrorKind::Auth, ErrorKind::Rejected, ErrorKind::Conflict],
        )?;
    }
    let delete = Request::plain(OpClass::Delete, &bucket, "held");
    worked("delete", c.execute(&delete).await)?;
    let versions = versions_in(c, &bucket).await?;
    same("versions and markers", versions.len(), 3)?;
    worked(
        "delete_locked_versions",
        c.session.delete_locked_versions(&bucket, &versions).await,
    )?;
    remove(c, &bucket).await
}

pub(super) async fn access_lists_are_read_and_set<S: Session>(c: &mut Context<S>) -> Outcome {
    let classes = [OpClass::PutAcl, OpClass::GetAcl];
    if c.offered(&classes).await?.len() < classes.len() {
        return Ok(());
    }
    worked("put", c.put("acl/key", 0, 10, 0).await)?;
    let expect = c.quirks.acl;
    let set = c.simple(OpClass::PutAcl, "acl/key").await;
    if expect.check("put-acl", set)?.is_none() {
        return Ok(());
    }
    let got = worked("get-acl", c.simple(OpClass::GetAcl, "acl/key").await)?;
    same("grants", got.items, 1)?;
    let absent = c.simple(OpClass::GetAcl, "acl/absent").await;
    failed("get-acl of nothing", absent, &[ErrorKind::NotFound])
}

pub(super) async fn attributes_state_the_size<S: Session>(c: &mut Context<S>) -> Outcome {
    if !c.offers(OpClass::GetAttributes).await? {
        return Ok(());
    }
    worked("put", c.put("attributes/key", 0, 5000, 0).await)?;
    let got = c.simple(OpClass::GetAttributes, "attributes/key").await;
    let expect = c.quirks.attributes;
    if let Some(got) = expect.check("get-attributes", got)? {
        same("size", got.object_size, 5000)?;
        let absent = c.simple(OpClass::GetAttributes, "attributes/absent").await;
        failed("get-attributes of nothing", absent, &[ErrorKind::NotFound])?;
    }
    Ok(())
}

pub(super) async fn deletes_if_present<S: Session>(c: &mut Context<S>) -> Outcome {
    if !c.offers(OpClass::DeleteIfMatch).await? {
        return Ok(());
    }
    worked("put", c.put("delete-if/key", 0, 10, 0).await)?;
    let deleted = c.simple(OpClass::DeleteIfMatch, "delete-if/key").await;
    let expect = c.quirks.delete_if_match;
    if expect.check("delete-if-match", deleted)?.is_none() {
        return Ok(());
    }
    let gone = c.simple(OpClass::Head, "delete-if/key").await;
    failed("head after delete", gone, &[ErrorKind::NotFound])?;
    let again = c.simple(OpClass::DeleteIfMatch, "delete-if/key").await;
    let expect = c.quirks.delete_if_match_absent;
    expect.check("delete-if-match of nothing", again).map(drop)
}
