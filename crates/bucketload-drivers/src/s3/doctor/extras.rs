//! Copies, tags, versions, and the form of errors.

use bucketload_s3::encode;

use super::answer::{Ask, words};
use super::lab::Lab;
use super::objects::OBJECT;
use super::verdict::Verdict;

pub(super) async fn copy(lab: &mut Lab) -> Verdict {
    let (from, to) = (lab.key(OBJECT), lab.key("copy"));
    let source = format!("/{}/{}", lab.bucket, encode::key_text(&from));
    let headers = [("x-amz-copy-source", source.as_str())];
    match lab.ask(Ask::new("PUT", &to).headers(&headers)).await {
        Ok(answer) if answer.is_ok() => {}
        other => return Verdict::differs(words(&other)),
    }
    if !lab.works("get") {
        return Verdict::ok("accepted");
    }
    match lab.ask(Ask::new("GET", &to)).await {
        Ok(answer) if answer.is_ok() && answer.body == lab.content => {
            Verdict::ok("the same content")
        }
        Ok(answer) if answer.is_ok() => Verdict::differs(format!(
            "accepted, but the copy has {} bytes of other content",
            answer.body.len()
        )),
        other => Verdict::differs(format!(
            "accepted, but the copy cannot be read: {}",
            words(&other)
        )),
    }
}

pub(super) async fn tagging(lab: &mut Lab) -> Verdict {
    let key = lab.key("tags");
    if let Err(said) = lab.put(&key, b"content").await {
        return Verdict::differs(said);
    }
    let document: &[u8] =
        b"<Tagging><TagSet><Tag><Key>doctor</Key><Value>kept</Value></Tag></TagSet></Tagging>";
    let md5 = crate::s3::checksum::content_md5(document);
    let md5 = String::from_utf8_lossy(md5.as_bytes()).into_owned();
    let headers = [("content-md5", md5.as_str())];
    let ask = Ask::new("PUT", &key)
        .query("tagging=")
        .headers(&headers)
        .body(document);
    let put = lab.ask(ask).await;
    if !matches!(&put, Ok(answer) if answer.is_ok()) {
        return Verdict::differs(format!("PUT ?tagging: {}", words(&put)));
    }
    let read = lab.ask(Ask::new("GET", &key).query("tagging=")).await;
    if lab.works("get") {
        match lab.ask(Ask::new("GET", &key)).await {
            Ok(answer) if answer.body == b"content" => {}
            other => {
                return Verdict::differs(format!(
                    "PUT ?tagging replaces the object: {}",
                    words(&other)
                ));
            }
        }
    }
    match &read {
        Ok(answer) if answer.is_ok() && answer.element("Value").as_deref() == Some("kept") => {
            Verdict::ok("returned as written")
        }
        other => Verdict::differs(format!("GET ?tagging: {} without the tag", words(other))),
    }
}

/// Most stores have no appends, and need none; who has them must do them right.
pub(super) async fn append(lab: &mut Lab) -> Verdict {
    let key = lab.key("append");
    if let Err(said) = lab.put(&key, b"first").await {
        return Verdict::not_tried(said);
    }
    let wanted = lab.config.appends();
    let absent = |said: String| match wanted {
        true => Verdict::differs(said),
        false => Verdict::ok(format!("not offered ({said})")),
    };
    let headers = [("x-amz-write-offset-bytes", "5")];
    let at_the_end = Ask::new("PUT", &key).headers(&headers);
    let told = match lab.ask(at_the_end.body(b"-second")).await {
        Ok(answer) if answer.is_ok() => answer,
        other => return absent(words(&other)),
    };
    let content = match lab.ask(Ask::new("GET", &key)).await {
        Ok(answer) if answer.is_ok() => answer.body,
        other => return Verdict::differs(format!("accepted, then GET: {}", words(&other))),
    };
    if content == b"-second" {
        return absent(format!("{}: the offset is ignored", told.words()));
    }
    let size = told.field("x-amz-object-size");
    if content != b"first-second" || size != "12" {
        return Verdict::differs(format!(
            "{}: {} bytes instead of 12, x-amz-object-size: {size:?}",
            told.words(),
            content.len()
        ));
    }
    // It is not the end any more.
    match lab.ask(at_the_end.body(b"-lost")).await {
        Ok(answer) if (400..500).contains(&answer.status) => {
            Verdict::ok("at the end of the object, and only there (--append write-offset)")
                .setting("append", "write-offset")
        }
        Ok(answer) if answer.is_ok() => Verdict::differs(format!(
            "{} for an offset that is not the end: writers at the same time mix their bytes",
            answer.words()
        )),
        other => Verdict::differs(format!("an offset that is not the end: {}", words(&other))),
    }
}

pub(super) async fn versioning(lab: &mut Lab) -> Verdict {
    match lab.ask(Ask::new("GET", "").query("versioning=")).await {
        Ok(answer) if answer.is_ok() => match answer.element("Status").as_deref() {
            Some("Enabled") => Verdict::differs("versioning is enabled"),
            Some(other) => Verdict::ok(format!("versioning: {other}")),
            None => Verdict::ok("the bucket keeps no versions"),
        },
        // Not needed by anything, so its absence is no difference that matters.
        other => Verdict::ok(format!("not offered ({})", words(&other))),
    }
}

pub(super) async fn errors(lab: &mut Lab) -> Verdict {
    let key = lab.key("missing");
    match lab.ask(Ask::new("GET", &key)).await {
        Ok(answer) if answer.status == 404 && answer.code == "NoSuchKey" => {
            Verdict::ok(answer.words())
        }
        Ok(answer) => Verdict::differs(format!(
            "{} ({}) for a missing object, instead of 404 NoSuchKey in XML",
            answer.words(),
            match answer.field("content-type") {
                kind if kind.is_empty() => "without a content type".to_owned(),
                kind => kind,
            }
        )),
        Err(error) => Verdict::differs(error.to_string()),
    }
}
