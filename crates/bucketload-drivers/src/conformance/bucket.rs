//! Checks of operations on buckets.

use bucketload_core::driver::Session;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::{OpClass, Request};

use super::{Context, Outcome, failed, same, worked};

pub(super) async fn buckets_come_and_go<S: Session>(c: &mut Context<S>) -> Outcome {
    let classes = [
        OpClass::MakeBucket,
        OpClass::HeadBucket,
        OpClass::ListBuckets,
        OpClass::DeleteBucket,
    ];
    if c.offered(&classes).await?.len() < classes.len() {
        return Ok(());
    }
    let name = format!("{}-two", c.bucket);
    let before = worked("list-buckets", c.simple(OpClass::ListBuckets, "").await)?.items;
    worked(
        "make-bucket",
        c.execute(&Request::plain(OpClass::MakeBucket, &name, ""))
            .await,
    )?;
    worked(
        "head-bucket",
        c.execute(&Request::plain(OpClass::HeadBucket, &name, ""))
            .await,
    )?;
    let with = worked("list-buckets", c.simple(OpClass::ListBuckets, "").await)?.items;
    same("buckets", with, before + 1)?;
    worked(
        "delete-bucket",
        c.execute(&Request::plain(OpClass::DeleteBucket, &name, ""))
            .await,
    )?;
    let gone = c
        .execute(&Request::plain(OpClass::HeadBucket, &name, ""))
        .await;
    failed("head-bucket", gone, &[ErrorKind::NotFound])
}

pub(super) async fn existing_buckets<S: Session>(c: &mut Context<S>) -> Outcome {
    let bucket = c.bucket.clone();
    if c.offers(OpClass::MakeBucket).await? {
        let made = c
            .execute(&Request::plain(OpClass::MakeBucket, &bucket, ""))
            .await;
        c.quirks.make_existing.check("make-bucket", made)?;
    }
    let ensured = worked("ensure_bucket", c.session.ensure_bucket(&bucket).await)?;
    same("made by this call", ensured, false)
}

pub(super) async fn full_buckets_are_kept<S: Session>(c: &mut Context<S>) -> Outcome {
    let name = format!("{}-full", c.bucket);
    let ensured = worked("ensure_bucket", c.session.ensure_bucket(&name).await)?;
    same("made by this call", ensured, true)?;
    worked(
        "put_small",
        c.session.put_small(&name, "a/b", b"kept").await,
    )?;
    let deleted = c.session.delete_bucket(&name).await;
    if c.quirks
        .delete_full
        .check("delete_bucket", deleted)?
        .is_some()
    {
        return Ok(());
    }
    let kept = worked("get_small", c.session.get_small(&name, "a/b").await)?;
    same("object", kept, b"kept".to_vec())?;
    worked("clean-up", c.clean_up(&name).await)
}

pub(super) async fn absent_buckets_are_not_found<S: Session>(c: &mut Context<S>) -> Outcome {
    let name = format!("{}-absent", c.bucket);
    let classes = [
        OpClass::HeadBucket,
        OpClass::DeleteBucket,
        OpClass::List,
        OpClass::ListV1,
    ];
    for class in c.offered(&classes).await? {
        let result = c.execute(&Request::plain(class, &name, "")).await;
        failed(class.name(), result, &[ErrorKind::NotFound])?;
    }
    let result = c.execute(&Request::plain(OpClass::Get, &name, "key")).await;
    failed("get", result, &[ErrorKind::NotFound])?;
    failed(
        "head_bucket",
        c.session.head_bucket(&name).await,
        &[ErrorKind::NotFound],
    )
}
