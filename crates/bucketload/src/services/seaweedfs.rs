//! From flags to the SeaweedFS driver.

use bucketload_drivers::http::TlsConfig;
use bucketload_drivers::seaweedfs::{Mode, SeaweedConfig, SeaweedDriver, SeaweedOverrides};

use super::{Service, flags, limit};
use crate::cli::target::TargetArgs;
use crate::environment;
use crate::exit::Failure;

/// Configuration of the service: flags, then our own variables, then SeaweedFS's default ports.
pub(crate) fn config(args: &TargetArgs) -> Result<SeaweedConfig, Failure> {
    flags::refuse_but(&[flags::HTTP, flags::SEAWEEDFS], args, "seaweedfs://")?;
    let urls = &args.endpoint_url;
    let mode = args.seaweedfs_mode.map(|mode| mode.name().parse());
    let overrides = SeaweedOverrides {
        endpoint_url: (!urls.is_empty()).then(|| urls.join(",")),
        mode: mode
            .transpose()
            .map_err(|e: String| Failure::usage(format!("--seaweedfs-mode: {e}")))?,
        objects: args.seaweedfs_objects,
        tls: TlsConfig {
            ca_bundle: args.ca_bundle.clone(),
            insecure: args.no_verify_ssl,
            client: args.client_cert.clone().zip(args.client_key.clone()),
            no_resume: false,
        },
        source_addresses: args.source_address.clone(),
    };
    SeaweedConfig::new(&overrides, &environment::variable)
        .map_err(|e| Failure::usage(e.to_string()))
}

/// The driver for the first `wanted` endpoints (`None`: all).
pub(crate) fn open(args: &TargetArgs, wanted: Option<usize>) -> Result<Service, Failure> {
    let mut config = config(args)?;
    limit(&mut config.endpoints, wanted)?;
    service(config)
}

/// The driver of `config`.
fn service(config: SeaweedConfig) -> Result<Service, Failure> {
    let endpoints = config.endpoints.iter().map(|e| e.url()).collect();
    let driver = SeaweedDriver::new(config).map_err(|e| Failure::usage(e.to_string()))?;
    Ok(Service {
        driver: driver.into(),
        endpoints,
    })
}

/// Refuses to look for what an earlier run left behind where that cannot be seen: with a master, objects
/// are known to the process alone that wrote them.
pub(crate) fn refuse_unlisted(args: &TargetArgs, bucket: &str) -> Result<(), Failure> {
    if config(args)?.mode == Mode::Filer {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "cleanup: a SeaweedFS master lists no objects, so that nobody knows what earlier runs left; \
         if the collection holds nothing else, delete it: http://MASTER/col/delete?collection={bucket}"
    )))
}
