//! Which target flags mean something for which target: those that mean nothing are refused.

use crate::cli::target::TargetArgs;
use crate::exit::Failure;

/// Flags that say how to reach any service over HTTP.
pub(crate) const HTTP: &[&str] = &[
    "--endpoint-url",
    "--no-verify-ssl",
    "--ca-bundle",
    "--client-cert",
    "--source-address",
];

/// Flags of S3 alone.
pub(crate) const S3: &[&str] = &[
    "--profile",
    "--region",
    "--no-sign-request",
    "--addressing",
    "--payload-signing",
    "--checksum",
];

/// Flags of Google Cloud Storage alone, and the one that it shares with S3.
pub(crate) const GCS: &[&str] = &["--token-file", "--gcs-large-object", "--no-sign-request"];

/// Flags of file systems.
pub(crate) const POSIX: &[&str] = &[
    "--posix-io",
    "--posix-direct",
    "--posix-fsync",
    "--posix-write",
    "--posix-cache",
    "--posix-drop-caches",
    "--posix-layout",
    "--posix-block",
    "--posix-slot",
    "--posix-threads",
];

/// Flags of Swift alone.
pub(crate) const SWIFT: &[&str] = &[
    "--profile",
    "--region",
    "--no-sign-request",
    "--swift-large-object",
    "--checksum",
];

/// Flags of SeaweedFS alone.
pub(crate) const SEAWEEDFS: &[&str] = &["--seaweedfs-mode", "--seaweedfs-objects"];

/// Flags of libs3.
pub(crate) const LIBS3: &[&str] = &[
    "--libs3-library",
    "--endpoint-url",
    "--region",
    "--addressing",
];

/// Refuses every flag that says where a service is or who asks.
pub(crate) fn refuse_all(args: &TargetArgs, target: &str) -> Result<(), Failure> {
    match given(args).next() {
        None => Ok(()),
        Some(flag) if POSIX.contains(&flag) => Err(Failure::usage(format!(
            "{flag} is for a file system; with target {target} it means nothing. \
             Name a directory: --target file:///DIRECTORY"
        ))),
        Some(flag) => Err(Failure::usage(format!(
            "{flag} is for a service of its own; with target {target} it means nothing. \
             Name the service's bucket: --target s3://BUCKET/PREFIX"
        ))),
    }
}

/// Refuses flags of other APIs: all that are given and not in `known`.
pub(crate) fn refuse_but(
    known: &[&[&str]],
    args: &TargetArgs,
    target: &str,
) -> Result<(), Failure> {
    // How content is sent means something to an embedded server, too.
    let content = [
        ("--checksum", args.checksum.is_some()),
        ("--payload-signing", args.payload_signing.is_some()),
    ];
    let content = content
        .into_iter()
        .filter_map(|(flag, given)| given.then_some(flag));
    let mut all = given(args).chain(content);
    match all.find(|flag| !known.iter().any(|list| list.contains(flag))) {
        None => Ok(()),
        Some(flag) => Err(Failure::usage(format!(
            "{flag} means nothing for {target} targets; leave it out"
        ))),
    }
}

/// The given flags about a service.
fn given(args: &TargetArgs) -> impl Iterator<Item = &'static str> + use<> {
    [
        ("--endpoint-url", !args.endpoint_url.is_empty()),
        ("--profile", args.profile.is_some()),
        ("--region", args.region.is_some()),
        ("--no-sign-request", args.no_sign_request),
        ("--no-verify-ssl", args.no_verify_ssl),
        ("--ca-bundle", args.ca_bundle.is_some()),
        ("--client-cert", args.client_cert.is_some()),
        ("--source-address", !args.source_address.is_empty()),
        ("--addressing", args.addressing.is_some()),
        ("--token-file", args.token_file.is_some()),
        ("--gcs-large-object", args.gcs_large_object.is_some()),
        ("--swift-large-object", args.swift_large_object.is_some()),
        ("--seaweedfs-mode", args.seaweedfs_mode.is_some()),
        ("--seaweedfs-objects", args.seaweedfs_objects.is_some()),
        ("--libs3-library", args.libs3_library.is_some()),
    ]
    .into_iter()
    .chain(args.posix.given())
    .filter_map(|(flag, given)| given.then_some(flag))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::{GCS, HTTP, S3, refuse_all, refuse_but};
    use crate::cli::target::{Checksum, TargetArgs};

    #[test]
    fn flags_of_other_apis_are_refused() {
        let args = TargetArgs {
            checksum: Some(Checksum::value_variants()[0]),
            ..TargetArgs::default()
        };
        assert!(refuse_but(&[HTTP, S3], &args, "s3://").is_ok());
        let refused = refuse_but(&[HTTP, GCS], &args, "gs://").unwrap_err();
        assert!(
            refused
                .message
                .contains("--checksum means nothing for gs://")
        );
        // An embedded server takes checksums, too; it has no endpoint of its own.
        assert!(refuse_all(&args, "mem:").is_ok());
        let args = TargetArgs {
            endpoint_url: vec!["http://h".to_owned()],
            ..TargetArgs::default()
        };
        assert!(
            refuse_all(&args, "mem:")
                .unwrap_err()
                .message
                .contains("--endpoint-url")
        );
    }
}
