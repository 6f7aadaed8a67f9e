//! Whether the service lets us in: region, signature, addressing, bucket, the right to list.

use bucketload_core::error::OpResult;
use bucketload_wire::dns;

use super::answer::{Answer, Ask, words};
use super::lab::Lab;
use super::verdict::Verdict;
use crate::s3::{Addressing, S3Config};

/// Error codes that mean that the server does not accept who we are.
const NOT_ACCEPTED: [&str; 9] = [
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "InvalidSecurity",
    "InvalidToken",
    "ExpiredToken",
    "TokenRefreshRequired",
    "NotSignedUp",
    "AuthorizationHeaderMalformed",
    "InvalidClientTokenId",
];

pub(super) async fn region(lab: &mut Lab) -> Verdict {
    let ours = lab.config.region.clone();
    let (refused, skewed, theirs, said) = match lab.hello().await {
        Ok(answer) => (
            answer.status >= 300,
            answer.code == "RequestTimeTooSkewed",
            answer.region.clone(),
            answer.words().to_owned(),
        ),
        Err(error) => return Verdict::failed(error.to_string()).remedy("see what the server logs"),
    };
    if skewed {
        lab.skewed = Some(said);
        return Verdict::not_tried("it needs `clock`");
    }
    if !refused || theirs.is_empty() || theirs == ours {
        return Verdict::ok(format!("requests are signed for `{ours}`"));
    }
    let config = S3Config {
        region: theirs.clone(),
        ..lab.config.clone()
    };
    if let Err(error) = lab.use_config(config).await {
        return Verdict::failed(error.to_string());
    }
    Verdict::differs(format!("{said}: the server expects `{theirs}`, requests were signed for `{ours}`"))
        .remedy(format!(
            "--region {theirs}, or the dialect (a region from AWS_REGION or AWS_DEFAULT_REGION would precede it)"
        ))
        .setting("region", theirs)
}

pub(super) async fn signature(lab: &mut Lab) -> Verdict {
    let anonymous = lab.config.credentials.is_none();
    let (code, status, said, theirs) = match lab.hello().await {
        Ok(answer) => (
            answer.code.clone(),
            answer.status,
            answer.words().to_owned(),
            server_canonical(answer),
        ),
        Err(error) => return Verdict::failed(error.to_string()),
    };
    if !NOT_ACCEPTED.contains(&code.as_str()) && status != 401 {
        return Verdict::ok(match anonymous {
            true => "anonymous requests are answered".to_owned(),
            false => format!("accepted ({status})"),
        });
    }
    let mut found = said;
    if code == "SignatureDoesNotMatch" {
        found += &format!("\nour canonical request:\n{}", lab.canonical());
        if !theirs.is_empty() {
            found += &format!("\nthe server's:\n{theirs}");
        }
    }
    Verdict::failed(found)
}

/// The canonical request, or else the string to sign, that the server computed; empty if it does not say.
fn server_canonical(answer: &Answer) -> String {
    let canonical = answer.element("CanonicalRequest");
    canonical
        .or_else(|| answer.element("StringToSign"))
        .unwrap_or_default()
}

/// Whether an answer to the first request is that of a bucket, rather than of something else at this address.
fn is_of_a_bucket(answer: &OpResult<Answer>) -> bool {
    match answer {
        Ok(answer) if answer.status < 300 => {
            let mut listing = false;
            answer.leaves(|path, _| listing |= path.first() == Some(&"ListBucketResult"));
            listing
        }
        // Refused by the bucket's rules, or a kind of listing that the server does not have.
        Ok(answer) => matches!(answer.status, 403 | 501) || answer.status >= 500,
        Err(_) => false,
    }
}

pub(super) async fn addressing(lab: &mut Lab) -> Verdict {
    let style = lab.config.addressing;
    if is_of_a_bucket(lab.hello().await) {
        return Verdict::ok(format!("{style} style"));
    }
    let said = words(lab.hello().await);
    let literal = lab
        .config
        .endpoints
        .iter()
        .any(|e| dns::literal(&e.host).is_some());
    let other = match style {
        Addressing::Path if literal => {
            return Verdict::ok(format!(
                "{style} style; an address cannot carry the bucket's name"
            ));
        }
        Addressing::Path => Addressing::Virtual,
        Addressing::Virtual => Addressing::Path,
    };
    let first = lab.config.clone();
    let config = S3Config {
        addressing: other,
        ..first.clone()
    };
    let moved = lab.use_config(config).await.is_ok();
    if moved && is_of_a_bucket(lab.hello().await) {
        return Verdict::differs(format!("{style} style: {said}; {other} style works"))
            .remedy(format!("--addressing {other}, or the dialect"))
            .setting("addressing", other.name());
    }
    match lab.use_config(first).await {
        Ok(()) => Verdict::ok(format!(
            "{style} style ({other} style does not find the bucket either)"
        )),
        Err(error) => Verdict::failed(error.to_string()),
    }
}

pub(super) async fn bucket(lab: &mut Lab) -> Verdict {
    let (status, code, said) = match lab.hello().await {
        Ok(answer) => (
            answer.status,
            answer.code.clone(),
            answer.words().to_owned(),
        ),
        Err(error) => return Verdict::failed(error.to_string()),
    };
    if status < 300 {
        return Verdict::ok(format!("`{}` exists", lab.bucket));
    }
    let missing = code == "NoSuchBucket" || status == 404;
    if missing && lab.create_bucket {
        return match lab.make_bucket().await {
            Ok(()) => Verdict::ok(format!(
                "`{}` was missing and is created for this examination",
                lab.bucket
            )),
            Err(error) => Verdict::failed(format!("{said}; creating it: {error}")),
        };
    }
    if missing {
        return Verdict::failed(format!("`{}`: {said}", lab.bucket));
    }
    // The listing was refused for a reason of its own.
    match lab.ask(Ask::new("HEAD", "")).await {
        Ok(answer) if answer.status == 404 => {
            Verdict::failed(format!("`{}`: {}", lab.bucket, answer.words()))
        }
        Ok(answer) if answer.status >= 300 && !matches!(answer.status, 403 | 405 | 501) => {
            Verdict::failed(format!("{said}; HEAD: {}", answer.words()))
                .remedy("correct the bucket's name, or see what the server logs")
        }
        Ok(_) => Verdict::ok(format!("`{}` exists", lab.bucket)),
        Err(error) => Verdict::failed(error.to_string()),
    }
}

pub(super) async fn list(lab: &mut Lab) -> Verdict {
    match lab.hello().await {
        Ok(answer) if answer.status == 403 => Verdict::failed(answer.words()),
        Ok(_) => Verdict::ok("not refused"),
        Err(error) => Verdict::failed(error.to_string()),
    }
}
