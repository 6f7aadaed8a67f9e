//! Placement in SeaweedFS: the filer knows the volumes of an object's chunks, the master the servers of a volume. This
//! works for objects written through the S3 gateway too, which stores them under the same paths.

use std::collections::HashMap;

use crate::seaweedfs::{Mode, SeaweedConfig, SeaweedDriver, SeaweedOverrides, SeaweedSession};
use bucketload_core::driver::{Driver, DriverFacts, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use tokio::runtime::Runtime;

use bucketload_target::{Locate, OnCopy, OpenError};

/// Connections to a filer and a master.
pub(crate) struct Seaweed {
    runtime: Runtime,
    filer: SeaweedSession,
    master: SeaweedSession,
    /// The master's answers: servers by volume.
    servers: HashMap<u32, Vec<String>>,
}

/// Connects to filer and master.
pub(crate) fn open(
    filer: Option<&str>,
    master: Option<&str>,
    run: &DriverFacts,
) -> Result<Seaweed, OpenError> {
    let runtime = super::runtime()?;
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
        // The table of file ids is never used here, so keep it minimal.
        objects: (mode == Mode::Master).then_some(1),
        ..SeaweedOverrides::default()
    };
    let config = SeaweedConfig::new(&overrides, &|name| std::env::var(name).ok());
    let driver = config.and_then(SeaweedDriver::new);
    let driver = driver.map_err(|e| OpenError::usage(format!("{flag}: {e}")))?;
    let opened = runtime.block_on(driver.open(WorkerId::default(), &mut Probe::untimed()));
    opened.map_err(|e| OpenError::target(format!("{flag}: {e}")))
}

impl Locate for Seaweed {
    fn locate(
        &mut self,
        bucket: &str,
        keys: &[String],
        on_copy: OnCopy<'_>,
    ) -> Result<(), OpenError> {
        let Self {
            runtime,
            filer,
            master,
            servers,
        } = self;
        let lookups = async {
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
                        on_copy(i, server);
                    }
                }
            }
            Ok(())
        };
        runtime
            .block_on(lookups)
            .map_err(|e: OpError| OpenError::target(format!("placement: {e}")))
    }
}
