//! Placement in SeaweedFS: the filer knows the volumes of an object's chunks, the master the servers of a
//! volume. Objects that the S3 gateway wrote are found as well: it keeps them at the same paths.

use std::collections::HashMap;

use crate::seaweedfs::{Mode, SeaweedConfig, SeaweedDriver, SeaweedOverrides, SeaweedSession};
use bucketload_core::driver::{Driver, DriverFacts, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use tokio::runtime::{Builder, Runtime};

use bucketload_target::{Locate, OnCopy, OpenError};

/// A filer and a master, and what the master has said.
pub(crate) struct Seaweed {
    runtime: Runtime,
    filer: SeaweedSession,
    master: SeaweedSession,
    /// Servers by volume.
    servers: HashMap<u32, Vec<String>>,
}

/// Connects to both.
pub(crate) fn open(
    filer: Option<&str>,
    master: Option<&str>,
    run: &DriverFacts,
) -> Result<Seaweed, OpenError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| OpenError::Aborted(e.to_string()))?;
    let by_paths = run.driver == "seaweedfs"
        && run
            .settings
            .iter()
            .any(|(name, value)| name == "interface" && value == "filer");
    let ran_at = run.endpoints.first().filter(|_| by_paths).cloned();
    let filer = session(
        &runtime,
        Mode::Filer,
        filer.map(str::to_owned).or(ran_at),
        "--filer",
    )?;
    let master = session(
        &runtime,
        Mode::Master,
        master.map(str::to_owned),
        "--master",
    )?;
    Ok(Seaweed {
        runtime,
        filer,
        master,
        servers: HashMap::new(),
    })
}

fn session(
    runtime: &Runtime,
    mode: Mode,
    endpoint_url: Option<String>,
    flag: &str,
) -> Result<SeaweedSession, OpenError> {
    let overrides = SeaweedOverrides {
        endpoint_url,
        mode: Some(mode),
        // Nothing is written, so that no file ids are kept.
        objects: (mode == Mode::Master).then_some(1),
        ..SeaweedOverrides::default()
    };
    let config = SeaweedConfig::new(&overrides, &|name| std::env::var(name).ok());
    let driver = config.and_then(SeaweedDriver::new);
    let driver = driver.map_err(|e| OpenError::usage(format!("{flag}: {e}")))?;
    let worker = WorkerId {
        thread: 0,
        worker: 0,
    };
    let opened = runtime.block_on(driver.open(worker, &mut Probe::untimed()));
    opened.map_err(|e| OpenError::target(format!("{flag}: {e}")))
}

impl Locate for Seaweed {
    fn locate(
        &mut self,
        bucket: &str,
        keys: &[String],
        found: OnCopy<'_>,
    ) -> Result<(), OpenError> {
        let Self {
            runtime,
            filer,
            master,
            servers,
        } = self;
        let looking = async {
            for (i, key) in keys.iter().enumerate() {
                let volumes = match filer.volumes_of(bucket, key).await {
                    Err(error) if error.kind == ErrorKind::NotFound => continue,
                    volumes => volumes?,
                };
                let mut seen: Vec<&str> = Vec::new();
                for volume in &volumes {
                    if !servers.contains_key(volume) {
                        servers.insert(*volume, master.servers_of(*volume).await?);
                    }
                }
                for server in volumes.iter().filter_map(|v| servers.get(v)).flatten() {
                    if !seen.contains(&server.as_str()) {
                        seen.push(server);
                        found(i, server);
                    }
                }
            }
            Ok(())
        };
        runtime
            .block_on(looking)
            .map_err(|e: OpError| OpenError::target(format!("placement: {e}")))
    }
}
