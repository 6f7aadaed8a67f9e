//! Placement in SeaweedFS: the filer knows the volumes of an object's chunks, the master the servers of a
//! volume. Objects that the S3 gateway wrote are found as well: it keeps them at the same paths.

use std::collections::HashMap;

use bucketload_core::driver::{Driver, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use bucketload_drivers::seaweedfs::{
    Mode, SeaweedConfig, SeaweedDriver, SeaweedOverrides, SeaweedSession,
};
use bucketload_results::rundir::Manifest;
use tokio::runtime::{Builder, Runtime};

use super::Locate;
use crate::cli::placement::SeaweedPlacement;
use crate::exit::Failure;

/// A filer and a master, and what the master has said.
pub(super) struct Seaweed {
    runtime: Runtime,
    filer: SeaweedSession,
    master: SeaweedSession,
    /// Servers by volume.
    servers: HashMap<u32, Vec<String>>,
}

/// Connects to both.
pub(super) fn open(args: &SeaweedPlacement, run: &Manifest) -> Result<Seaweed, Failure> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::aborted(e.to_string()))?;
    let by_paths = run.driver.driver == "seaweedfs"
        && run
            .driver
            .settings
            .iter()
            .any(|(name, value)| name == "interface" && value == "filer");
    let ran_at = run.driver.endpoints.first().filter(|_| by_paths).cloned();
    let filer = session(
        &runtime,
        Mode::Filer,
        args.filer.clone().or(ran_at),
        "--filer",
    )?;
    let master = session(&runtime, Mode::Master, args.master.clone(), "--master")?;
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
) -> Result<SeaweedSession, Failure> {
    let overrides = SeaweedOverrides {
        endpoint_url,
        mode: Some(mode),
        // Nothing is written, so that no file ids are kept.
        objects: (mode == Mode::Master).then_some(1),
        ..SeaweedOverrides::default()
    };
    let config = SeaweedConfig::new(&overrides, &|name| std::env::var(name).ok());
    let driver = config.and_then(SeaweedDriver::new);
    let driver = driver.map_err(|e| Failure::usage(format!("{flag}: {e}")))?;
    let worker = WorkerId {
        thread: 0,
        worker: 0,
    };
    let opened = runtime.block_on(driver.open(worker, &mut Probe::new(|| 0)));
    opened.map_err(|e| Failure::target(format!("{flag}: {e}")))
}

impl Locate for Seaweed {
    fn locate(
        &mut self,
        bucket: &str,
        keys: &[String],
        found: &mut dyn FnMut(usize, &str),
    ) -> Result<(), Failure> {
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
            .map_err(|e: OpError| Failure::target(format!("placement: {e}")))
    }
}
