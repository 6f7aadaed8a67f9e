//! Requests of web pages from other sites: the headers that a bucket's rules add to a response, and the answer to a
//! browser that asks first (a preflight).

use super::Ctx;
use super::policy::matches;
use crate::error::{Code, S3Error, S3Result};
use crate::headers::{Headers, Name};
use crate::respond::{Body, Head};
use crate::thread::ServerState;
use crate::uri::Target;
use crate::xml_in::{malformed, walk};

/// Name of the document.
pub(crate) const DOCUMENT: &str = "cors";
/// Maximum number of rules: S3's limit.
const MAX_RULES: usize = 100;
/// The methods that a rule can allow.
const METHODS: [&str; 5] = ["GET", "PUT", "HEAD", "POST", "DELETE"];
/// The message for a question that no rule answers.
const FORBIDDEN: &str = "CORSResponse: This CORS request is not allowed. This is usually because the evalution of \
                         Origin, request method / Access-Control-Request-Method or Access-Control-Request-Headers are \
                         not whitelisted by the resource's CORS spec.";

#[derive(Debug, Default, PartialEq, Eq)]
struct Rule {
    origins: Vec<String>,
    methods: Vec<String>,
    headers: Vec<String>,
    exposed: Vec<String>,
    max_age: Option<u64>,
}

/// Reads a document, and checks it.
///
/// # Errors
/// `MalformedXML`, `InvalidRequest` for an unknown method or a text with more than one `*`.
fn rules(document: &[u8]) -> S3Result<Vec<Rule>> {
    let (mut rules, mut rule) = (Vec::new(), Rule::default());
    let invalid = |message: String| Err(S3Error::new(Code::InvalidRequest, message));
    walk(document, |path, text| {
        let ["CORSConfiguration", "CORSRule", rest @ ..] = path else {
            return Ok(());
        };
        let text = text.get().trim().to_owned();
        match *rest {
            [] if rule.origins.is_empty() || rule.methods.is_empty() => return Err(malformed()),
            [] => rules.push(std::mem::take(&mut rule)),
            [name @ ("AllowedOrigin" | "AllowedHeader")] if text.matches('*').count() > 1 => {
                return invalid(format!(
                    "{name} \"{text}\" can not have more than one wildcard."
                ));
            }
            ["AllowedOrigin"] => rule.origins.push(text),
            ["AllowedHeader"] => rule.headers.push(text.to_ascii_lowercase()),
            ["AllowedMethod"] if METHODS.contains(&&*text) => rule.methods.push(text),
            ["AllowedMethod"] => {
                return invalid(format!(
                    "Found unsupported HTTP method in CORS config. Unsupported method is {text}"
                ));
            }
            ["ExposeHeader"] => rule.exposed.push(text),
            ["MaxAgeSeconds"] => rule.max_age = Some(text.parse().map_err(|_| malformed())?),
            _ => {}
        }
        Ok(())
    })?;
    match rules.len() {
        1..=MAX_RULES => Ok(rules),
        _ => Err(malformed()),
    }
}

/// Checks a document before it is kept.
///
/// # Errors
/// As [`rules`].
pub(crate) fn check(document: &[u8]) -> S3Result<()> {
    rules(document).map(drop)
}

/// What a request says of the page that sends it.
struct Asked<'a> {
    origin: &'a str,
    method: &'a str,
    /// The names of the headers that the page wants to send, in lower case.
    headers: Vec<String>,
}

impl<'a> Asked<'a> {
    /// `None` if the request is not from a page of another site. `method` is the request's own.
    fn of(headers: &Headers<'_, 'a>, method: &'a str) -> S3Result<Option<Self>> {
        let Some(origin) = headers.text(Name::Origin)? else {
            return Ok(None);
        };
        let named = headers.text(Name::AccessControlHeaders)?;
        let named = named.unwrap_or_default().split(',').map(str::trim);
        Ok(Some(Self {
            origin,
            method: headers.text(Name::AccessControlMethod)?.unwrap_or(method),
            headers: named
                .filter(|name| !name.is_empty())
                .map(str::to_ascii_lowercase)
                .collect(),
        }))
    }

    /// The first rule that allows the request, and the origin by which it does.
    fn allowed<'r>(&self, rules: &'r [Rule]) -> Option<(&'r Rule, &'r str)> {
        rules.iter().find_map(|rule| {
            let mut origins = rule.origins.iter();
            let origin = origins.find(|origin| matches(origin, self.origin))?;
            let named = |name| rule.headers.iter().any(|pattern| matches(pattern, name));
            let fits = rule.methods.iter().any(|method| method == self.method)
                && self.headers.iter().all(|name| named(name));
            fits.then_some((rule, &**origin))
        })
    }
}

/// The rules of a bucket; `None` if there are none.
fn kept(server: &ServerState, bucket: &str) -> Option<Vec<Rule>> {
    let document = server.store.document(bucket, DOCUMENT).ok().flatten()?;
    rules(&document).ok()
}

/// Adds the headers to the response, whatever it will be, if a rule allows the request.
///
/// # Errors
/// `InvalidArgument` for headers that are not text.
pub(crate) fn mark(
    server: &ServerState,
    target: &Target,
    headers: &Headers<'_, '_>,
    method: &str,
    head: &mut Head,
) -> S3Result<()> {
    let Some(asked) = Asked::of(headers, method)? else {
        return Ok(());
    };
    let rules = kept(server, target.bucket()).unwrap_or_default();
    let Some((rule, origin)) = asked.allowed(&rules) else {
        return Ok(());
    };
    let list = |names: &[String]| names.join(", ").into_bytes();
    if origin == "*" {
        head.always("Access-Control-Allow-Origin", b"*");
    } else {
        head.always("Access-Control-Allow-Origin", asked.origin.as_bytes())
            .always("Access-Control-Allow-Credentials", b"true");
    }
    head.always("Access-Control-Allow-Methods", &list(&rule.methods));
    for (name, names) in [
        ("Access-Control-Allow-Headers", &asked.headers),
        ("Access-Control-Expose-Headers", &rule.exposed),
    ] {
        if !names.is_empty() {
            head.always(name, &list(names));
        }
    }
    if let Some(seconds) = rule.max_age {
        head.always("Access-Control-Max-Age", seconds.to_string().as_bytes());
    }
    head.always(
        "Vary",
        b"Origin, Access-Control-Request-Headers, Access-Control-Request-Method",
    );
    Ok(())
}

/// The answer to a browser that asks whether it may send a request.
pub(crate) fn preflight(ctx: &mut Ctx<'_>, headers: &Headers<'_, '_>) -> S3Result<Body> {
    let bad = |message| Err(S3Error::new(Code::BadRequest, message));
    let Some(asked) = Asked::of(headers, "")? else {
        return bad("Insufficient information. Origin request header needed.");
    };
    if !METHODS.contains(&asked.method) {
        return bad("Insufficient information. A valid Access-Control-Request-Method is needed.");
    }
    ctx.require_bucket()?;
    let rules = kept(ctx.server, ctx.target.bucket()).ok_or(Code::AccessForbidden)?;
    match asked.allowed(&rules) {
        Some(_) => Ok(ctx.empty(200)),
        None => Err(S3Error::new(Code::AccessForbidden, FORBIDDEN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_checked() {
        let read = |rule: &str| {
            let document = format!("<CORSConfiguration>{rule}</CORSConfiguration>");
            rules(document.as_bytes()).map_err(|error| error.code)
        };
        let rule = |more: &str| {
            format!(
                "<CORSRule><AllowedOrigin>a*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>{more}</CORSRule>"
            )
        };
        let good = read(&rule("<MaxAgeSeconds>9</MaxAgeSeconds>")).unwrap();
        assert_eq!((good.len(), good[0].max_age), (1, Some(9)));
        for bad in [
            "",
            "<CORSRule/>",
            "<CORSRule><AllowedOrigin>a</AllowedOrigin></CORSRule>",
            &rule("<MaxAgeSeconds>soon</MaxAgeSeconds>"),
            &rule("").repeat(101),
        ] {
            assert_eq!(read(bad), Err(Code::MalformedXML), "{bad}");
        }
        for bad in [
            "<AllowedMethod>PATCH</AllowedMethod>",
            "<AllowedOrigin>*.*</AllowedOrigin>",
            "<AllowedHeader>x*y*</AllowedHeader>",
        ] {
            assert_eq!(read(&rule(bad)), Err(Code::InvalidRequest), "{bad}");
        }
    }
}
