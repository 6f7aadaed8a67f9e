//! Checks of multipart uploads.

use bucketload_core::driver::Session;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::{ByteRange, Op, OpClass, Request};

use super::{Context, Expect, Outcome, failed, same, worked};

pub(super) async fn parts_make_an_object<S: Session>(c: &mut Context<S>) -> Outcome {
    if !c.offers(OpClass::MultipartPut).await? {
        return Ok(());
    }
    let part = c.quirks.min_part.max(100_000);
    for (size, count) in [(2 * part + 12_345, 3), (2 * part, 2), (1000, 1), (0, 1)] {
        let key = format!("multipart/{size}");
        let done = worked("multipart-put", c.put(&key, 0, size, part).await)?;
        same("bytes", done.bytes, size)?;
        // An empty object may have one empty part or none.
        let parts = if size == 0 {
            done.items.max(1)
        } else {
            done.items
        };
        same("parts", parts, count)?;
        worked("get", c.get(&key, &key, 0, size, None).await)?;
        let head = worked("head", c.simple(OpClass::Head, &key).await)?;
        same("size", head.object_size, size)?;
    }
    Ok(())
}

pub(super) async fn parts_are_read_by_number<S: Session>(c: &mut Context<S>) -> Outcome {
    let classes = [OpClass::GetPart, OpClass::HeadPart];
    if c.offered(&classes).await?.len() < classes.len() {
        return Ok(());
    }
    let (key, part) = ("multipart/numbered", c.quirks.min_part.max(100_000));
    let size = 2 * part + 12_345;
    worked("multipart-put", c.put(key, 0, size, part).await)?;
    let bucket = c.bucket.clone();
    for class in classes {
        for offset in [0, part, 2 * part, 3 * part] {
            let op = Op {
                size,
                count: part,
                range: Some(ByteRange {
                    offset,
                    len: part.min(size.saturating_sub(offset)),
                }),
                ..Op::new(class)
            };
            let content = Context::<S>::content(&c.arena, key, 0, size);
            let request = Request {
                content: class.reads_body().then_some(content),
                verify: class.reads_body(),
                ..Request::new(&op, &bucket, key)
            };
            let what = format!("{class} {}", op.part_number());
            c.probe.reset();
            let done = c.session.execute(&request, &mut c.probe).await;
            if offset > size {
                failed(&what, done, &[ErrorKind::Rejected])?;
                continue;
            }
            let expect = c.quirks.read_part;
            let Some(done) = expect.check(&what, done)? else {
                return Ok(());
            };
            c.worked.insert(class);
            let stated = match class {
                OpClass::GetPart => done.bytes,
                _ => done.object_size,
            };
            same(&what, stated, part.min(size - offset))?;
        }
    }
    Ok(())
}

pub(super) async fn small_parts<S: Session>(c: &mut Context<S>) -> Outcome {
    if !c.offers(OpClass::MultipartPut).await? {
        return Ok(());
    }
    let key = "multipart/small";
    let put = c.put(key, 0, 3000, 1000).await;
    if c.quirks.min_part == 0 {
        worked("multipart-put", put)?;
        return worked("get", c.get(key, key, 0, 3000, None).await).map(drop);
    }
    failed("multipart-put of small parts", put, &[ErrorKind::Rejected])?;
    // The refused upload still exists: it can be listed and aborted.
    if !c.offers(OpClass::ListUploads).await? {
        return Ok(());
    }
    let bucket = c.bucket.clone();
    let listed = c
        .execute(&Request::plain(OpClass::ListUploads, &bucket, key))
        .await;
    let Some(listed) = c.quirks.list_uploads.check("list-uploads", listed)? else {
        return Ok(());
    };
    same("uploads", listed.items, 1)?;
    let other = c.session.abort_uploads(&bucket, "multipart/other").await;
    same("uploads aborted elsewhere", worked("abort", other)?, 0)?;
    let aborted = c.session.abort_uploads(&bucket, "multipart/").await;
    same("uploads aborted", worked("abort", aborted)?, 1)?;
    let listed = c
        .execute(&Request::plain(OpClass::ListUploads, &bucket, key))
        .await;
    same("uploads left", worked("list-uploads", listed)?.items, 0)
}

pub(super) async fn aborted_uploads_are_gone<S: Session>(c: &mut Context<S>) -> Outcome {
    if !c.offers(OpClass::MultipartAbort).await? || !c.offers(OpClass::ListUploads).await? {
        return Ok(());
    }
    let key = "multipart/abort \u{e4}";
    worked(
        "multipart-abort",
        c.simple(OpClass::MultipartAbort, key).await,
    )?;
    let bucket = c.bucket.clone();
    let listed = c
        .execute(&Request::plain(OpClass::ListUploads, &bucket, "multipart/"))
        .await;
    if let Some(listed) = c.quirks.list_uploads.check("list-uploads", listed)? {
        same("uploads left", listed.items, 0)?;
    }
    failed(
        "head",
        c.simple(OpClass::Head, key).await,
        &[ErrorKind::NotFound],
    )
}

pub(super) async fn parts_are_copied<S: Session>(c: &mut Context<S>) -> Outcome {
    if !c.offers(OpClass::MultipartCopy).await? {
        return Ok(());
    }
    let part = c.quirks.min_part.max(100_000);
    let size = part + 50_000;
    let source = "multipart/source +";
    worked("put", c.put(source, 0, size, 0).await)?;
    let bucket = c.bucket.clone();
    let op = Op {
        size,
        count: part,
        ..Op::new(OpClass::MultipartCopy)
    };
    let mut request = Request::new(&op, &bucket, "multipart/copied");
    request.source = source;
    let copied = c.execute(&request).await;
    if let Some(done) = c.quirks.part_copy.check("multipart-copy", copied)? {
        same("parts", done.items, 2)?;
        let got = c.get("multipart/copied", source, 0, size, None).await;
        worked("get", got)?;
    } else if c.quirks.list_uploads == Expect::Works {
        worked(
            "abort",
            c.session.abort_uploads(&bucket, "multipart/").await,
        )?;
    }
    Ok(())
}
