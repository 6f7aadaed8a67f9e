//! Command-line clients as an engine: one process per operation.
//!
//! ```text
//! tool, programs ── invocation (credentials, endpoint) ── line (arguments, output)
//!                          client ── process ── exit (exit code, stderr)
//! ```
//!
//! The timed interval is what a user of the client waits for: the whole process, from start to exit. The
//! file to send is written before, and the received file is read and verified after. Both are in a
//! private directory that is removed with the engine. No shell is involved.

mod client;
mod clouds;
mod exit;
mod invocation;
mod line;
mod process;
mod programs;
mod tool;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bucketload_core::driver::WorkerId;
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::OpClass;

pub use client::CliClient;
pub use tool::Tool;

use self::invocation::Invocation;
use self::tool::InstalledTool;
use super::{Engine, EngineFacts};
use crate::azblob::AzureConfig;
use crate::gcs::GcsConfig;
use crate::http::{Endpoint, Secret};
use crate::s3::{ConfigError, S3Config};
use crate::swift::SwiftConfig;

/// A command-line client bound to a target.
#[derive(Clone)]
pub struct CliEngine {
    inner: Arc<EngineShared>,
}

/// State that all workers share. Dropping it removes the directory with the secrets.
pub(crate) struct EngineShared {
    pub(crate) client: InstalledTool,
    /// Region of new buckets.
    pub(crate) region: String,
    /// Texts to remove from error messages.
    pub(crate) secrets: Vec<Secret>,
    /// One per endpoint.
    pub(crate) invocation: Vec<Invocation>,
    /// Environment variables to hide from the client.
    pub(crate) hidden_variables: Vec<OsString>,
    pub(crate) dir: tempfile::TempDir,
    retries: u32,
    /// Number of clients created so far.
    clients: AtomicU64,
}

impl std::fmt::Debug for CliEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CliEngine")
            .field("client", &self.inner.client)
            .finish_non_exhaustive()
    }
}

impl CliEngine {
    /// Finds `tool` on the PATH and prepares its configuration for the S3 target of `config`. It may
    /// repeat a request `retries` times, if it has a switch for that.
    ///
    /// # Errors
    /// When the client is not installed or does not support a setting, or its files cannot be written.
    pub fn new(tool: Tool, config: &S3Config, retries: u32) -> Result<Self, ConfigError> {
        invocation::check(tool, config)?;
        let secrets = invocation::secrets(config);
        Self::prepare(tool, secrets, &config.region, retries, |client, dir| {
            for_endpoints(&config.endpoints, dir, |endpoint, place| {
                invocation::invocation(client, config, endpoint, place, retries)
            })
        })
    }

    /// As [`CliEngine::new`] for OpenStack Swift's own client.
    ///
    /// # Errors
    /// As there.
    pub fn swift(config: &SwiftConfig, retries: u32) -> Result<Self, ConfigError> {
        let (invocation, secrets) = invocation::swift(config, retries)?;
        Self::prepare(Tool::Swift, secrets, "", retries, |_, _| {
            Ok(vec![invocation])
        })
    }

    /// As [`CliEngine::new`] for the Azure CLI.
    ///
    /// # Errors
    /// As there.
    pub fn azure(config: &AzureConfig, retries: u32) -> Result<Self, ConfigError> {
        clouds::check_azure(config)?;
        let secrets = clouds::azure_secrets(config);
        Self::prepare(Tool::Az, secrets, "", retries, |_, dir| {
            for_endpoints(&config.endpoints, dir, |endpoint, place| {
                Ok(clouds::azure(config, endpoint, place))
            })
        })
    }

    /// As [`CliEngine::new`] for gsutil.
    ///
    /// # Errors
    /// As there.
    pub fn gcs(config: &GcsConfig, retries: u32) -> Result<Self, ConfigError> {
        clouds::check_gcs(config)?;
        let secrets = clouds::gcs_secrets(config);
        Self::prepare(Tool::Gsutil, secrets, "", retries, |_, dir| {
            for_endpoints(&config.endpoints, dir, |endpoint, place| {
                clouds::gcs(config, endpoint, place, retries)
            })
        })
    }

    /// Finds `tool` and prepares its invocation for each endpoint.
    fn prepare(
        tool: Tool,
        secrets: Vec<Secret>,
        region: &str,
        retries: u32,
        invocation: impl FnOnce(&InstalledTool, &Path) -> Result<Vec<Invocation>, ConfigError>,
    ) -> Result<Self, ConfigError> {
        let client = InstalledTool::find(tool, std::env::var_os("PATH"))?;
        let dir = private_directory()?;
        let invocation = invocation(&client, dir.path())?;
        let hidden_variables = std::env::vars_os().map(|(name, _)| name).filter(|name| {
            let name = name.to_string_lossy();
            invocation::HIDDEN_PREFIXES
                .iter()
                .any(|start| name.starts_with(start))
        });
        Ok(Self {
            inner: Arc::new(EngineShared {
                hidden_variables: hidden_variables.collect(),
                invocation,
                region: region.to_owned(),
                secrets,
                client,
                dir,
                retries,
                clients: AtomicU64::new(0),
            }),
        })
    }
}

/// The invocation for each endpoint, with a separate directory below `dir`.
fn for_endpoints(
    endpoints: &[Endpoint],
    dir: &Path,
    invocation: impl Fn(&Endpoint, &Path) -> std::io::Result<Invocation>,
) -> Result<Vec<Invocation>, ConfigError> {
    let one = |(number, endpoint): (usize, &Endpoint)| {
        let place = dir.join(number.to_string());
        std::fs::create_dir(&place)?;
        invocation(endpoint, &place)
    };
    let all: std::io::Result<_> = endpoints.iter().enumerate().map(one).collect();
    all.map_err(|e| no_directory(&e))
}

/// A directory that only its owner may enter, for credentials and transferred objects.
fn private_directory() -> Result<tempfile::TempDir, ConfigError> {
    tempfile::Builder::new()
        .prefix("bucketload-client-")
        .tempdir()
        .map_err(|e| no_directory(&e))
}

fn no_directory(error: &std::io::Error) -> ConfigError {
    ConfigError::new(
        "temporary directory",
        error.to_string(),
        "set TMPDIR to one with space for the transferred objects",
    )
}

bucketload_core::any_driver!(super::EngineDriver<CliEngine>);

impl Engine for CliEngine {
    type Client = CliClient;

    fn classes(&self) -> &[OpClass] {
        line::classes(self.inner.client.tool)
    }

    fn facts(&self) -> EngineFacts {
        let client = &self.inner.client;
        let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let retries = invocation::retries_in_words(client, self.inner.retries);
        EngineFacts {
            name: format!("cli:{}", client.tool),
            settings: vec![
                setting("client version", &client.version),
                setting(
                    "time",
                    "one process per operation, from its start to its exit",
                ),
                setting("engine retries", &retries),
                setting("requests", "the requests of a process are not visible"),
                setting("checksums and parts", "as the client decides"),
            ],
        }
    }

    fn client(&self, worker: WorkerId) -> OpResult<CliClient> {
        // Worker numbers repeat in later phases, while earlier clients may still exist.
        let number = self.inner.clients.fetch_add(1, Ordering::Relaxed);
        let place = self.inner.dir.path().join(format!("w{number}"));
        std::fs::create_dir(&place)
            .map_err(|e| OpError::new(ErrorKind::Connect, format!("{}: {e}", place.display())))?;
        Ok(CliClient::new(Arc::clone(&self.inner), place, worker))
    }
}
