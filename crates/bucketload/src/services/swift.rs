//! From flags to the Swift driver, signed in.

use bucketload_drivers::engines::EngineDriver;
use bucketload_drivers::swift::{
    LargeObject, SignInError, SwiftConfig, SwiftDriver, SwiftOverrides,
};

use super::{Service, engines, flags};
use crate::cli::target::{Checksum, TargetArgs};
use crate::environment;
use crate::exit::Failure;

/// Configuration of a Swift service: flags, then environment or `clouds.yaml`, then defaults.
///
/// # Errors
/// When a flag means nothing for Swift, or a setting cannot be used.
pub(crate) fn config(args: &TargetArgs) -> Result<SwiftConfig, Failure> {
    flags::refuse_but(&[flags::HTTP, flags::SWIFT], args, "swift://")?;
    let etag = match args.checksum {
        None => false,
        Some(Checksum::Md5) => true,
        Some(other) => {
            return Err(Failure::usage(format!(
                "--checksum: Swift knows no {} of objects; use md5",
                other.name()
            )));
        }
    };
    let urls = &args.endpoint_url;
    let overrides = SwiftOverrides {
        cloud: args.profile.clone(),
        region: args.region.clone(),
        endpoint_url: (!urls.is_empty()).then(|| urls.join(",")),
        anonymous: args.no_sign_request,
        no_verify_ssl: args.no_verify_ssl,
        ca_bundle: args.ca_bundle.clone(),
        client_cert: args.client_cert.clone().zip(args.client_key.clone()),
        large_object: match args.swift_large_object {
            Some(kind) => kind.into(),
            None => LargeObject::default(),
        },
        etag,
        source_addresses: args.source_address.clone(),
    };
    let home = environment::home();
    SwiftConfig::discover(&overrides, &|name| args.variable(name), home.as_deref())
        .map_err(|e| Failure::usage(e.to_string()))
}

/// Signs in and sets up the driver, with the first `wanted` hosts (`None`: all).
///
/// # Errors
/// When signing in fails, or there are fewer hosts than wanted.
pub(crate) fn service(args: &TargetArgs, wanted: Option<usize>) -> Result<Service, Failure> {
    let mut config = config(args)?;
    // Without hosts of its own there is one: that of the storage URL.
    if wanted != Some(1) || !config.hosts.is_empty() {
        super::limit(&mut config.hosts, wanted)?;
    }
    let engine = engines::swift(&config, args)?;
    let driver = SwiftDriver::sign_in(config).map_err(|error| match error {
        SignInError::Config(error) => Failure::usage(error.to_string()),
        SignInError::Refused(error) => Failure::target(error.to_string()),
    })?;
    Ok(Service {
        endpoints: driver.endpoints(),
        driver: match engine {
            None => driver.into(),
            Some(engine) => EngineDriver::new(driver, engine).into(),
        },
    })
}
