//! Conditional requests, and whether the server checks what it receives.

use bucketload_core::error::OpResult;
use bucketload_target::doctor::State;

use super::answer::{Answer, Ask, words};
use super::lab::Lab;
use super::verdict::Verdict;
use crate::s3::{ChecksumAlgorithm, PayloadMode, S3Config};

pub(super) async fn get(lab: &mut Lab) -> Verdict {
    let key = lab.key("etag");
    let etag = match lab.ask(Ask::new("GET", &key)).await {
        Ok(answer) => answer.field("etag"),
        Err(error) => return Verdict::differs(error.to_string()),
    };
    if etag.is_empty() {
        return Verdict::not_tried("GET answers without an ETag");
    }
    let cases: [(_, &str, u16); 2] = [
        ("if-none-match", &etag, 304),
        ("if-match", "\"00000000000000000000000000000000\"", 412),
    ];
    for (name, value, wanted) in cases {
        let headers = [(name, value)];
        match lab.ask(Ask::new("GET", &key).headers(&headers)).await {
            Ok(answer) if answer.status == wanted => {}
            other => {
                return Verdict::differs(format!(
                    "{} instead of {wanted} for {name}: {value}",
                    words(&other)
                ));
            }
        }
    }
    Verdict::ok("304 and 412")
}

/// A PUT over an existing object that the condition forbids.
async fn forbidden_put(lab: &mut Lab, name: &'static str, value: &str) -> Verdict {
    let key = lab.key("condition");
    if let Err(said) = lab.put(&key, b"present").await {
        return Verdict::differs(said);
    }
    let headers = [(name, value)];
    match lab
        .ask(Ask::new("PUT", &key).headers(&headers).body(b"replaced"))
        .await
    {
        Ok(answer) if matches!(answer.status, 409 | 412) => Verdict::ok(answer.words()),
        Ok(answer) if answer.is_ok() => {
            Verdict::differs(format!("{}: the object is overwritten", answer.words()))
        }
        other => Verdict::differs(words(&other)),
    }
}

pub(super) async fn put_if_none_match(lab: &mut Lab) -> Verdict {
    let forbidden = forbidden_put(lab, "if-none-match", "*").await;
    if forbidden.state != State::Ok {
        return forbidden;
    }
    let key = lab.key("condition-new");
    let headers = [("if-none-match", "*")];
    match lab
        .ask(Ask::new("PUT", &key).headers(&headers).body(b"new"))
        .await
    {
        Ok(answer) if answer.is_ok() => forbidden,
        other => Verdict::differs(format!("a new object: {}", words(&other))),
    }
}

pub(super) async fn put_if_match(lab: &mut Lab) -> Verdict {
    forbidden_put(lab, "if-match", "\"00000000000000000000000000000000\"").await
}

/// The verdict on a PUT whose hash does not fit.
fn of_a_wrong_hash(answer: OpResult<Answer>) -> Verdict {
    match answer {
        Ok(answer) if (400..500).contains(&answer.status) => {
            Verdict::ok(format!("refused: {}", answer.words()))
        }
        Ok(answer) if answer.is_ok() => Verdict::differs(format!("{}: accepted", answer.words())),
        other => Verdict::differs(words(&other)),
    }
}

pub(super) async fn content_md5(lab: &mut Lab) -> Verdict {
    let key = lab.key("md5");
    // The MD5 of nothing.
    let headers = [("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")];
    let ask = Ask::new("PUT", &key)
        .headers(&headers)
        .body(b"something else");
    of_a_wrong_hash(lab.ask(ask).await)
}

pub(super) async fn payload_hash(lab: &mut Lab) -> Verdict {
    if lab.config.credentials.is_none() {
        return Verdict::not_tried("anonymous requests carry no hash");
    }
    let key = lab.key("sha256");
    let ask = Ask::new("PUT", &key)
        .payload("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        .body(b"something else");
    of_a_wrong_hash(lab.ask(ask).await)
}

pub(super) async fn checksum(lab: &mut Lab) -> Verdict {
    const NAME: &str = "x-amz-checksum-crc32";
    let key = lab.key("checksum");
    // CRC-32 of "123456789" is 0xCBF43926.
    let (body, right, wrong) = (b"123456789", "y/Q5Jg==", "AAAAAA==");
    let headers = [(NAME, right)];
    match lab
        .ask(Ask::new("PUT", &key).headers(&headers).body(body))
        .await
    {
        Ok(answer) if answer.is_ok() => {}
        other => return Verdict::differs(format!("a right checksum: {}", words(&other))),
    }
    let headers = [(NAME, wrong)];
    let other_key = lab.key("checksum-wrong");
    match lab
        .ask(Ask::new("PUT", &other_key).headers(&headers).body(body))
        .await
    {
        Ok(answer) if (400..500).contains(&answer.status) => {}
        other => return Verdict::differs(format!("a wrong checksum: {}", words(&other))),
    }
    if !lab.works("head") {
        return Verdict::ok("checked");
    }
    let headers = [("x-amz-checksum-mode", "ENABLED")];
    match lab.ask(Ask::new("HEAD", &key).headers(&headers)).await {
        Ok(answer) if answer.field(NAME) == right => Verdict::ok("checked, stored and returned"),
        Ok(answer) => Verdict::differs(format!(
            "checked, but {} does not return it",
            answer.words()
        )),
        Err(error) => Verdict::differs(error.to_string()),
    }
}

pub(super) async fn trailer(lab: &mut Lab) -> Verdict {
    let mut modes = vec![PayloadMode::UnsignedTrailer];
    if lab.config.credentials.is_some() {
        modes.push(PayloadMode::StreamingTrailer);
    }
    let key = lab.key("trailer");
    for payload in &modes {
        let config = S3Config {
            payload: *payload,
            checksum: Some(ChecksumAlgorithm::Crc32),
            ..lab.config.clone()
        };
        if let Err(error) = lab.put_as_a_run(&config, &key).await {
            return Verdict::differs(format!("{payload}: {error}"));
        }
    }
    let names: Vec<&str> = modes.iter().map(|mode| mode.name()).collect();
    Verdict::ok(names.join(" and "))
}
