//! From flags to the drivers of HDFS.

use bucketload_drivers::hadoop::HadoopOverrides;
#[cfg(feature = "hdfs")]
use bucketload_drivers::hdfs::{HdfsConfig, HdfsDriver};
use bucketload_drivers::http::{Endpoint, TlsConfig};
use bucketload_drivers::webhdfs::{WebHdfsConfig, WebHdfsDriver};

use super::{Service, flags};
use crate::cli::target::TargetArgs;
use crate::environment;
use crate::exit::Failure;

/// Flags that the RPC driver has a use for.
#[cfg(feature = "hdfs")]
const RPC: &[&str] = &["--endpoint-url"];

fn overrides(server: Option<&str>, args: &TargetArgs) -> Result<HadoopOverrides, Failure> {
    let urls = &args.endpoint_url;
    if let (Some(server), Some(url)) = (server, urls.first()) {
        return Err(Failure::usage(format!(
            "--endpoint-url: the target names the server {server} and this flag {url}; leave one out \
             (with the flag, write the target as SCHEME://BUCKET/PREFIX)"
        )));
    }
    Ok(HadoopOverrides {
        authority: server.map(str::to_owned),
        endpoint_url: (!urls.is_empty()).then(|| urls.join(",")),
        tls: TlsConfig {
            ca_bundle: args.ca_bundle.clone(),
            insecure: args.no_verify_ssl,
            client: args.client_cert.clone().zip(args.client_key.clone()),
            no_resume: false,
        },
        source_addresses: args.source_address.clone(),
    })
}

fn env(name: &str) -> Option<String> {
    environment::variable(name)
}

/// Configuration of a WebHDFS target.
pub(super) fn webhdfs_config(
    server: Option<&str>,
    args: &TargetArgs,
) -> Result<WebHdfsConfig, Failure> {
    flags::refuse_but(&[flags::HTTP], args, "webhdfs://")?;
    WebHdfsConfig::discover(&overrides(server, args)?, &env)
        .map_err(|e| Failure::usage(e.to_string()))
}

/// The driver of a WebHDFS target.
pub(super) fn webhdfs(
    server: Option<&str>,
    args: &TargetArgs,
    wanted: Option<usize>,
) -> Result<Service, Failure> {
    let config = webhdfs_config(server, args)?;
    one_endpoint(wanted)?;
    let url = |e: &Endpoint| format!("{}{}", e.url(), config.files.root);
    let endpoints = config.endpoints.iter().map(url).collect();
    let driver = WebHdfsDriver::new(config).map_err(|e| Failure::usage(e.to_string()))?;
    Ok(Service {
        driver: driver.into(),
        endpoints,
    })
}

/// Configuration of a target by RPC.
#[cfg(feature = "hdfs")]
pub(super) fn hdfs_config(server: Option<&str>, args: &TargetArgs) -> Result<HdfsConfig, Failure> {
    flags::refuse_but(&[RPC], args, "hdfs://")?;
    HdfsConfig::discover(&overrides(server, args)?, &env).map_err(|e| Failure::usage(e.to_string()))
}

/// The driver of a target by RPC.
#[cfg(feature = "hdfs")]
pub(super) fn hdfs(
    server: Option<&str>,
    args: &TargetArgs,
    wanted: Option<usize>,
) -> Result<Service, Failure> {
    let config = hdfs_config(server, args)?;
    one_endpoint(wanted)?;
    let endpoints = vec![format!("{}{}", config.url, config.files.root)];
    let driver = HdfsDriver::new(config).map_err(|e| Failure::usage(e.to_string()))?;
    Ok(Service {
        driver: driver.into(),
        endpoints,
    })
}

/// Load is not spread over name nodes: one is active.
fn one_endpoint(wanted: Option<usize>) -> Result<(), Failure> {
    match wanted {
        None | Some(1) => Ok(()),
        Some(n) => Err(Failure::usage(format!(
            "endpoints: {n} are wanted, but of the name nodes of HDFS one is active"
        ))),
    }
}
