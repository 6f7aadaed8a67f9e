//! The rules by which objects would expire: they are checked and kept, and nothing acts on them.

use crate::error::{Code, S3Error, S3Result};
use crate::xml_in::{malformed, walk};

/// Name of the document.
pub(crate) const DOCUMENT: &str = "lifecycle";

/// Checks the rules of a lifecycle: a status each, identifiers that differ, and days and dates that
/// can be.
pub(crate) fn check(input: &[u8]) -> S3Result<()> {
    let invalid = |message: &'static str| S3Error::new(Code::InvalidArgument, message);
    let mut ids: Vec<String> = Vec::new();
    let (mut rules, mut status) = (0, false);
    walk(input, |path, text| {
        let ["LifecycleConfiguration", "Rule", rest @ ..] = path else {
            return Ok(());
        };
        match *rest {
            [] => {
                rules += 1;
                if !std::mem::take(&mut status) {
                    return Err(malformed());
                }
            }
            ["Status"] if matches!(text.get().trim(), "Enabled" | "Disabled") => status = true,
            ["Status"] => return Err(malformed()),
            ["ID"] => {
                let id = text.get();
                if id.chars().count() > 255 {
                    return Err(invalid("The ID of a rule must not exceed 255 characters."));
                }
                if ids.contains(&id) {
                    return Err(invalid("The IDs of two rules must differ."));
                }
                ids.push(id);
            }
            [_, "Days" | "NoncurrentDays" | "DaysAfterInitiation"] => {
                let days = text.get().trim().parse::<i64>().map_err(|_| malformed())?;
                if days < 0 || days == 0 && rest[0] == "Expiration" {
                    return Err(invalid("The days of a rule must be a positive number."));
                }
            }
            [_, "Date"] => {
                let second = bucketload_s3::date::parse_iso(text.get().trim());
                let second = second.ok_or_else(malformed)?;
                if second % 86_400 != 0 {
                    return Err(invalid("The date of a rule must be midnight."));
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    if rules == 0 { Err(malformed()) } else { Ok(()) }
}

/// The document with an identifier for each rule that has none, as S3 gives it. `input` is checked.
pub(crate) fn named(input: &[u8]) -> Vec<u8> {
    const RULE: &str = "<Rule>";
    let text = String::from_utf8_lossy(input);
    let mut rules = text.split(RULE);
    let mut out = rules.next().unwrap_or_default().to_owned();
    for (at, rule) in rules.enumerate() {
        out += RULE;
        if !rule.contains("<ID") {
            out += &format!("<ID>bucketload-{}</ID>", at + 1);
        }
        out += rule;
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifecycles_are_checked() {
        let read = |rules: &str| {
            let body = format!("<LifecycleConfiguration>{rules}</LifecycleConfiguration>");
            check(body.as_bytes()).map_err(|error| error.code)
        };
        let rule = |inner: &str| format!("<Rule><Status>Enabled</Status>{inner}</Rule>");
        assert_eq!(
            read(&rule("<ID>a</ID><Expiration><Days>1</Days></Expiration>")),
            Ok(())
        );
        let twice = rule("<ID>a</ID>").repeat(2);
        let long = rule(&format!("<ID>{}</ID>", "a".repeat(256)));
        let zero = rule("<Expiration><Days>0</Days></Expiration>");
        let noon = rule("<Expiration><Date>2030-01-01T12:00:00Z</Date></Expiration>");
        for bad in [&twice, &long, &zero, &noon] {
            assert_eq!(read(bad), Err(Code::InvalidArgument), "{bad}");
        }
        for bad in [
            "",
            "<Rule/>",
            "<Rule><Status>enabled</Status></Rule>",
            &rule("<Expiration><Date>soon</Date></Expiration>"),
        ] {
            assert_eq!(read(bad), Err(Code::MalformedXML), "{bad}");
        }
    }

    #[test]
    fn rules_get_identifiers() {
        let name = |text: &str| String::from_utf8(named(text.as_bytes())).unwrap();
        assert_eq!(
            name("<L><Rule><ID>a</ID></Rule><Rule><Status/></Rule></L>"),
            "<L><Rule><ID>a</ID></Rule><Rule><ID>bucketload-2</ID><Status/></Rule></L>"
        );
    }
}
