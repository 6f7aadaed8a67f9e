//! Turns a refusal into an [`OpError`]: status and error code determine the kind; the document and
//! the configuration supply details for the operator.
//!
//! The codes come from "Common REST API error codes" and "Blob Storage error codes" (Azure Storage
//! REST API reference). Answers to HEAD have no document; only `x-ms-error-code` carries the code.

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_s3::{date, encode, xml};

use crate::http::answer::{self, one_line};
use crate::http::exchange::Refusal;

use super::config::{Auth, AzureConfig};
use super::ops_list::without_mark;

/// Largest allowed clock difference ("Authorize with Shared Key": 15 minutes), in seconds.
const MAX_SKEW: u64 = 15 * 60;

/// Facts from a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RefusalDetails {
    pub(super) code: String,
    message: String,
    /// Why the service rejected the signature.
    authentication: String,
    /// The server's clock, seconds since 1970.
    server_time: Option<u64>,
}

impl RefusalDetails {
    /// A refusal of which only the error code is known.
    pub(super) fn with_code(code: &str) -> Self {
        Self {
            code: tidy(code),
            ..Self::default()
        }
    }

    /// Reads the document and header fields; whatever is missing stays empty.
    pub(super) fn of(refusal: &Refusal) -> Self {
        let mut out = Self::parse(&refusal.body);
        if out.code.is_empty() {
            out.code = tidy(&refusal.field("x-ms-error-code"));
        }
        out.server_time = date::parse_http(refusal.field("date").as_bytes());
        out
    }

    fn parse(body: &[u8]) -> Self {
        let mut out = Self::default();
        // A damaged document still yields the fields before the damage.
        let _ = xml::leaves(without_mark(body), |path, text| match *path {
            ["Error", "Code"] => out.code = tidy(&text.get()),
            ["Error", "Message"] => {
                // Later lines repeat the request ID and time.
                let text = text.get();
                out.message = tidy(text.split("\nRequestId:").next().unwrap_or(""));
            }
            ["Error", "AuthenticationErrorDetail"] => {
                // The string that the server signed follows.
                let text = text.get();
                let first = text.split("Server used following").next().unwrap_or("");
                out.authentication = tidy(first).trim_end_matches('.').to_owned();
            }
            _ => {}
        });
        out
    }
}

/// Reduces `text` to one line of bounded length, without control characters and signatures.
fn tidy(text: &str) -> String {
    one_line(&without_signatures(text))
}

/// Replaces the value of every `sig=` with `***`.
fn without_signatures(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("sig=") {
        out.push_str(&rest[..at + 4]);
        out.push_str("***");
        rest = &rest[at + 4..];
        let value = |c: char| c.is_ascii_alphanumeric() || "%+/=-_".contains(c);
        rest = rest.trim_start_matches(value);
    }
    out.push_str(rest);
    out
}

/// The error for an answer with `status`. `now` is the local clock, in seconds since 1970.
pub(super) fn to_error(
    status: u16,
    refusal: &RefusalDetails,
    config: &AzureConfig,
    now: u64,
) -> OpError {
    let code = refusal.code.as_str();
    let kind = kind_of(status, code, &refusal.message);
    let mut detail = answer::refusal_text(status, code, refusal.message.trim_end_matches('.'));
    if !refusal.authentication.is_empty() {
        detail += &format!(" ({})", refusal.authentication);
    }
    if kind == ErrorKind::Auth {
        detail += &authentication_hint(code, refusal, config, now);
    }
    detail += match code {
        "InvalidResourceName" => {
            "; container names have 3 to 63 lower-case letters, digits and single hyphens"
        }
        "ContainerBeingDeleted" => {
            "; the name of a deleted container cannot be reused for about 30 seconds"
        }
        "PublicAccessNotPermitted" => "; the account does not allow anonymous access",
        "BlobArchived" => "; the blob is in the archive tier",
        _ => "",
    };
    if let Auth::SharedKey(key) = &config.auth
        && !key.expose().is_empty()
    {
        detail = detail.replace(key.expose(), "***");
    }
    OpError::with_status(kind, status, detail)
}

/// Advice for the user on a refused authorisation.
fn authentication_hint(
    code: &str,
    refusal: &RefusalDetails,
    config: &AzureConfig,
    now: u64,
) -> String {
    if let Some(server) = refusal.server_time
        && server.abs_diff(now) > MAX_SKEW
    {
        let minutes = server.abs_diff(now) / 60;
        let word = if now > server { "ahead of" } else { "behind" };
        return format!(
            "; this machine's clock is {minutes} minutes {word} the server's; at most 15 are \
             allowed, so set the clock"
        );
    }
    match &config.auth {
        Auth::Sas(token) => {
            let token = token.expose();
            let value = |name: &str| {
                let mut pairs = token.split('&').filter_map(|pair| pair.split_once('='));
                pairs
                    .find(|(n, _)| *n == name)
                    .map(|(_, v)| encode::decode(v))
            };
            let at = |name: &str| value(name).and_then(|v| Some((date::parse_iso(&v)?, v)));
            match (at("st"), at("se")) {
                (_, Some((end, text))) if end <= now => {
                    format!("; the SAS token expired at {}: get a new one", tidy(&text))
                }
                (Some((start, text)), _) if start > now => {
                    format!("; the SAS token is not valid before {}", tidy(&text))
                }
                _ => format!(
                    "; check that the SAS token was copied completely; it permits `{}`",
                    tidy(&value("sp").unwrap_or_default())
                ),
            }
        }
        Auth::SharedKey(_) => {
            let more = match code {
                "AuthenticationFailed" => "",
                _ => ", and that the account's network rules allow this machine",
            };
            format!(
                "; check that AZURE_STORAGE_KEY (or AccountKey) is the key of account `{}`{more}",
                config.account
            )
        }
        Auth::Anonymous => {
            "; requests were sent without authorisation (--no-sign-request)".to_owned()
        }
    }
}

/// The error kind for a status and an error code.
fn kind_of(status: u16, code: &str, message: &str) -> ErrorKind {
    let no_space = status >= 500 && message.to_ascii_lowercase().contains("no space left");
    if status == 507 || no_space || code == "InsufficientStorage" {
        return ErrorKind::Full;
    }
    match code {
        "ServerBusy" | "TooManyRequests" => return ErrorKind::Throttled,
        "AuthenticationFailed"
        | "AuthorizationFailure"
        | "AuthorizationPermissionMismatch"
        | "AuthorizationProtocolMismatch"
        | "AuthorizationResourceTypeMismatch"
        | "AuthorizationServiceMismatch"
        | "AuthorizationSourceIPMismatch"
        | "InsufficientAccountPermissions"
        | "InvalidAuthenticationInfo"
        | "KeyBasedAuthenticationNotPermitted"
        | "NoAuthenticationInformation"
        | "PublicAccessNotPermitted"
        | "AccountIsDisabled" => return ErrorKind::Auth,
        "UnsupportedHttpVerb" | "APINotImplemented" | "StrictModelNotSupported" => {
            return ErrorKind::Unsupported;
        }
        // The caller is authorised, and repeating the request would not help.
        "BlobArchived" | "BlobBeingRehydrated" => return ErrorKind::Rejected,
        // Another upload to the same blob was committed first and discarded our blocks.
        "InvalidBlockList" => return ErrorKind::Conflict,
        _ => {}
    }
    answer::kind_of(status)
}

#[cfg(test)]
#[path = "error_map_tests.rs"]
mod tests;
