//! Reading an upload by an HTML form: the fields of a `multipart/form-data` body (RFC 7578), and the
//! policy that the fields must satisfy ("POST Policy", Amazon S3 API reference).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bucketload_s3::date;
use bucketload_s3::encode::hex32;
use bucketload_s3::sigv4::{ALGORITHM, same, signing_key};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha1::Sha1;

use super::claim::split_credential;
use super::config::KeyPair;
use super::error::{Code, S3Error, S3Result};

/// The fields of a form up to its file, and the file.
#[derive(Debug, Default)]
pub(crate) struct Form<'a> {
    /// Names in lower case, and values.
    pub(crate) fields: Vec<(String, String)>,
    /// The file's name; empty if it has none.
    pub(crate) filename: String,
    pub(crate) content: &'a [u8],
}

/// The boundary in the `Content-Type` of a form; `None` if the type is another one.
pub(crate) fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let found = name.trim().eq_ignore_ascii_case("boundary");
        let value = value.trim().trim_matches('"');
        (found && !value.is_empty()).then_some(value)
    })
}

fn malformed() -> S3Error {
    Code::MalformedPOSTRequest.into()
}

/// The position of `wanted` in `bytes`.
fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == first) {
        if bytes[from + at..].starts_with(wanted) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

impl<'a> Form<'a> {
    /// Reads `body`. What follows the file is ignored, as in S3.
    ///
    /// # Errors
    /// `MalformedPOSTRequest`; `InvalidArgument` if there is no file.
    pub(crate) fn read(body: &'a [u8], boundary: &str) -> S3Result<Self> {
        let opening = ["--", boundary].concat();
        let closing = ["\r\n--", boundary].concat();
        let mut form = Self::default();
        let mut rest = &body[find(body, opening.as_bytes()).ok_or_else(malformed)?..];
        rest = &rest[opening.len()..];
        while let Some(part) = rest.strip_prefix(b"\r\n") {
            let (head, content) = match part.strip_prefix(b"\r\n") {
                Some(content) => (&part[..0], content),
                None => {
                    let end = find(part, b"\r\n\r\n").ok_or_else(malformed)?;
                    (&part[..end], &part[end + 4..])
                }
            };
            let end = find(content, closing.as_bytes()).ok_or_else(malformed)?;
            let (name, filename) = disposition(head)?;
            if name == "file" {
                form.filename = filename.unwrap_or_default();
                form.content = &content[..end];
                return Ok(form);
            }
            let value = String::from_utf8(content[..end].to_vec()).map_err(|_| malformed())?;
            form.fields.push((name, value));
            rest = &content[end + closing.len()..];
        }
        Err(S3Error::new(
            Code::InvalidArgument,
            "POST requires exactly one file upload per request.",
        ))
    }

    /// Puts the file's name in the place that the key gives it.
    pub(crate) fn name_by_file(&mut self) {
        let key = self.fields.iter_mut().find(|(name, _)| name == "key");
        if let Some((_, key)) = key {
            *key = key.replace("${filename}", &self.filename);
        }
    }

    /// The field `name`.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Checks that the policy is signed with `keys` for `region`, has not expired at `now` (seconds
    /// since 1970) and allows the upload to `bucket`. Returns `false` for a form without a policy.
    ///
    /// # Errors
    /// The S3 error for the defect.
    pub(crate) fn authorised(
        &self,
        bucket: &str,
        keys: &KeyPair,
        region: &str,
        now: u64,
    ) -> S3Result<bool> {
        let Some(policy) = self.field("policy") else {
            return Ok(false);
        };
        self.check_signature(policy, keys, region)?;
        let policy = BASE64.decode(policy).map_err(|_| bad_policy())?;
        let policy: Value = serde_json::from_slice(&policy).map_err(|_| bad_policy())?;
        let expiration = policy.get("expiration").and_then(Value::as_str);
        let until = expiration
            .and_then(date::parse_iso)
            .ok_or_else(bad_policy)?;
        let conditions = policy.get("conditions").and_then(Value::as_array);
        let conditions = conditions
            .filter(|all| !all.is_empty())
            .ok_or_else(bad_policy)?;
        if now > until {
            return Err(denied("Policy expired."));
        }
        let mut covered = Vec::new();
        for condition in conditions {
            covered.extend(self.check(condition, bucket)?);
        }
        let names = self.fields.iter().map(|(name, _)| name.as_str());
        for name in names.chain(["bucket"]) {
            if !is_exempt(name) && !covered.iter().any(|other| other == name) {
                return Err(denied("A field of the form is not named by the policy."));
            }
        }
        Ok(true)
    }

    fn check_signature(&self, policy: &str, keys: &KeyPair, region: &str) -> S3Result<()> {
        let missing = || {
            S3Error::new(
                Code::InvalidArgument,
                "A form with a policy must have a key id and a signature.",
            )
        };
        let wrong_key = |key: &str| key != keys.access_key;
        if self.field("x-amz-algorithm").is_some() {
            let credential = self.field("x-amz-credential").ok_or_else(missing)?;
            let signature = self.field("x-amz-signature").ok_or_else(missing)?;
            let (key, scope, date) = split_credential(credential).ok_or_else(missing)?;
            if self.field("x-amz-algorithm") != Some(ALGORITHM) {
                return Err(missing());
            }
            if wrong_key(key) {
                return Err(Code::InvalidAccessKeyId.into());
            }
            if scope != [date, "/", region, "/s3/aws4_request"].concat() {
                return Err(Code::SignatureDoesNotMatch.into());
            }
            let secret = keys.secret_key.as_bytes();
            let key = signing_key(secret, date.as_bytes(), region);
            let expected = hex32(&key.mac(policy.as_bytes()));
            if !same(&expected, signature.as_bytes()) {
                return Err(Code::SignatureDoesNotMatch.into());
            }
            return Ok(());
        }
        let key = self.field("awsaccesskeyid").ok_or_else(missing)?;
        let signature = self.field("signature").ok_or_else(missing)?;
        if wrong_key(key) {
            return Err(Code::InvalidAccessKeyId.into());
        }
        let mut mac = Hmac::<Sha1>::new_from_slice(keys.secret_key.as_bytes())
            .map_err(|_| S3Error::from(Code::InternalError))?;
        mac.update(policy.as_bytes());
        let claimed = BASE64.decode(signature).unwrap_or_default();
        mac.verify_slice(&claimed)
            .map_err(|_| Code::SignatureDoesNotMatch.into())
    }

    /// Checks a condition and returns the fields that it names.
    fn check(&self, condition: &Value, bucket: &str) -> S3Result<Vec<String>> {
        let holds = |name: &str, operator: &str, wanted: &str| {
            let value = match name {
                "bucket" => Some(bucket),
                name => self.field(name),
            };
            let fits = |value: &str| match operator {
                "eq" => value == wanted,
                _ => value.starts_with(wanted),
            };
            if value.is_some_and(fits) {
                return Ok(vec![name.to_owned()]);
            }
            Err(denied(format!(
                "Invalid according to Policy: Policy Condition failed: [{operator}, ${name}, {wanted}]"
            )))
        };
        if let Some(exact) = condition.as_object() {
            if exact.is_empty() {
                return Err(bad_policy());
            }
            let mut covered = Vec::new();
            for (name, wanted) in exact {
                let wanted = wanted.as_str().ok_or_else(bad_policy)?;
                covered.extend(holds(&name.to_ascii_lowercase(), "eq", wanted)?);
            }
            return Ok(covered);
        }
        let [operator, first, second] = condition.as_array().ok_or_else(bad_policy)?.as_slice()
        else {
            return Err(bad_policy());
        };
        let operator = operator.as_str().ok_or_else(bad_policy)?;
        if operator.eq_ignore_ascii_case("content-length-range") {
            let bound = |value: &Value| value.as_u64().ok_or_else(bad_policy);
            let (least, most) = (bound(first)?, bound(second)?);
            let size = self.content.len() as u64;
            return match size {
                _ if size < least => Err(S3Error::new(
                    Code::EntityTooSmall,
                    "The file is smaller than the policy allows.",
                )),
                _ if size > most => Err(Code::EntityTooLarge.into()),
                _ => Ok(Vec::new()),
            };
        }
        let name = first.as_str().and_then(|name| name.strip_prefix('$'));
        let name = name.ok_or_else(bad_policy)?.to_ascii_lowercase();
        let wanted = second.as_str().ok_or_else(bad_policy)?;
        match operator.to_ascii_lowercase().as_str() {
            operator @ ("eq" | "starts-with") => holds(&name, operator, wanted),
            _ => Err(bad_policy()),
        }
    }
}

/// Fields that need no condition.
fn is_exempt(name: &str) -> bool {
    matches!(
        name,
        "awsaccesskeyid" | "signature" | "policy" | "file" | "x-amz-signature"
    ) || name.starts_with("x-ignore-")
        || name.starts_with("x-amz-checksum-")
}

fn bad_policy() -> S3Error {
    Code::InvalidPolicyDocument.into()
}

fn denied(message: impl Into<Cow<'static, str>>) -> S3Error {
    S3Error::new(Code::AccessDenied, message)
}

/// Name (in lower case) and file name in the head of a part.
fn disposition(head: &[u8]) -> S3Result<(String, Option<String>)> {
    let head = std::str::from_utf8(head).map_err(|_| malformed())?;
    let line = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-disposition")
            .then_some(value)
    });
    let line = line.ok_or_else(malformed)?;
    let parameter = |wanted: &str| {
        line.split(';').skip(1).find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let found = name.trim().eq_ignore_ascii_case(wanted);
            found.then(|| value.trim().trim_matches('"').to_owned())
        })
    };
    let name = parameter("name").ok_or_else(malformed)?;
    Ok((name.to_ascii_lowercase(), parameter("filename")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BODY: &[u8] = b"--x\r\nContent-Disposition: form-data; name=\"Key\"\r\n\r\na/${filename}\r\n\
        --x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.txt\"\r\nContent-Type: text/plain\r\n\r\n\
        one\r\n--two\r\n--x--\r\n";

    #[test]
    fn forms_are_read() {
        assert_eq!(boundary("multipart/form-data; boundary=\"x\""), Some("x"));
        assert_eq!(boundary("text/plain; boundary=x"), None);
        let mut form = Form::read(BODY, "x").unwrap();
        assert_eq!(form.field("key"), Some("a/${filename}"));
        assert_eq!(
            (form.content, &*form.filename),
            (&b"one\r\n--two"[..], "f.txt")
        );
        form.name_by_file();
        assert_eq!(form.field("key"), Some("a/f.txt"));
        let cut = &BODY[..BODY.len() - 9];
        for (bad, code) in [
            (cut, Code::MalformedPOSTRequest),
            (&b"--y"[..], Code::MalformedPOSTRequest),
            (b"--x--", Code::InvalidArgument),
        ] {
            assert_eq!(Form::read(bad, "x").unwrap_err().code, code);
        }
    }

    fn judged(policy: &str, now: u64) -> Result<bool, Code> {
        let keys = KeyPair {
            access_key: "id".into(),
            secret_key: "secret".into(),
        };
        let policy = BASE64.encode(policy);
        let mut mac = Hmac::<Sha1>::new_from_slice(b"secret").unwrap();
        mac.update(policy.as_bytes());
        let signature = BASE64.encode(mac.finalize().into_bytes());
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let form = Form {
            fields: vec![
                field("key", "foo.txt"),
                field("x-ignore-me", "1"),
                field("awsaccesskeyid", "id"),
                field("signature", &signature),
                field("policy", &policy),
            ],
            filename: String::new(),
            content: b"123",
        };
        form.authorised("bucket", &keys, "us-east-1", now)
            .map_err(|error| error.code)
    }

    #[test]
    fn policies_are_obeyed() {
        let with = |conditions: &str| {
            let policy = format!(
                "{{\"expiration\":\"1970-01-01T00:00:09Z\",\"conditions\":[{conditions}]}}"
            );
            judged(&policy, 9)
        };
        let bucket = "{\"bUcKeT\":\"bucket\"}";
        let both = format!("{bucket},[\"StArTs-WiTh\",\"$KeY\",\"foo\"]");
        assert_eq!(with(&both), Ok(true));
        assert_eq!(
            with(&format!("{both},[\"content-length-range\",3,3]")),
            Ok(true)
        );
        for (bad, code) in [
            (
                format!("{both},[\"content-length-range\",0,2]"),
                Code::EntityTooLarge,
            ),
            (
                format!("{both},[\"content-length-range\",4,9]"),
                Code::EntityTooSmall,
            ),
            (
                format!("{both},[\"content-length-range\",-1,9]"),
                Code::InvalidPolicyDocument,
            ),
            (
                format!("{both},[\"like\",\"$key\",\"f\"]"),
                Code::InvalidPolicyDocument,
            ),
            (
                format!("{both},{{\"acl\":\"private\"}}"),
                Code::AccessDenied,
            ),
            (
                format!("{bucket},[\"eq\",\"$key\",\"foo\"]"),
                Code::AccessDenied,
            ),
            (bucket.to_owned(), Code::AccessDenied),
            ("{\"key\":\"foo.txt\"}".to_owned(), Code::AccessDenied),
            (String::new(), Code::InvalidPolicyDocument),
            ("{}".to_owned(), Code::InvalidPolicyDocument),
        ] {
            assert_eq!(with(&bad), Err(code), "{bad}");
        }
        let policy = |expiration: &str| {
            format!("{{\"expiration\":\"{expiration}\",\"conditions\":[{both}]}}")
        };
        assert_eq!(
            judged(&policy("1970-01-01T00:00:08Z"), 9),
            Err(Code::AccessDenied)
        );
        assert_eq!(judged(&policy("soon"), 9), Err(Code::InvalidPolicyDocument));
        assert_eq!(judged("{}", 9), Err(Code::InvalidPolicyDocument));
    }

    proptest! {
        #[test]
        fn any_body_is_safe(body in "(\r\n|--x|--|:|;|name=|\"|Content-Disposition|\\PC){0,40}") {
            let _ = Form::read(body.as_bytes(), "x");
            let _ = boundary(&body);
        }
    }
}
