//! From flags to the configuration of the S3 driver.

use bucketload_drivers::s3::{Credentials, Endpoint, S3Config, S3Overrides, Secret};

use super::{Service, engines, flags, limit};
use crate::cli::target::TargetArgs;
use crate::embedded::EmbeddedServer;
use crate::environment;
use crate::exit::Failure;

/// Configuration of an S3 service: flags, then environment, then profile files, then defaults.
pub(crate) fn config(args: &TargetArgs) -> Result<S3Config, Failure> {
    flags::refuse_but(&[flags::HTTP, flags::S3], args, "s3://")?;
    let home = environment::home();
    S3Config::discover(
        &overrides(args)?,
        &|name| args.variable(name),
        home.as_deref(),
    )
    .map_err(|e| Failure::usage(e.to_string()))
}

/// Configuration of the embedded server. Flags that say how to talk to it apply; those that say
/// where it is were refused before.
pub(crate) fn embedded(server: &EmbeddedServer, args: &TargetArgs) -> Result<S3Config, Failure> {
    let url = format!("http://{}", server.address);
    let endpoints = Endpoint::parse_list(&url, "embedded server")
        .map_err(|e| Failure::aborted(e.to_string()))?;
    let credentials = Credentials {
        access_key: server.access_key.clone(),
        secret_key: Secret::new(&server.secret_key),
        session_token: None,
    };
    let mut config = S3Config::new(endpoints, "us-east-1", Some(credentials));
    let overrides = overrides(args)?;
    config.payload = overrides.payload.unwrap_or(config.payload);
    config.checksum = overrides.checksum.or(config.checksum);
    Ok(config)
}

fn overrides(args: &TargetArgs) -> Result<S3Overrides, Failure> {
    let urls = &args.endpoint_url;
    Ok(S3Overrides {
        profile: args.profile.clone(),
        region: args.region.clone(),
        endpoint_url: (!urls.is_empty()).then(|| urls.join(",")),
        no_sign_request: args.no_sign_request,
        no_verify_ssl: args.no_verify_ssl,
        ca_bundle: args.ca_bundle.clone(),
        client_cert: args.client_cert.clone().zip(args.client_key.clone()),
        addressing: parse("--addressing", args.addressing.map(|a| a.name()))?,
        payload: parse("--payload-signing", args.payload_signing.map(|p| p.name()))?,
        checksum: parse("--checksum", args.checksum.map(|c| c.name()))?,
        source_addresses: args.source_address.clone(),
        ..S3Overrides::default()
    })
}

fn parse<T: std::str::FromStr<Err = String>>(
    flag: &str,
    name: Option<&str>,
) -> Result<Option<T>, Failure> {
    name.map(str::parse)
        .transpose()
        .map_err(|e| Failure::usage(format!("{flag}: {e}")))
}

/// The driver for the first `wanted` endpoints (`None`: all).
pub(crate) fn open(args: &TargetArgs, wanted: Option<usize>) -> Result<Service, Failure> {
    let mut config = config(args)?;
    limit(&mut config.endpoints, wanted)?;
    engines::service(config, args)
}
