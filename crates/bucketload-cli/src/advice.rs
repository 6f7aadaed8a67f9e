//! What to do about the failures that end a run before it begins: the remedy, by the cause that the driver names.
//!
//! Drivers know what happened and where, but not the flags of the command line, and one cause calls for the same remedy
//! whatever the API.

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_run::RunError;

/// The message of `error`, with a remedy if there is one. `endpoints` are those of the target.
pub(crate) fn explained(error: &RunError, endpoints: &[String]) -> String {
    let remedy = match error {
        RunError::Unreachable(error) | RunError::Bucket { error, .. } => remedy(error),
        RunError::NoBucket { .. } => {
            return match endpoints.iter().find_map(|url| path_of(url)) {
                None => format!("{error} (--create-bucket)"),
                Some(path) => format!(
                    "{error} (--create-bucket)\n  help: the path {path} of --endpoint-url comes before the bucket in \
                     every request; omit it if it is the bucket"
                ),
            };
        }
        // The message itself names the limit on open files.
        RunError::Session { error, .. } => {
            remedy(error).filter(|_| !error.detail.contains("Too many open files"))
        }
        _ => None,
    };
    with_remedy(error.to_string(), remedy)
}

/// `message` with a remedy on a line of its own.
pub(crate) fn with_remedy(message: String, remedy: Option<&str>) -> String {
    match remedy {
        Some(remedy) => format!("{message}\n  help: {remedy}"),
        None => message,
    }
}

/// The path of a URL, if it has one.
fn path_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let path = &rest[rest.find('/')?..];
    (path.len() > 1).then_some(path)
}

/// The remedies of a kind of failure: what its text contains, and what to do (nothing if the text says it). The first
/// that fits applies.
type Remedies = &'static [(&'static str, &'static str)];

/// What to do about a failure; `None` if it says so itself, or nothing general can be said.
pub(crate) fn remedy(error: &OpError) -> Option<&'static str> {
    let remedies: Remedies = match error.kind {
        ErrorKind::Connect => CONNECT,
        ErrorKind::Timeout => TIMEOUT,
        ErrorKind::Tls => TLS,
        ErrorKind::Protocol | ErrorKind::Reset => PROTOCOL,
        ErrorKind::Auth => AUTH,
        ErrorKind::Full => FULL,
        ErrorKind::Throttled => THROTTLED,
        ErrorKind::NotFound | ErrorKind::Conflict => FILES,
        ErrorKind::Rejected => REJECTED,
        _ => &[],
    };
    let mut fitting = remedies.iter();
    let fits = fitting.find(|(text, _)| error.detail.contains(text));
    fits.map(|(_, remedy)| *remedy)
        .filter(|remedy| !remedy.is_empty())
}

const CONNECT: Remedies = &[
    (
        "refused",
        "nothing listens there; check host and port of --endpoint-url, and whether the store runs",
    ),
    (
        "cannot resolve",
        "check the name in --endpoint-url; `getent hosts NAME` shows what this host makes of it",
    ),
    (
        "unreachable",
        "this host has no route there; use an address that it can reach, such as the store's IPv4 address",
    ),
    (
        " from ",
        "--source-address must be an address of this host; `ip address` lists them",
    ),
    (
        "to [",
        "this host has no IPv6 address from which it could be reached; use the store's IPv4 address",
    ),
    (
        "Cannot assign requested address",
        "every local port is in use: connect to several endpoints, spread connections over several addresses \
         (--source-address), or widen net.ipv4.ip_local_port_range",
    ),
    (
        "Too many open files",
        "raise the limit with `ulimit -n 65536`, or use fewer workers",
    ),
    (
        "has no address",
        "name an endpoint and a --source-address of the same kind, IPv4 or IPv6",
    ),
    (
        "timed out",
        "nothing answers there; check host and port of --endpoint-url, and firewalls on the way",
    ),
];

const TIMEOUT: Remedies = &[(
    "",
    "nothing answers there; check host and port of --endpoint-url, and firewalls on the way; --timeout sets how long \
     to wait",
)];

const TLS: Remedies = &[
    (
        "does not speak TLS",
        "write http:// in --endpoint-url, or name the port that speaks TLS",
    ),
    (
        "not trusted here",
        "trust it with --ca-bundle FILE (the certificate of its authority, PEM), or accept any certificate with \
         --insecure",
    ),
    (
        "expired",
        "renew the certificate, or accept any certificate with --insecure",
    ),
    (
        "for this name",
        "use a name of the certificate in --endpoint-url, or accept any certificate with --insecure",
    ),
];

const PROTOCOL: Remedies = &[
    ("answers in TLS", "write https:// in --endpoint-url"),
    (
        "malformed message head",
        "this is no HTTP server; check the port in --endpoint-url",
    ),
    (
        "cannot be read",
        "something answers, but not as this API does; check the port in --endpoint-url: a store's web console has \
         another one than its API",
    ),
    (
        "before the first byte",
        "the server, or something before it, ends connections at once; check the port in --endpoint-url, and whether \
         it wants https://",
    ),
];

const AUTH: Remedies = &[
    (
        "InvalidAccessKeyId",
        "the store does not know this access key; check AWS_ACCESS_KEY_ID, or the profile",
    ),
    (
        "SignatureDoesNotMatch",
        "the secret does not belong to this access key; check AWS_SECRET_ACCESS_KEY, or the profile",
    ),
    (
        "ExpiredToken",
        "get new temporary credentials, with their AWS_SESSION_TOKEN",
    ),
    (
        "os error",
        "this user of the host may not do that there; name another directory, or change its owner or mode",
    ),
    // These texts say what to do themselves.
    ("(set --region)", ""),
    ("clock", ""),
    (
        "",
        "the user of these credentials may not do this; check the credentials, and the rights of their user in this \
         bucket",
    ),
];

const FULL: Remedies = &[("", "make room in the store, or raise the quota")];

const THROTTLED: Remedies = &[("", "the store is too busy to begin; try again later")];

const FILES: Remedies = &[
    (
        "Not a directory",
        "name a directory; a file is in its place",
    ),
    ("open of", "create the directory first, with mkdir"),
    (
        "mkdir of",
        "name a directory in which this user may create files",
    ),
];

const REJECTED: Remedies = &[
    (
        "InvalidBucketName",
        "S3 names buckets with 3 to 63 lower-case letters, digits, dots and hyphens",
    ),
    ("(set --endpoint-url)", ""),
    (
        "Redirect",
        "the bucket is in another region or at another endpoint; set --region or --endpoint-url",
    ),
    (
        "400 without an explanation",
        "if the port speaks TLS, write https:// in --endpoint-url",
    ),
];

#[cfg(test)]
mod tests {
    use bucketload_core::error::{ErrorKind, OpError};
    use bucketload_run::RunError;

    use super::explained;

    #[test]
    fn a_used_up_range_of_ports_is_not_a_wrong_source_address() {
        let said = |detail: &str| {
            let error = OpError::new(ErrorKind::Connect, detail);
            explained(&RunError::Session { open: 5, error }, &[])
        };
        let refused = "Cannot assign requested address (os error 99)";
        let ports = said(&format!("cannot connect to 10.0.0.1:9000: {refused}"));
        assert!(ports.contains("net.ipv4.ip_local_port_range"), "{ports}");
        let source = said(&format!(
            "cannot connect to 10.0.0.1:9000 from 10.0.0.9: {refused}"
        ));
        assert!(source.contains("ip address"), "{source}");
        // The message of a worker without session says this itself.
        let files = said("cannot connect to 10.0.0.1:9000: Too many open files (os error 24)");
        assert!(!files.contains("help:"), "{files}");
    }
}
