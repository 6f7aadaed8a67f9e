//! S3, OpenStack Swift, Azure and Google Cloud Storage, by whatever client `--engine` names.

use bucketload_core::driver::AnyDriver;
use bucketload_drivers::azblob::AzureConfig;
use bucketload_drivers::engines::EngineDriver;
use bucketload_drivers::engines::cli::{CliEngine, Tool};
use bucketload_drivers::gcs::GcsConfig;
use bucketload_drivers::http::ConfigError;
use bucketload_drivers::posix::{PosixConfig, PosixDriver};
use bucketload_drivers::s3::{S3Config, S3Driver};
use bucketload_drivers::swift::SwiftConfig;

use super::Service;
use crate::cli::target::{Engine, TargetArgs};
use crate::exit::Failure;

/// Refuses another client than our own.
///
/// # Errors
/// When one was asked for.
pub(crate) fn refuse(args: &TargetArgs, target: &str) -> Result<(), Failure> {
    match (args.engine, args.engine_retries) {
        (None | Some(Engine::Native), None) => Ok(()),
        (None | Some(Engine::Native), Some(_)) => Err(Failure::usage(
            "--engine-retries: the native client never repeats a request by itself; \
             the workload's `retry` says how often an operation is tried, and each attempt counts",
        )),
        (Some(_), _) => Err(Failure::usage(format!(
            "--engine: no such client drives {target} targets; leave the flag out for `native`"
        ))),
    }
}

/// The client for the Swift target of `config` that was asked for; `None` for our own.
///
/// # Errors
/// When it is not Swift's, not installed, or cannot be told a setting.
pub(crate) fn swift(config: &SwiftConfig, args: &TargetArgs) -> Result<Option<CliEngine>, Failure> {
    if args.engine != Some(Engine::Cli(Tool::Swift)) {
        return refuse(args, "swift://").map(|()| None);
    }
    CliEngine::swift(config, args.engine_retries.unwrap_or(0))
        .map(Some)
        .map_err(|e| Failure::usage(e.to_string()))
}

/// The client for the Azure target of `config` that was asked for; `None` for our own.
///
/// # Errors
/// When it is not Azure's, not installed, or cannot be told a setting.
pub(crate) fn azure(config: &AzureConfig, args: &TargetArgs) -> Result<Option<CliEngine>, Failure> {
    if args.engine != Some(Engine::Cli(Tool::Az)) {
        return refuse(args, "az://").map(|()| None);
    }
    CliEngine::azure(config, args.engine_retries.unwrap_or(0))
        .map(Some)
        .map_err(|e| Failure::usage(e.to_string()))
}

/// The client for the target of `config` at Google Cloud Storage that was asked for; `None` for our own.
///
/// # Errors
/// When it is not gsutil, not installed, or cannot be told a setting.
pub(crate) fn gcs(config: &GcsConfig, args: &TargetArgs) -> Result<Option<CliEngine>, Failure> {
    if args.engine != Some(Engine::Cli(Tool::Gsutil)) {
        return refuse(args, "gs://").map(|()| None);
    }
    CliEngine::gcs(config, args.engine_retries.unwrap_or(0))
        .map(Some)
        .map_err(|e| Failure::usage(e.to_string()))
}

/// The driver for the S3 target of `config` with the client that was asked for.
///
/// # Errors
/// When the client is not part of this build, not installed, or cannot be told a setting.
pub(crate) fn service(config: S3Config, args: &TargetArgs) -> Result<Service, Failure> {
    let usage = |e: ConfigError| Failure::usage(e.to_string());
    let endpoints = config.endpoints.iter().map(|e| e.url()).collect();
    let local = match &args.local_files {
        None => None,
        Some(_) if !matches!(args.engine, None | Some(Engine::Native)) => {
            return Err(Failure::usage(
                "--engine: COSBench's localwrite is performed by the native client only",
            ));
        }
        Some(root) => {
            Some(PosixDriver::new(PosixConfig::new(root.clone())).map_err(Failure::usage)?)
        }
    };
    let native = S3Driver::with_local_files(config.clone(), local).map_err(usage)?;
    let retries = args.engine_retries.unwrap_or(0);
    let driver = match args.engine.unwrap_or(Engine::Native) {
        Engine::Native => {
            refuse(args, "s3://")?;
            native.into()
        }
        Engine::Cli(tool) => {
            let engine = CliEngine::new(tool, &config, retries).map_err(usage)?;
            EngineDriver::new(native, engine).into()
        }
        Engine::AwsSdk => aws_sdk(native, &config, retries)?,
        Engine::ObjectStore => object_store(native, &config, retries)?,
        Engine::Opendal => opendal(native, &config, retries)?,
    };
    Ok(Service { driver, endpoints })
}

/// One function per library: the driver where it is part of the build, the reason where it is not.
macro_rules! library {
    ($function:ident, $feature:literal, $name:literal, $module:ident :: $engine:ident) => {
        #[cfg(feature = $feature)]
        fn $function(
            native: S3Driver,
            config: &S3Config,
            retries: u32,
        ) -> Result<AnyDriver, Failure> {
            let engine = bucketload_drivers::engines::$module::$engine::new(config, retries)
                .map_err(|e| Failure::usage(e.to_string()))?;
            Ok(EngineDriver::new(native, engine).into())
        }

        #[cfg(not(feature = $feature))]
        fn $function(_: S3Driver, _: &S3Config, _: u32) -> Result<AnyDriver, Failure> {
            Err(Failure::usage(concat!(
                "--engine: ",
                $name,
                " is not part of this build, as it is large; \
                 build it in: cargo build --release -p bucketload --features ",
                $feature
            )))
        }
    };
}

library!(aws_sdk, "engine-aws-sdk", "aws-sdk", aws_sdk::AwsSdkEngine);
library!(
    object_store,
    "engine-object-store",
    "object-store",
    object_store::ObjectStoreEngine
);
library!(opendal, "engine-opendal", "opendal", opendal::OpendalEngine);
