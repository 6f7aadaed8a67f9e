//! From flags to the configuration of the Azure Blob driver.

use bucketload_drivers::azblob::{AzureConfig, AzureDriver, AzureOverrides};
use bucketload_drivers::engines::EngineDriver;

use super::{Service, engines, flags, limit};
use crate::cli::target::TargetArgs;
use crate::environment;
use crate::exit::Failure;

/// Configuration of a storage account: flags, then environment, then defaults.
pub(crate) fn config(args: &TargetArgs) -> Result<AzureConfig, Failure> {
    flags::refuse_but(
        &[flags::HTTP, &["--no-sign-request", "--checksum"]],
        args,
        "az://",
    )?;
    let checksum = args.checksum.map(|c| c.name().parse()).transpose();
    let urls = &args.endpoint_url;
    let overrides = AzureOverrides {
        endpoint_url: (!urls.is_empty()).then(|| urls.join(",")),
        no_sign_request: args.no_sign_request,
        no_verify_ssl: args.no_verify_ssl,
        ca_bundle: args.ca_bundle.clone(),
        client_cert: args.client_cert.clone().zip(args.client_key.clone()),
        checksum: checksum.map_err(|e| Failure::usage(format!("--checksum: {e}")))?,
        source_addresses: args.source_address.clone(),
    };
    AzureConfig::discover(&overrides, &environment::variable)
        .map_err(|e| Failure::usage(e.to_string()))
}

/// The driver for the first `wanted` endpoints (`None`: all).
pub(crate) fn open(args: &TargetArgs, wanted: Option<usize>) -> Result<Service, Failure> {
    let mut config = config(args)?;
    limit(&mut config.endpoints, wanted)?;
    service(config, args)
}

/// The driver of `config`, by the client that was asked for.
fn service(config: AzureConfig, args: &TargetArgs) -> Result<Service, Failure> {
    let endpoints = config.endpoints.iter().map(|e| e.url()).collect();
    let engine = engines::azure(&config, args)?;
    let driver = AzureDriver::new(config).map_err(|e| Failure::usage(e.to_string()))?;
    Ok(Service {
        driver: match engine {
            None => driver.into(),
            Some(engine) => EngineDriver::new(driver, engine).into(),
        },
        endpoints,
    })
}
