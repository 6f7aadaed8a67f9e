//! Object lock: retention and legal hold of versions, and the retention that a bucket gives to new
//! ones. Mode, end and hold are headers of the version; the bucket's rule is one of its documents.

use std::time::SystemTime;

use super::Ctx;
use crate::error::{Code, S3Error, S3Result};
use crate::headers::{Headers, Name};
use crate::respond::{Body, Head};
use crate::xml_in::{malformed, walk};
use bucketload_s3::date;
use bucketload_store::{Headers as Stored, ObjectInfo, Retention, StoreError, Versioning};

/// Name of the document with a bucket's rule, and the subresource.
pub(crate) const DOCUMENT: &str = "object-lock";

const LEGAL_HOLD: &str = Name::ObjectLockLegalHold.text();

fn now() -> u64 {
    date::since_epoch(SystemTime::now()).as_secs()
}

/// Mode and end of a version's retention, in seconds since 1970.
fn retention(headers: &Stored) -> Option<(&str, u64)> {
    let until = headers.get(Stored::LOCK_UNTIL)?.parse().ok()?;
    Some((headers.get(Stored::LOCK_MODE)?, until))
}

/// Whether the request may ignore retention in governance mode.
pub(crate) fn bypasses(headers: &Headers<'_, '_>) -> bool {
    headers
        .bytes(Name::BypassGovernance)
        .is_some_and(|value| value.eq_ignore_ascii_case(b"true"))
}

/// Refuses the removal of a protected version.
pub(crate) fn guard(bypass: bool) -> impl Fn(&ObjectInfo) -> Result<(), StoreError> {
    move |info| {
        let held = info.headers.get(LEGAL_HOLD) == Some("ON");
        let retained = retention(&info.headers)
            .is_some_and(|(mode, until)| until > now() && !(bypass && mode == "GOVERNANCE"));
        if held || retained {
            return Err(StoreError::Locked);
        }
        Ok(())
    }
}

/// Makes sure that the bucket has object lock.
///
/// # Errors
/// `InvalidRequest` if it has none, and the store's.
fn require(ctx: &Ctx<'_>) -> S3Result<()> {
    match ctx.store().document(ctx.target.bucket(), DOCUMENT)? {
        Some(_) => Ok(()),
        None => Err(S3Error::new(
            Code::InvalidRequest,
            "Bucket is missing Object Lock Configuration.",
        )),
    }
}

/// Adds the lock that a request gives to a new object to its headers.
///
/// # Errors
/// `InvalidArgument` for contradictory headers, `InvalidRequest` for a bucket without object lock.
pub(crate) fn collect(
    ctx: &Ctx<'_>,
    headers: &Headers<'_, '_>,
    stored: &mut Stored,
) -> S3Result<()> {
    let invalid = |message: &'static str| S3Error::new(Code::InvalidArgument, message);
    let mode = headers.text(Name::ObjectLockMode)?;
    let until = headers.text(Name::ObjectLockUntil)?;
    let hold = headers.text(Name::ObjectLockLegalHold)?;
    if mode.is_none() && until.is_none() && hold.is_none() {
        return Ok(());
    }
    require(ctx)?;
    match (mode, until) {
        (None, None) => {}
        (Some(mode @ ("GOVERNANCE" | "COMPLIANCE")), Some(until)) => {
            let until = date::parse_iso(until).filter(|until| *until > now());
            let until =
                until.ok_or_else(|| invalid("The retain until date must be in the future."))?;
            stored.set(Stored::LOCK_MODE, Some(mode.to_owned()));
            stored.set(Stored::LOCK_UNTIL, Some(until.to_string()));
        }
        (Some(_), Some(_)) => return Err(invalid("Unknown wormMode directive.")),
        _ => {
            return Err(invalid(
                "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied.",
            ));
        }
    }
    match hold {
        None => {}
        Some(hold @ ("ON" | "OFF")) => stored.set(LEGAL_HOLD, Some(hold.to_owned())),
        Some(_) => return Err(invalid("Legal Hold must be either of 'ON' or 'OFF'.")),
    }
    Ok(())
}

/// Writes the lock of a version into the head of a response.
pub(crate) fn write(head: &mut Head, headers: &Stored) {
    if let Some((_, until)) = retention(headers) {
        head.header(Stored::LOCK_UNTIL, &date::iso(until));
    }
}

/// GetObjectRetention and GetObjectLegalHold.
pub(crate) fn get(ctx: &mut Ctx<'_>) -> S3Result<Body> {
    let info = ctx.object_info()?;
    require(ctx)?;
    if ctx.target.has("retention") {
        let (mode, until) = retention(&info.headers).ok_or(Code::NoSuchObjectLockConfiguration)?;
        let until = date::iso(until);
        let mut doc = ctx.xml("Retention");
        doc.text("Mode", mode)
            .text("RetainUntilDate", &String::from_utf8_lossy(&until));
        return Ok(doc.finish());
    }
    let hold = info.headers.get(LEGAL_HOLD);
    let hold = hold.ok_or(Code::NoSuchObjectLockConfiguration)?;
    let mut doc = ctx.xml("LegalHold");
    doc.text("Status", hold);
    Ok(doc.finish())
}

/// PutObjectRetention and PutObjectLegalHold.
pub(crate) fn put(ctx: &mut Ctx<'_>, input: &[u8], bypass: bool) -> S3Result<Body> {
    require(ctx)?;
    let (bucket, key, version) = (ctx.target.bucket(), ctx.target.key(), ctx.version()?);
    if ctx.target.has("retention") {
        let new = requested_retention(input)?;
        ctx.store().amend(bucket, key, version, &mut |headers, _| {
            replace_retention(headers, new.clone(), bypass)
        })?;
    } else {
        let hold = legal_hold(input)?;
        ctx.store().amend(bucket, key, version, &mut |headers, _| {
            headers.set(LEGAL_HOLD, Some(hold.to_owned()));
            Ok(())
        })?;
    }
    Ok(ctx.empty(200))
}

/// Sets mode and end of a retention, or removes it. One in force may only become longer.
fn replace_retention(
    headers: &mut Stored,
    new: Option<(String, u64)>,
    bypass: bool,
) -> Result<(), StoreError> {
    if let Some((mode, until)) = retention(headers) {
        let longer = new
            .as_ref()
            .is_some_and(|(new_mode, new_until)| new_mode == mode && *new_until >= until);
        if until > now() && !longer && !(bypass && mode == "GOVERNANCE") {
            return Err(StoreError::Locked);
        }
    }
    let (mode, until) = new.unzip();
    headers.set(Stored::LOCK_MODE, mode);
    headers.set(Stored::LOCK_UNTIL, until.map(|until| until.to_string()));
    Ok(())
}

fn is_mode(mode: &str) -> bool {
    matches!(mode, "GOVERNANCE" | "COMPLIANCE")
}

/// Reads the body of PutObjectRetention; `None` removes the retention.
fn requested_retention(body: &[u8]) -> S3Result<Option<(String, u64)>> {
    let (mut seen, mut mode, mut until) = (false, None, None);
    walk(body, |path, text| {
        match *path {
            ["Retention"] => seen = true,
            ["Retention", "Mode"] => mode = Some(text.get().trim().to_owned()),
            ["Retention", "RetainUntilDate"] => {
                until = Some(date::parse_iso(text.get().trim()).ok_or_else(malformed)?);
            }
            _ => {}
        }
        Ok(())
    })?;
    match (mode, until) {
        (None, None) if seen => Ok(None),
        (Some(mode), Some(until)) if is_mode(&mode) => {
            if until <= now() {
                return Err(S3Error::new(
                    Code::InvalidArgument,
                    "The retain until date must be in the future.",
                ));
            }
            Ok(Some((mode, until)))
        }
        _ => Err(malformed()),
    }
}

fn legal_hold(body: &[u8]) -> S3Result<&'static str> {
    let mut status = None;
    walk(body, |path, text| {
        if path == ["LegalHold", "Status"] {
            status = Some(text.get());
        }
        Ok(())
    })?;
    match status.as_deref().map(str::trim) {
        Some("ON") => Ok("ON"),
        Some("OFF") => Ok("OFF"),
        _ => Err(malformed()),
    }
}

/// PutObjectLockConfiguration.
///
/// # Errors
/// `InvalidBucketState` for a bucket without versioning; `MalformedXML` and `InvalidRetentionPeriod`
/// for an invalid rule.
pub(crate) fn put_rule(ctx: &Ctx<'_>, input: &[u8]) -> S3Result<()> {
    let bucket = ctx.target.bucket();
    let rule = rule(input)?;
    if ctx.store().versioning(bucket)? != Versioning::Enabled {
        return Err(S3Error::new(
            Code::InvalidBucketState,
            "Object lock needs a bucket with versioning enabled.",
        ));
    }
    ctx.store().set_retention(bucket, rule)?;
    ctx.store()
        .set_document(bucket, DOCUMENT, Some(input.to_vec()))?;
    Ok(())
}

/// Reads a bucket's rule.
fn rule(body: &[u8]) -> S3Result<Option<Retention>> {
    let (mut enabled, mut ruled, mut mode) = (false, false, None);
    let (mut days, mut years) = (None, None);
    let number = |text: String| text.trim().parse::<i64>().map_err(|_| malformed());
    walk(body, |path, text| {
        let ["ObjectLockConfiguration", rest @ ..] = path else {
            return Ok(());
        };
        match *rest {
            ["ObjectLockEnabled"] if text.get().trim() == "Enabled" => enabled = true,
            ["ObjectLockEnabled"] => return Err(malformed()),
            ["Rule"] => ruled = true,
            ["Rule", "DefaultRetention", "Mode"] => mode = Some(text.get().trim().to_owned()),
            ["Rule", "DefaultRetention", "Days"] => days = Some(number(text.get())?),
            ["Rule", "DefaultRetention", "Years"] => years = Some(number(text.get())?),
            _ => {}
        }
        Ok(())
    })?;
    if !enabled {
        return Err(malformed());
    }
    if !ruled {
        return Ok(None);
    }
    let mode = mode.filter(|mode| is_mode(mode)).ok_or_else(malformed)?;
    let days = match (days, years) {
        (Some(days), None) => days,
        (None, Some(years)) => years.saturating_mul(365),
        _ => return Err(malformed()),
    };
    // A century is longer than any run, and keeps dates within four digits.
    let days = u64::try_from(days)
        .ok()
        .filter(|days| (1..=36_500).contains(days));
    let days = days.ok_or(Code::InvalidRetentionPeriod)?;
    Ok(Some(Retention {
        mode,
        seconds: days * 86_400,
    }))
}

/// The rule of a bucket that was created with object lock.
pub(crate) const CREATED: &[u8] = b"<ObjectLockConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read() {
        let read = |inner: &str| {
            let body = format!("<ObjectLockConfiguration>{inner}</ObjectLockConfiguration>");
            rule(body.as_bytes()).map_err(|error| error.code)
        };
        let enabled = "<ObjectLockEnabled>Enabled</ObjectLockEnabled>";
        let with = |period: &str| {
            read(&format!(
                "{enabled}<Rule><DefaultRetention>{period}</DefaultRetention></Rule>"
            ))
        };
        assert_eq!(read(enabled), Ok(None));
        let two_days = Retention {
            mode: "GOVERNANCE".into(),
            seconds: 2 * 86_400,
        };
        assert_eq!(
            with("<Mode>GOVERNANCE</Mode><Days>2</Days>"),
            Ok(Some(two_days))
        );
        for (bad, code) in [
            (
                "<Mode>GOVERNANCE</Mode><Days>0</Days>",
                Code::InvalidRetentionPeriod,
            ),
            (
                "<Mode>COMPLIANCE</Mode><Years>-1</Years>",
                Code::InvalidRetentionPeriod,
            ),
            ("<Mode>abc</Mode><Years>1</Years>", Code::MalformedXML),
            ("<Mode>COMPLIANCE</Mode>", Code::MalformedXML),
            (
                "<Mode>COMPLIANCE</Mode><Days>1</Days><Years>1</Years>",
                Code::MalformedXML,
            ),
        ] {
            assert_eq!(with(bad), Err(code), "{bad}");
        }
        assert_eq!(read(""), Err(Code::MalformedXML));
    }

    #[test]
    fn a_retention_in_force_only_grows() {
        let soon = now() + 1000;
        let locked = |mode: &str| {
            let mut headers = Stored::default();
            replace_retention(&mut headers, Some((mode.into(), soon)), false).unwrap();
            headers
        };
        let change = |mode: &str, new: Option<(&str, u64)>, bypass| {
            let new = new.map(|(mode, until)| (mode.to_owned(), until));
            replace_retention(&mut locked(mode), new, bypass).is_ok()
        };
        assert!(change("COMPLIANCE", Some(("COMPLIANCE", soon + 1)), false));
        assert!(!change("COMPLIANCE", Some(("COMPLIANCE", soon - 1)), true));
        assert!(!change("COMPLIANCE", Some(("GOVERNANCE", soon + 1)), true));
        assert!(!change("COMPLIANCE", None, true));
        assert!(!change("GOVERNANCE", None, false));
        assert!(change("GOVERNANCE", None, true));
        assert!(!change("GOVERNANCE", Some(("COMPLIANCE", soon)), false));
        assert!(change("GOVERNANCE", Some(("COMPLIANCE", soon)), true));
    }
}
