//! Command-line clients as an engine: one process per operation.
//!
//! ```text
//! tool, programs (which, how) ── access (credentials, endpoint) ── line (arguments, output)
//!                                        client ── process ── complaint (exit code, stderr)
//! ```
//!
//! What is timed is what a user of the client waits for: the whole process, from start to exit. The
//! file to send is written before that, the file received is read and compared after it; both lie in
//! a private directory that goes with the engine. No shell is involved.

mod access;
mod client;
mod clouds;
mod complaint;
mod line;
mod process;
mod programs;
mod tool;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bucketload_core::driver::WorkerId;
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::OpClass;

pub use client::CliClient;
pub use tool::Tool;

use self::access::Access;
use self::tool::Installed;
use super::{Engine, EngineFacts};
use crate::azblob::AzureConfig;
use crate::gcs::GcsConfig;
use crate::http::{Endpoint, Secret};
use crate::s3::{ConfigError, S3Config};
use crate::swift::SwiftConfig;

/// A command-line client bound to a target.
#[derive(Clone)]
pub struct CliEngine {
    inner: Arc<Inner>,
}

/// What all workers share. The directory and the secrets in it go with it.
pub(crate) struct Inner {
    pub(crate) client: Installed,
    /// Region that buckets are made in.
    pub(crate) region: String,
    /// What must not get out.
    pub(crate) secrets: Vec<Secret>,
    /// One per endpoint.
    pub(crate) access: Vec<Access>,
    /// Variables of the environment that the client shall not see.
    pub(crate) foreign: Vec<OsString>,
    pub(crate) dir: tempfile::TempDir,
    retries: u32,
    /// Clients made so far.
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
    /// Finds `tool` on the PATH and prepares its configuration for the S3 target of `config`; it may
    /// repeat a request `retries` times, where it has a switch for that.
    ///
    /// # Errors
    /// When the client is not installed, cannot be told a setting, or its files cannot be written.
    pub fn new(tool: Tool, config: &S3Config, retries: u32) -> Result<Self, ConfigError> {
        access::check(tool, config)?;
        let secrets = access::secrets(config);
        Self::prepare(tool, secrets, &config.region, retries, |client, dir| {
            of_endpoints(&config.endpoints, dir, |endpoint, place| {
                access::access(client, config, endpoint, place, retries)
            })
        })
    }

    /// As [`CliEngine::new`] for OpenStack Swift's own client.
    ///
    /// # Errors
    /// As there.
    pub fn swift(config: &SwiftConfig, retries: u32) -> Result<Self, ConfigError> {
        let (access, secrets) = access::swift(config, retries)?;
        Self::prepare(Tool::Swift, secrets, "", retries, |_, _| Ok(vec![access]))
    }

    /// As [`CliEngine::new`] for the Azure CLI.
    ///
    /// # Errors
    /// As there.
    pub fn azure(config: &AzureConfig, retries: u32) -> Result<Self, ConfigError> {
        clouds::check_azure(config)?;
        let secrets = clouds::azure_secrets(config);
        Self::prepare(Tool::Az, secrets, "", retries, |_, dir| {
            of_endpoints(&config.endpoints, dir, |endpoint, place| {
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
            of_endpoints(&config.endpoints, dir, |endpoint, place| {
                clouds::gcs(config, endpoint, place, retries)
            })
        })
    }

    /// Finds `tool`, and tells it by `access` what it needs for each endpoint.
    fn prepare(
        tool: Tool,
        secrets: Vec<Secret>,
        region: &str,
        retries: u32,
        access: impl FnOnce(&Installed, &Path) -> Result<Vec<Access>, ConfigError>,
    ) -> Result<Self, ConfigError> {
        let client = Installed::find(tool, std::env::var_os("PATH"))?;
        let dir = private_directory()?;
        let access = access(&client, dir.path())?;
        let foreign = std::env::vars_os().map(|(name, _)| name).filter(|name| {
            let name = name.to_string_lossy();
            access::FOREIGN.iter().any(|start| name.starts_with(start))
        });
        Ok(Self {
            inner: Arc::new(Inner {
                foreign: foreign.collect(),
                access,
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

/// What the client needs for each endpoint, with a directory of its own below `dir`.
fn of_endpoints(
    endpoints: &[Endpoint],
    dir: &Path,
    access: impl Fn(&Endpoint, &Path) -> std::io::Result<Access>,
) -> Result<Vec<Access>, ConfigError> {
    let one = |(number, endpoint): (usize, &Endpoint)| {
        let place = dir.join(number.to_string());
        std::fs::create_dir(&place)?;
        access(endpoint, &place)
    };
    let all: std::io::Result<_> = endpoints.iter().enumerate().map(one).collect();
    all.map_err(|e| no_directory(&e))
}

/// A directory that only its owner may enter, for credentials and for the objects under way.
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
        "set TMPDIR to one with space for the objects under way",
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
        let retries = access::retries_in_words(client, self.inner.retries);
        EngineFacts {
            name: format!("cli:{}", client.tool),
            settings: vec![
                setting("client version", &client.version),
                setting(
                    "time",
                    "one process per operation, from its start to its exit",
                ),
                setting("engine retries", &retries),
                setting("requests", "those that a process makes are not visible"),
                setting("checksums and parts", "as the client decides"),
            ],
        }
    }

    fn client(&self, worker: WorkerId) -> Result<CliClient, OpError> {
        // Worker numbers come again in later phases, while earlier clients may still exist.
        let number = self.inner.clients.fetch_add(1, Ordering::Relaxed);
        let place = self.inner.dir.path().join(format!("w{number}"));
        std::fs::create_dir(&place)
            .map_err(|e| OpError::new(ErrorKind::Connect, format!("{}: {e}", place.display())))?;
        Ok(CliClient::new(Arc::clone(&self.inner), place, worker))
    }
}
