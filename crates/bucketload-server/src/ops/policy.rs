//! What a bucket's policy says to requests without a signature. The owner may do everything, whatever it says.

use serde_json::Value;

use super::Ctx;
use crate::error::{Code, S3Result};
use crate::router::Operation;

/// Name of the document.
pub(crate) const DOCUMENT: &str = "policy";

/// Whether the bucket's policy admits everyone to `operation`, or refuses it; `None` if it says nothing.
pub(crate) fn decides(ctx: &Ctx<'_>, operation: Operation) -> Option<bool> {
    let bucket = ctx.target.bucket();
    let policy = ctx.store().document(bucket, DOCUMENT).ok().flatten()?;
    let policy: Value = serde_json::from_slice(&policy).ok()?;
    let action = action(operation, ctx.target.has("versionId"))?;
    let key = ctx.target.key();
    let slash = if key.is_empty() { "" } else { "/" };
    let resource = ["arn:aws:s3:::", bucket, slash, key].concat();
    decided(&policy, action, &resource)
}

/// Checks the form of a policy before it is kept.
///
/// # Errors
/// `MalformedPolicy`; `AccessDenied` if it is public and the bucket blocks that.
pub(crate) fn check(ctx: &Ctx<'_>, input: &[u8]) -> S3Result<()> {
    let policy: Option<Value> = serde_json::from_slice(input).ok();
    let policy = policy.filter(|policy| policy.get("Statement").is_some());
    let policy = policy.ok_or(Code::MalformedPolicy)?;
    let public = statements(&policy).any(|one| effect(one) == Some(true) && is_for_everyone(one));
    if public && super::acl::blocks(ctx, &["BlockPublicPolicy"]) {
        return Err(Code::AccessDenied.into());
    }
    Ok(())
}

/// The action that a policy must name for `operation`; `None` if only the owner may do it.
const fn action(operation: Operation, version: bool) -> Option<&'static str> {
    Some(match operation {
        Operation::Get | Operation::Head if version => "s3:GetObjectVersion",
        Operation::Get | Operation::Head => "s3:GetObject",
        Operation::Put
        | Operation::PostForm
        | Operation::CreateUpload
        | Operation::UploadPart
        | Operation::CompleteUpload => "s3:PutObject",
        Operation::AbortUpload => "s3:AbortMultipartUpload",
        Operation::ListParts => "s3:ListMultipartUploadParts",
        Operation::Delete if version => "s3:DeleteObjectVersion",
        Operation::Delete => "s3:DeleteObject",
        Operation::List | Operation::ListV1 | Operation::HeadBucket => "s3:ListBucket",
        Operation::ListVersions => "s3:ListBucketVersions",
        Operation::ListUploads => "s3:ListBucketMultipartUploads",
        Operation::GetLocation => "s3:GetBucketLocation",
        _ => return None,
    })
}

/// A refusal wins over an admission. A statement that cannot be judged refuses, but does not admit.
fn decided(policy: &Value, action: &str, resource: &str) -> Option<bool> {
    let mut decided = None;
    for statement in statements(policy) {
        let has = |name: &&str| statement.get(*name).is_some();
        let negated = ["NotPrincipal", "NotAction", "NotResource"].iter().any(has);
        let concerns = is_for_everyone(statement)
            && texts(statement.get("Action")).any(|pattern| {
                matches(&pattern.to_ascii_lowercase(), &action.to_ascii_lowercase())
            })
            && texts(statement.get("Resource")).any(|pattern| matches(pattern, resource));
        match effect(statement) {
            Some(true) if concerns && !negated && !has(&"Condition") => decided = Some(true),
            Some(false) if concerns || negated => return Some(false),
            _ => {}
        }
    }
    decided
}

fn statements(policy: &Value) -> impl Iterator<Item = &Value> {
    list(policy.get("Statement"))
}

/// A value that may stand alone or in a list.
fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    let many = value.and_then(Value::as_array);
    let one = value.filter(|value| !value.is_array());
    many.into_iter().flatten().chain(one)
}

fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    list(value).filter_map(Value::as_str)
}

/// Whether the statement allows; `None` if its effect is unknown.
fn effect(statement: &Value) -> Option<bool> {
    match statement.get("Effect").and_then(Value::as_str) {
        Some("Allow") => Some(true),
        Some("Deny") => Some(false),
        _ => None,
    }
}

fn is_for_everyone(statement: &Value) -> bool {
    let principal = statement.get("Principal");
    let users = principal.and_then(|principal| principal.get("AWS"));
    texts(principal).chain(texts(users)).any(|who| who == "*")
}

/// Whether `text` matches `pattern`, in which `*` stands for any characters and `?` for one.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where to go on when the characters after the last `*` turn out not to fit.
    let mut back = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p + 1, t));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((after, at)) = back else {
                    return false;
                };
                back = Some((after, at + 1));
                p = after;
                t = at + 1;
            }
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match() {
        for (pattern, text, want) in [
            ("", "", true),
            ("*", "", true),
            ("a*", "abc", true),
            ("*suffix", "foo.suffix", true),
            ("*suffix", "foo.suffix.x", false),
            ("start*end", "startend", true),
            ("start*end", "start-end-end", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXcXb", false),
            ("abc", "ab", false),
        ] {
            assert_eq!(matches(pattern, text), want, "{pattern} {text}");
        }
    }

    #[test]
    fn statements_decide() {
        let judged = |statements: &str, action: &str| {
            let policy = serde_json::from_str(&format!("{{\"Statement\":{statements}}}"));
            decided(&policy.unwrap(), action, "arn:aws:s3:::b/k")
        };
        let one = |effect: &str, more: &str| {
            format!(
                "{{\"Effect\":\"{effect}\",\"Principal\":{{\"AWS\":[\"*\"]}},\"Action\":[\"s3:GetObject\",\"s3:put*\"],\
                 \"Resource\":\"arn:aws:s3:::b/*\"{more}}}"
            )
        };
        let (allow, deny) = (one("Allow", ""), one("Deny", ""));
        assert_eq!(judged("[]", "s3:GetObject"), None);
        assert_eq!(judged(&allow, "s3:GetObject"), Some(true));
        assert_eq!(judged(&allow, "s3:PutObject"), Some(true));
        assert_eq!(judged(&allow, "s3:DeleteObject"), None);
        let both = format!("[{allow},{deny}]");
        assert_eq!(judged(&both, "s3:GetObject"), Some(false));
        let condition = ",\"Condition\":{}";
        assert_eq!(judged(&one("Allow", condition), "s3:GetObject"), None);
        let refused = format!("[{allow},{}]", one("Deny", condition));
        assert_eq!(judged(&refused, "s3:GetObject"), Some(false));
        let negated = one("Deny", ",\"NotResource\":\"x\"").replace("s3:put*", "s3:x");
        assert_eq!(judged(&negated, "s3:PutObject"), Some(false));
        let some = allow.replace("[\"*\"]", "\"arn:aws:iam::1:root\"");
        assert_eq!(judged(&some, "s3:GetObject"), None);
        let all = allow.replace("{\"AWS\":[\"*\"]}", "\"*\"");
        assert_eq!(judged(&all, "s3:GetObject"), Some(true));
        let elsewhere = allow.replace("b/*", "b/x*");
        assert_eq!(judged(&elsewhere, "s3:GetObject"), None);
    }
}
