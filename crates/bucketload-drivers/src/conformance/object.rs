//! Checks of operations on single objects.

use bucketload_core::driver::Session;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::{ByteRange, Op, OpClass, Request};

use super::{Context, Expect, Outcome, failed, perform, same, worked};

/// Sizes around the boundaries of buffers and stamps.
const SIZES: [u64; 9] = [0, 1, 31, 33, 4096, 65_537, 262_144, 300_000, 5_242_883];

pub(super) async fn content_round_trips<S: Session>(c: &mut Context<S>) -> Outcome {
    for size in SIZES {
        c.round_trip(&format!("size/{size}"), size).await?;
    }
    Ok(())
}

pub(super) async fn puts_overwrite<S: Session>(c: &mut Context<S>) -> Outcome {
    let key = "replace/key";
    for (version, size) in [(0, 5000), (1, 200), (2, 70_000), (3, 0)] {
        worked("put", c.put(key, version, size, 0).await)?;
        worked("get", c.get(key, key, version, size, None).await)?;
    }
    Ok(())
}

pub(super) async fn heads_return_sizes<S: Session>(c: &mut Context<S>) -> Outcome {
    for size in [0, 12_345, 1_000_000] {
        let key = format!("head/{size}");
        worked("put", c.put(&key, 0, size, 0).await)?;
        let head = worked("head", c.simple(OpClass::Head, &key).await)?;
        same("size", head.object_size, size)?;
    }
    Ok(())
}

pub(super) async fn absent_objects_are_not_found<S: Session>(c: &mut Context<S>) -> Outcome {
    for class in [OpClass::Get, OpClass::Head] {
        let result = c.simple(class, "absent/object").await;
        failed(class.name(), result, &[ErrorKind::NotFound])?;
    }
    let bucket = c.bucket.clone();
    let got = c.session.get_small(&bucket, "absent/object").await;
    failed("get_small", got, &[ErrorKind::NotFound])?;
    // The connection is still usable.
    c.round_trip("absent/after", 100).await
}

pub(super) async fn deletes_remove<S: Session>(c: &mut Context<S>) -> Outcome {
    c.round_trip("delete/key", 100).await?;
    worked("delete", c.simple(OpClass::Delete, "delete/key").await)?;
    let gone = c.simple(OpClass::Get, "delete/key").await;
    failed("get", gone, &[ErrorKind::NotFound])
}

pub(super) async fn ranges_are_exact<S: Session>(c: &mut Context<S>) -> Outcome {
    let (key, size) = ("range/key", 600_000);
    worked("put", c.put(key, 0, size, 0).await)?;
    for (offset, len) in [
        (0, 1),
        (0, 600_000),
        (1, 5000),
        (262_100, 100),
        (599_999, 1),
        (500_000, 100_000),
        (599_000, 5000),
    ] {
        let range = ByteRange { offset, len };
        let got = worked("range", c.get(key, key, 0, size, Some(range)).await)?;
        same("bytes", got.bytes, len.min(size - offset))?;
    }
    Ok(())
}

pub(super) async fn ranges_past_the_end_are_refused<S: Session>(c: &mut Context<S>) -> Outcome {
    worked("put", c.put("range/short", 0, 10, 0).await)?;
    let range = ByteRange {
        offset: 1000,
        len: 10,
    };
    let op = Op {
        range: Some(range),
        ..Op::new(OpClass::RangeGet)
    };
    let bucket = c.bucket.clone();
    let request = Request::new(&op, &bucket, "range/short");
    let got = c.execute(&request).await;
    failed("range past the end", got, &[ErrorKind::Rejected])
}

pub(super) async fn wrong_content_is_found<S: Session>(c: &mut Context<S>) -> Outcome {
    for size in [100, 3_000_000] {
        let key = format!("verify/{size}");
        worked("put", c.put(&key, 0, size, 0).await)?;
        let got = c.get(&key, &key, 1, size, None).await;
        failed("get of another version", got, &[ErrorKind::Corrupt])?;
        let range = ByteRange { offset: 3, len: 50 };
        let got = c.get(&key, "verify/other", 0, size, Some(range)).await;
        failed("range of another object", got, &[ErrorKind::Corrupt])?;
        worked("get", c.get(&key, &key, 0, size, None).await)?;
    }
    Ok(())
}

pub(super) async fn wrong_lengths_are_found<S: Session>(c: &mut Context<S>) -> Outcome {
    worked("put", c.put("length/key", 0, 1000, 0).await)?;
    let bucket = c.bucket.clone();
    for size in [999, 1001] {
        let op = Op {
            size,
            ..Op::new(OpClass::Get)
        };
        let request = Request::new(&op, &bucket, "length/key");
        let got = c.execute(&request).await;
        failed("get of another length", got, &[ErrorKind::Corrupt])?;
    }
    let whole = Request::plain(OpClass::Get, &bucket, "length/key");
    let got = c.execute(&whole).await;
    same("bytes", worked("get", got)?.bytes, 1000)
}

/// Keys that must survive escaping in paths, queries and XML.
const ODD_KEYS: [&str; 14] = [
    "odd/space in key",
    "odd/plus+plus",
    "odd/percent%41%",
    "odd/amp&lt;<tag>\"quoted'",
    "odd/question?query=1#fragment",
    "odd/semi;colon:at@equals=comma,dollar$",
    "odd/brackets[1]{2}(3)",
    "odd/bang!star*tilde~caret^pipe|back`tick",
    "odd/back\\slash",
    "odd/\u{e4}\u{f6}\u{fc}\u{df}",
    "odd/\u{65e5}\u{672c}\u{8a9e}",
    "odd/\u{1f600}",
    "odd/ leading and trailing ",
    "odd/combining-e\u{301}",
];

pub(super) async fn odd_keys_work<S: Session>(c: &mut Context<S>) -> Outcome {
    let mut wanted = Vec::new();
    for key in ODD_KEYS {
        let expect = match key.ends_with(' ') {
            true => c.quirks.blank_end,
            false => Expect::Works,
        };
        if key.contains(c.quirks.refused) {
            let put = c.put(key, 0, 77, 0).await;
            failed(&format!("put of `{key}`"), put, &[ErrorKind::Rejected])?;
        } else if expect.works() {
            let result = c.round_trip(key, 77).await;
            result.map_err(|e| format!("`{key}`: {e}"))?;
            wanted.push(key.to_owned());
        } else {
            c.round_trip_as(key, 77, expect).await?;
        }
    }
    let bucket = c.bucket.clone();
    let mut listed = worked("list", c.keys(&bucket, "odd/").await)?;
    listed.sort();
    if !c.quirks.backslash {
        wanted = wanted.iter().map(|key| key.replace('\\', "/")).collect();
    }
    wanted.sort();
    same("keys listed", &listed[..], &wanted[..])?;
    worked("delete", c.session.delete_keys(&bucket, &wanted).await)?;
    same(
        "keys left",
        worked("list", c.keys(&bucket, "odd/").await)?,
        Vec::new(),
    )
}

/// Objects are read right after their writes were acknowledged, and must have the right length and content.
pub(super) async fn acknowledged_writes_are_complete<S: Session>(c: &mut Context<S>) -> Outcome {
    const COUNT: u64 = 60;
    let mut wrong = Vec::new();
    for i in 0..COUNT {
        let (key, size) = (format!("whole/{i}"), 1 + i * 700);
        worked("put", c.put(&key, 0, size, 0).await)?;
        let head = worked("head", c.simple(OpClass::Head, &key).await)?;
        let got = c.get(&key, &key, 0, size, None).await;
        if head.object_size != size {
            wrong.push(format!(
                "{key}: {} bytes instead of {size}",
                head.object_size
            ));
        } else if let Err(error) = got {
            wrong.push(format!("{key}: {error}"));
        }
    }
    match wrong.first() {
        None => Ok(()),
        Some(first) => Err(format!(
            "{} of {COUNT} writes, such as {first}",
            wrong.len()
        )),
    }
}

pub(super) async fn doubled_slashes<S: Session>(c: &mut Context<S>) -> Outcome {
    let expect = c.quirks.double_slash;
    c.round_trip_as("double//slash", 10, expect).await
}

pub(super) async fn dot_segments<S: Session>(c: &mut Context<S>) -> Outcome {
    let expect = c.quirks.dot_segment;
    c.round_trip_as("dots/./a", 10, expect).await?;
    let expect = c.quirks.dot_dot_segment;
    c.round_trip_as("dots/../b", 10, expect).await
}

pub(super) async fn keys_ending_in_a_slash<S: Session>(c: &mut Context<S>) -> Outcome {
    let key = "folder/";
    let expect = c.quirks.trailing_slash;
    // Some servers accept such an object and lose its content.
    let both = match c.put(key, 0, 10, 0).await {
        Ok(_) => c.get(key, key, 0, 10, None).await,
        Err(error) => Err(error),
    };
    expect.check("put and get of `folder/`", both).map(drop)
}

pub(super) async fn objects_below_objects<S: Session>(c: &mut Context<S>) -> Outcome {
    c.round_trip("below/a", 10).await?;
    let expect = c.quirks.below_object;
    c.round_trip_as("below/a/b", 20, expect).await?;
    worked("get", c.get("below/a", "below/a", 0, 10, None).await)?;
    worked("delete", c.simple(OpClass::Delete, "below/a").await).map(drop)
}

/// A key of `len` bytes in segments of at most `segment` bytes.
fn long_key(len: usize, segment: usize) -> String {
    // The key must not end in a slash.
    let step = if len.is_multiple_of(segment + 1) {
        segment
    } else {
        segment + 1
    };
    let at = |i: usize| if i.is_multiple_of(step) { '/' } else { 'k' };
    (1..=len).map(at).collect()
}

pub(super) async fn long_keys<S: Session>(c: &mut Context<S>) -> Outcome {
    let key = long_key(c.quirks.max_key, c.quirks.max_segment);
    c.round_trip(&key, 10).await?;
    worked("delete", c.simple(OpClass::Delete, &key).await)?;
    let longer = long_key(1025, c.quirks.max_segment);
    let put = c.put(&longer, 0, 10, 0).await;
    let expect = c.quirks.longer_key;
    expect.check("put of a key of 1025 bytes", put).map(drop)
}

pub(super) async fn copies_are_equal<S: Session>(c: &mut Context<S>) -> Outcome {
    if !c.offers(OpClass::Copy).await? {
        return Ok(());
    }
    let bucket = c.bucket.clone();
    for (source, target) in [
        ("copy/source", "copy/target"),
        ("copy/a b+%", "copy/\u{e4} &"),
    ] {
        worked("put", c.put(source, 0, 300_000, 0).await)?;
        let mut request = Request::plain(OpClass::Copy, &bucket, target);
        request.source = source;
        worked("copy", c.execute(&request).await)?;
        worked("get", c.get(target, source, 0, 300_000, None).await)?;
        worked("get", c.get(source, source, 0, 300_000, None).await)?;
    }
    let mut absent = Request::plain(OpClass::Copy, &bucket, "copy/other");
    absent.source = "copy/absent";
    failed(
        "copy of nothing",
        c.execute(&absent).await,
        &[ErrorKind::NotFound],
    )
}

pub(super) async fn writes_if_absent_happen_once<S: Session>(c: &mut Context<S>) -> Outcome {
    if !c.offers(OpClass::PutIfAbsent).await? {
        return Ok(());
    }
    let (key, bucket) = ("absent/only-once", c.bucket.clone());
    let second = u64::from(!c.quirks.if_absent);
    for (version, written) in [(0, 1), (1, second)] {
        let op = Op {
            size: 5000,
            ..Op::new(OpClass::PutIfAbsent)
        };
        let mut request = Request::new(&op, &bucket, key);
        request.content = Some(Context::<S>::content(&c.arena, key, version, 5000));
        let done = worked("put-if-absent", perform!(c, &request))?;
        same("objects written", done.items, written)?;
        let there = if written == 1 { version } else { 0 };
        worked("get", c.get(key, key, there, 5000, None).await)?;
    }
    Ok(())
}

pub(super) async fn appends_extend_objects<S: Session>(c: &mut Context<S>) -> Outcome {
    if !c.offers(OpClass::Append).await? {
        return Ok(());
    }
    let (key, bucket) = ("append/log", c.bucket.clone());
    let mut whole = Vec::new();
    for (version, size) in [(0, 3000), (1, 1), (2, 70_000)] {
        let op = Op {
            size,
            version,
            ..Op::new(OpClass::Append)
        };
        let mut request = Request::new(&op, &bucket, key);
        let content = Context::<S>::content(&c.arena, key, version, size);
        request.content = Some(content);
        let done = worked("append", perform!(c, &request))?;
        same("bytes", done.bytes, size)?;
        let at = whole.len();
        whole.resize(at + size as usize, 0);
        content.fill(0, &mut whole[at..]);
    }
    let got = worked("get_small", c.session.get_small(&bucket, key).await)?;
    same("length", got.len(), whole.len())?;
    same("content as appended", got == whole, true)
}

pub(super) async fn renames_move<S: Session>(c: &mut Context<S>) -> Outcome {
    if !c.offers(OpClass::Rename).await? {
        return Ok(());
    }
    let bucket = c.bucket.clone();
    // Within a directory, into a new one, and over another object.
    for (source, target) in [
        ("rename/a", "rename/b"),
        ("rename/a", "rename/deeper/still/b"),
        ("rename/a", "rename/b"),
    ] {
        worked("put", c.put(source, 0, 300_000, 0).await)?;
        let mut request = Request::plain(OpClass::Rename, &bucket, target);
        request.source = source;
        worked("rename", c.execute(&request).await)?;
        worked("get", c.get(target, source, 0, 300_000, None).await)?;
        let gone = c.simple(OpClass::Head, source).await;
        failed("head of the old key", gone, &[ErrorKind::NotFound])?;
    }
    let mut absent = Request::plain(OpClass::Rename, &bucket, "rename/other");
    absent.source = "rename/absent";
    let result = c.execute(&absent).await;
    failed("rename of nothing", result, &[ErrorKind::NotFound])
}

pub(super) async fn touches_keep_content<S: Session>(c: &mut Context<S>) -> Outcome {
    if !c.offers(OpClass::Touch).await? {
        return Ok(());
    }
    c.round_trip("touch/old", 5000).await?;
    worked("touch", c.simple(OpClass::Touch, "touch/old").await)?;
    worked("get", c.get("touch/old", "touch/old", 0, 5000, None).await)?;
    worked("touch", c.simple(OpClass::Touch, "touch/new/file").await)?;
    let head = c.simple(OpClass::Head, "touch/new/file").await;
    same("size", worked("head", head)?.object_size, 0)
}

pub(super) async fn tags_round_trip<S: Session>(c: &mut Context<S>) -> Outcome {
    const TAGGING: [OpClass; 3] = [
        OpClass::PutTagging,
        OpClass::GetTagging,
        OpClass::DeleteTagging,
    ];
    if c.offered(&TAGGING).await?.len() < TAGGING.len() {
        return Ok(());
    }
    worked("put", c.put("tags/key", 0, 10, 0).await)?;
    let expect = c.quirks.tagging;
    let put = c.simple(OpClass::PutTagging, "tags/key").await;
    if expect.check("put-tagging", put)?.is_none() {
        return Ok(());
    }
    let got = worked(
        "get-tagging",
        c.simple(OpClass::GetTagging, "tags/key").await,
    )?;
    same("tags", got.items, 1)?;
    worked(
        "delete-tagging",
        c.simple(OpClass::DeleteTagging, "tags/key").await,
    )?;
    // Some servers return an empty set now, others an error.
    match c.simple(OpClass::GetTagging, "tags/key").await {
        Ok(got) => same("tags left", got.items, 0),
        Err(error) => failed("get-tagging", Err::<(), _>(error), &[ErrorKind::NotFound]),
    }
}

pub(super) async fn probes_are_marked<S: Session>(c: &mut Context<S>) -> Outcome {
    let marks = |c: &Context<S>, what: &str, requests: u32| {
        let p = &c.probe;
        let order = [p.started_ns(), p.first_byte_ns(), p.done_ns()];
        if order[0] == 0 || !order.is_sorted() {
            return Err(format!(
                "{what}: started, first byte and done are {order:?}"
            ));
        }
        match c.quirks.single_requests || p.requests() < requests {
            true => same(&format!("{what}: requests"), p.requests(), requests),
            false => Ok(()),
        }
    };
    for size in [100, 2_000_000] {
        worked("put", c.put("probe/key", 0, size, 0).await)?;
        marks(c, "put", 1)?;
        worked("get", c.get("probe/key", "probe/key", 0, size, None).await)?;
        marks(c, "get", 1)?;
    }
    worked("head", c.simple(OpClass::Head, "probe/key").await)?;
    marks(c, "head", 1)?;
    let absent = c.simple(OpClass::Get, "probe/absent").await;
    failed("get", absent, &[ErrorKind::NotFound])?;
    marks(c, "failed get", 1)?;
    if c.offers(OpClass::MultipartPut).await? {
        let part = c.quirks.min_part.max(1000);
        worked("multipart", c.put("probe/parts", 0, part + 1, part).await)?;
        // Create, two parts and complete; fewer requests for APIs without a completion.
        let requests = c.probe.requests();
        marks(c, "multipart", requests)?;
        if !(2..=4).contains(&requests) {
            return Err(format!("multipart: {requests} requests"));
        }
    }
    let bucket = c.bucket.clone();
    let all = Request::plain(OpClass::List, &bucket, "probe/");
    worked("list", c.execute(&all).await)?;
    marks(c, "list", 1)
}
