//! Objects: written, read in whole and in part, and how soon.

use std::time::{Duration, Instant};

use super::answer::{Ask, words};
use super::lab::{Lab, SIZE};
use super::verdict::Verdict;
use crate::s3::{PayloadMode, S3Config};

/// Longest wait for an object that was just written.
const SOON: Duration = Duration::from_secs(3);
/// How often it is looked for.
const AGAIN: Duration = Duration::from_millis(250);

/// The object that most checks read.
pub(super) const OBJECT: &str = "object";

pub(super) async fn put(lab: &mut Lab) -> Verdict {
    let (marker, body) = (lab.marker.clone(), lab.marker_body().to_vec());
    if let Err(said) = lab.put(&marker, &body).await {
        return Verdict::failed(said);
    }
    let (config, key) = (lab.config.clone(), lab.key(OBJECT));
    let Err(error) = lab.put_as_a_run(&config, &key).await else {
        return Verdict::ok(format!("{SIZE} bytes, {} payload", config.payload));
    };
    let simple = S3Config {
        payload: PayloadMode::Unsigned,
        checksum: None,
        ..config.clone()
    };
    if simple == config || lab.put_as_a_run(&simple, &key).await.is_err() {
        return Verdict::failed(error.to_string());
    }
    if let Err(error) = lab.use_config(simple).await {
        return Verdict::failed(error.to_string());
    }
    let checksum = config
        .checksum
        .map_or_else(String::new, |c| format!(" with {c}"));
    Verdict::differs(format!("{} payload{checksum}: {error}", config.payload))
        .remedy("--payload-signing unsigned without --checksum, or the dialect")
        .setting("payload-signing", "unsigned")
}

pub(super) async fn etag(lab: &mut Lab) -> Verdict {
    let key = lab.key("etag");
    match lab.put(&key, b"etag").await {
        Ok(answer) if answer.field("etag").is_empty() => {
            Verdict::differs(format!("{} without an ETag", answer.words()))
        }
        Ok(answer) => Verdict::ok(answer.field("etag")),
        Err(said) => Verdict::failed(said),
    }
}

pub(super) async fn get(lab: &mut Lab) -> Verdict {
    let key = lab.key(OBJECT);
    let began = Instant::now();
    loop {
        let answer = lab.ask(Ask::new("GET", &key)).await;
        match &answer {
            Ok(answer) if answer.status == 404 && began.elapsed() < SOON => {
                tokio::time::sleep(AGAIN).await;
                lab.read_delay_ms = Some(began.elapsed().as_millis());
            }
            Ok(answer) if answer.is_ok() && answer.body == lab.content => {
                return Verdict::ok(format!("{SIZE} bytes, as written"));
            }
            Ok(answer) if answer.is_ok() => {
                let len = answer.body.len();
                return Verdict::differs(format!(
                    "{}: {len} bytes that are not those written",
                    answer.words()
                ));
            }
            _ => return Verdict::differs(words(&answer)),
        }
    }
}

pub(super) async fn read_after_write(lab: &mut Lab) -> Verdict {
    match lab.read_delay_ms {
        None => Verdict::ok("found by the first request"),
        Some(ms) => Verdict::differs(format!("404 until {ms} ms after the write")),
    }
}

pub(super) async fn read_after_overwrite(lab: &mut Lab) -> Verdict {
    let key = lab.key("overwritten");
    for body in [&b"first content"[..], b"second"] {
        if let Err(said) = lab.put(&key, body).await {
            return Verdict::differs(format!("PUT: {said}"));
        }
    }
    match lab.ask(Ask::new("GET", &key)).await {
        Ok(answer) if answer.body == b"second" => Verdict::ok("the new content"),
        Ok(answer) if answer.body == b"first content" => {
            Verdict::differs(format!("{}: the previous content", answer.words()))
        }
        other => Verdict::differs(words(&other)),
    }
}

pub(super) async fn head(lab: &mut Lab) -> Verdict {
    let key = lab.key(OBJECT);
    match lab.ask(Ask::new("HEAD", &key)).await {
        Ok(answer) if answer.is_ok() => match answer.field("content-length").parse() {
            Ok(SIZE) => Verdict::ok(format!("Content-Length: {SIZE}")),
            _ => Verdict::differs(format!(
                "Content-Length: {} for an object of {SIZE} bytes",
                answer.field("content-length")
            )),
        },
        other => Verdict::differs(words(&other)),
    }
}

pub(super) async fn metadata(lab: &mut Lab) -> Verdict {
    let key = lab.key("metadata");
    let headers = [("x-amz-meta-doctor", "kept")];
    match lab
        .ask(Ask::new("PUT", &key).headers(&headers).body(b"metadata"))
        .await
    {
        Ok(answer) if answer.is_ok() => {}
        other => return Verdict::differs(words(&other)),
    }
    let method = if lab.works("head") { "HEAD" } else { "GET" };
    match lab.ask(Ask::new(method, &key)).await {
        Ok(answer) if answer.field("x-amz-meta-doctor") == "kept" => {
            Verdict::ok("returned as written")
        }
        Ok(answer) if answer.is_ok() => {
            Verdict::differs(format!("{} without them", answer.words()))
        }
        // Reading is judged elsewhere.
        other => Verdict::not_tried(words(&other)),
    }
}

/// Asks for `range`, expects `status` and the bytes `from..to` of the object.
async fn part(lab: &mut Lab, range: &str, from: usize, to: usize) -> Verdict {
    let key = lab.key(OBJECT);
    let headers = [("range", range)];
    match lab.ask(Ask::new("GET", &key).headers(&headers)).await {
        Ok(answer) if answer.status == 206 && answer.body == lab.content[from..to] => {
            Verdict::ok(format!("206, {} bytes", to - from))
        }
        Ok(answer) if answer.is_ok() => Verdict::differs(format!(
            "{}: {} bytes for Range: {range}",
            answer.words(),
            answer.body.len()
        )),
        other => Verdict::differs(format!("{} for Range: {range}", words(&other))),
    }
}

pub(super) async fn range(lab: &mut Lab) -> Verdict {
    part(lab, "bytes=100-199", 100, 200).await
}

pub(super) async fn range_suffix(lab: &mut Lab) -> Verdict {
    let size = SIZE as usize;
    part(lab, "bytes=-7", size - 7, size).await
}

pub(super) async fn range_unsatisfiable(lab: &mut Lab) -> Verdict {
    let key = lab.key(OBJECT);
    let headers = [("range", "bytes=1000000-1000009")];
    match lab.ask(Ask::new("GET", &key).headers(&headers)).await {
        Ok(answer) if answer.status == 416 => Verdict::ok(answer.words()),
        other => Verdict::differs(words(&other)),
    }
}
