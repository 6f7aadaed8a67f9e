//! The choice of the client that performs the operations: its flags, and the driver with that client.

use std::str::FromStr;

use bucketload_core::driver::AnyDriver;
use bucketload_target::{Flag, OpenError, OpenRequest, Scope, Value};

use super::EngineDriver;
use super::cli::{CliEngine, Tool};
use crate::http::ConfigError;
use crate::s3::{Keeping, S3Config, S3Driver};

pub(crate) static ENGINE: Flag = Flag::new(
    "--engine",
    Value::Checked("NAME", Value::parses::<EngineChoice>),
    Scope::Client,
    "Client that performs the operations: native, aws-sdk, object-store, opendal or cli:PROGRAM",
)
.with_more(
    "A library needs a build with the cargo feature engine-NAME. The programs (aws, mc, rclone, s3cmd; swift, az and \
     gsutil for swift://, az:// and gs:// targets) must be on the PATH.",
);

pub(crate) static RETRIES: Flag = Flag::new(
    "--engine-retries",
    Value::Checked("N", Value::parses::<u32>),
    Scope::Client,
    "How often the engine may repeat a request by itself; default 0",
);

/// The flags for the client: its name and its own retries.
pub const FLAGS: [&Flag; 2] = [&ENGINE, &RETRIES];

/// Libraries missing from this build, and the cargo features that include them.
pub const ABSENT: &[(&str, &str)] = &[
    #[cfg(not(feature = "engine-aws-sdk"))]
    ("aws-sdk", "engine-aws-sdk"),
    #[cfg(not(feature = "engine-object-store"))]
    ("object-store", "engine-object-store"),
    #[cfg(not(feature = "engine-opendal"))]
    ("opendal", "engine-opendal"),
];

/// Client engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EngineChoice {
    /// Bucketload's own client.
    #[default]
    Native,
    /// Amazon's SDK for Rust.
    AwsSdk,
    /// The crate `object_store`.
    ObjectStore,
    /// The crate `opendal`.
    Opendal,
    /// A command-line program, one process per operation.
    Cli(Tool),
}

impl FromStr for EngineChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "native" => Ok(Self::Native),
            "aws-sdk" => Ok(Self::AwsSdk),
            "object-store" => Ok(Self::ObjectStore),
            "opendal" => Ok(Self::Opendal),
            _ => match text.strip_prefix("cli:") {
                Some(name) => name.parse().map(Self::Cli),
                None => Err(format!(
                    "`{text}` is not an engine; use native, aws-sdk, object-store, opendal or cli:PROGRAM"
                )),
            },
        }
    }
}

/// Whether the native client is requested.
pub(crate) fn is_native(request: &OpenRequest<'_>) -> bool {
    matches!(request.settings.get(&ENGINE), None | Some("native"))
}

fn retries(request: &OpenRequest<'_>) -> Result<u32, OpenError> {
    Ok(request.settings.parse(&RETRIES)?.unwrap_or(0))
}

/// Opens the client `tool` with its retries if it is requested; `None` for the native client.
///
/// # Errors
/// When another client is requested, `tool` is not installed, or it does not support a setting.
pub(crate) fn of_cloud(
    request: &OpenRequest<'_>,
    tool: Tool,
    open: impl FnOnce(u32) -> Result<CliEngine, ConfigError>,
) -> Result<Option<CliEngine>, OpenError> {
    match request.settings.parse(&ENGINE)?.unwrap_or_default() {
        EngineChoice::Native => Ok(None),
        EngineChoice::Cli(named) if named == tool => Ok(Some(open(retries(request)?)?)),
        _ => Err(OpenError::Usage(format!(
            "--engine: this client does not support {}:// targets; omit the flag for `native`",
            tool.scheme().unwrap_or("s3")
        ))),
    }
}

/// `driver`, with its operations performed by `engine` if there is one.
pub(crate) fn in_front_of(driver: impl Into<AnyDriver>, engine: Option<CliEngine>) -> AnyDriver {
    match engine {
        None => driver.into(),
        Some(engine) => EngineDriver::new(driver, engine).into(),
    }
}

/// The driver for the S3 target of `config`, with the requested client.
///
/// # Errors
/// When the client is not part of this build, is not installed, or does not support a setting.
pub(crate) fn of_s3(
    native: S3Driver,
    config: &S3Config,
    request: &OpenRequest<'_>,
) -> Result<AnyDriver, OpenError> {
    let retries = retries(request)?;
    let choice = request.settings.parse(&ENGINE)?.unwrap_or_default();
    if choice != EngineChoice::Native && config.keeping != Keeping::default() {
        return Err(OpenError::usage(
            "--engine: only the native client sends a storage class or an encryption; remove --storage-class, --sse, \
             --sse-c and BUCKETLOAD_SSE_C_KEY, or the engine",
        ));
    }
    match choice {
        EngineChoice::Native => Ok(native.into()),
        EngineChoice::Cli(tool) => {
            let engine = CliEngine::new(tool, config, retries)?;
            Ok(EngineDriver::new(native, engine).into())
        }
        EngineChoice::AwsSdk => aws_sdk(native, config, retries),
        EngineChoice::ObjectStore => object_store(native, config, retries),
        EngineChoice::Opendal => opendal(native, config, retries),
    }
}

/// Defines the function for a library: it opens the driver, or fails if the library is not part of the build.
macro_rules! library {
    ($function:ident, $feature:literal, $name:literal, $module:ident :: $engine:ident) => {
        #[cfg(feature = $feature)]
        fn $function(
            native: S3Driver,
            config: &S3Config,
            retries: u32,
        ) -> Result<AnyDriver, OpenError> {
            let engine = super::$module::$engine::new(config, retries)?;
            Ok(EngineDriver::new(native, engine).into())
        }

        #[cfg(not(feature = $feature))]
        fn $function(_: S3Driver, _: &S3Config, _: u32) -> Result<AnyDriver, OpenError> {
            Err(OpenError::usage(concat!(
                "--engine: ",
                $name,
                " is not part of this build because of its size; \
                 include it: cargo build --release -p bucketload --features ",
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

#[cfg(test)]
mod tests {
    use super::{EngineChoice, Tool};

    #[test]
    fn engines_have_names() {
        assert_eq!("cli:s3cmd".parse(), Ok(EngineChoice::Cli(Tool::S3cmd)));
        let wrong = "cli:curl".parse::<EngineChoice>().unwrap_err();
        assert!(wrong.contains("s3cmd, swift"), "{wrong}");
        let wrong = "minio".parse::<EngineChoice>().unwrap_err();
        assert!(wrong.contains("object-store"), "{wrong}");
    }
}
