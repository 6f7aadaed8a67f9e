//! From flags to the Google Cloud Storage driver.

use bucketload_drivers::engines::EngineDriver;
use bucketload_drivers::gcs::{GcsConfig, GcsDriver, GcsOverrides};
use bucketload_drivers::http::TlsConfig;

use super::{Service, engines, flags, limit};
use crate::cli::target::TargetArgs;
use crate::environment;
use crate::exit::Failure;

/// Configuration of the service: flags, then environment, then the files of Google's tools, then
/// defaults.
pub(crate) fn config(args: &TargetArgs) -> Result<GcsConfig, Failure> {
    flags::refuse_but(&[flags::HTTP, flags::GCS], args, "gs://")?;
    let usage = |text: String| Failure::usage(text);
    let large_object = args
        .gcs_large_object
        .map(|way| way.name().parse())
        .transpose()
        .map_err(|e: String| usage(format!("--gcs-large-object: {e}")))?;
    let urls = &args.endpoint_url;
    let overrides = GcsOverrides {
        endpoint_url: (!urls.is_empty()).then(|| urls.join(",")),
        token_file: args.token_file.clone(),
        anonymous: args.no_sign_request,
        large_object,
        tls: TlsConfig {
            ca_bundle: args.ca_bundle.clone(),
            insecure: args.no_verify_ssl,
            client: args.client_cert.clone().zip(args.client_key.clone()),
            no_resume: false,
        },
        source_addresses: args.source_address.clone(),
    };
    let home = environment::home();
    GcsConfig::discover(&overrides, &|name| args.variable(name), home.as_deref())
        .map_err(|e| usage(e.to_string()))
}

/// The driver for the first `wanted` endpoints (`None`: all).
pub(crate) fn open(args: &TargetArgs, wanted: Option<usize>) -> Result<Service, Failure> {
    let mut config = config(args)?;
    limit(&mut config.endpoints, wanted)?;
    service(config, args)
}

/// The driver of `config`, by the client that was asked for.
fn service(config: GcsConfig, args: &TargetArgs) -> Result<Service, Failure> {
    let endpoints = config.endpoints.iter().map(|e| e.url()).collect();
    let engine = engines::gcs(&config, args)?;
    let driver = GcsDriver::new(config).map_err(|e| Failure::usage(e.to_string()))?;
    Ok(Service {
        driver: match engine {
            None => driver.into(),
            Some(engine) => EngineDriver::new(driver, engine).into(),
        },
        endpoints,
    })
}
