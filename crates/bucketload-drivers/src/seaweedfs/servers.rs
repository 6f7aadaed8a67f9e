//! The servers of volumes: looked up once per volume and driver, and cached by every session, so the
//! request path takes no lock.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::http::connection::Connection;
use crate::http::{ConfigError, Endpoint};

/// A volume server.
#[derive(Debug)]
pub(crate) struct VolumeServer {
    pub(crate) endpoint: Endpoint,
    /// The end of the request line and the fixed header fields.
    pub(crate) fields: Vec<u8>,
}

/// The volumes and servers that the driver has learned from the master.
#[derive(Debug, Default)]
pub(crate) struct VolumeDirectory {
    known: Mutex<KnownVolumes>,
}

#[derive(Debug, Default)]
struct KnownVolumes {
    servers: Vec<Arc<VolumeServer>>,
    volumes: HashMap<u32, usize>,
}

impl VolumeDirectory {
    fn known(&self) -> MutexGuard<'_, KnownVolumes> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn server_of(&self, volume: u32) -> Option<usize> {
        self.known().volumes.get(&volume).copied()
    }

    /// Records that `volume` is on the server at `address` (`host:port`), reached over TLS if `tls`.
    fn note(&self, volume: u32, address: &str, tls: bool) -> Result<usize, ConfigError> {
        let known = &mut *self.known();
        let found = known
            .servers
            .iter()
            .position(|s| s.endpoint.authority == address);
        let server = match found {
            Some(server) => server,
            None => {
                let scheme = if tls { "https" } else { "http" };
                let endpoint = Endpoint::parse(&format!("{scheme}://{address}"), "volume server")?;
                let fields = endpoint.fixed_fields();
                known
                    .servers
                    .push(Arc::new(VolumeServer { endpoint, fields }));
                known.servers.len() - 1
            }
        };
        known.volumes.insert(volume, server);
        Ok(server)
    }

    fn forget(&self, volume: u32) {
        self.known().volumes.remove(&volume);
    }

    fn servers_from(&self, first: usize) -> Vec<Arc<VolumeServer>> {
        self.known().servers[first..].to_vec()
    }
}

/// A session's connections to volume servers, and its cache of volumes.
#[derive(Debug, Default)]
pub(crate) struct VolumeServers {
    servers: Vec<(Arc<VolumeServer>, Connection)>,
    volumes: HashMap<u32, usize>,
}

impl VolumeServers {
    /// The server of `volume`, if this session or another one has looked it up.
    pub(crate) fn server_of(&mut self, directory: &VolumeDirectory, volume: u32) -> Option<usize> {
        if let Some(&server) = self.volumes.get(&volume) {
            return Some(server);
        }
        let server = directory.server_of(volume)?;
        self.volumes.insert(volume, server);
        Some(server)
    }

    /// Records the server of `volume`; takes no lock if the session already knows it.
    pub(crate) fn note(
        &mut self,
        directory: &VolumeDirectory,
        volume: u32,
        address: &str,
        tls: bool,
    ) -> Result<usize, ConfigError> {
        if let Some(&server) = self.volumes.get(&volume)
            && let Some((known, _)) = self.servers.get(server)
            && known.endpoint.authority == address
        {
            return Ok(server);
        }
        let server = directory.note(volume, address, tls)?;
        self.volumes.insert(volume, server);
        Ok(server)
    }

    /// Forgets the server of `volume`, which may have moved.
    pub(crate) fn forget(&mut self, directory: &VolumeDirectory, volume: u32) {
        self.volumes.remove(&volume);
        directory.forget(volume);
    }

    /// The volume server number `server` and the session's connection to it.
    pub(crate) fn get(
        &mut self,
        directory: &VolumeDirectory,
        server: usize,
        source: Option<IpAddr>,
    ) -> &mut (Arc<VolumeServer>, Connection) {
        if server >= self.servers.len() {
            let new = directory.servers_from(self.servers.len());
            let unconnected = new.into_iter().map(|s| (s, Connection::new(0, source)));
            self.servers.extend(unconnected);
        }
        &mut self.servers[server]
    }
}

#[cfg(test)]
mod tests {
    use super::{VolumeDirectory, VolumeServers};

    #[test]
    fn sessions_learn_from_each_other() {
        let directory = VolumeDirectory::default();
        let (mut one, mut two) = (VolumeServers::default(), VolumeServers::default());
        assert_eq!(one.server_of(&directory, 3), None);
        assert_eq!(one.note(&directory, 3, "a:1", false).unwrap(), 0);
        assert_eq!(one.note(&directory, 4, "b:1", false).unwrap(), 1);
        assert_eq!(one.note(&directory, 5, "a:1", false).unwrap(), 0);
        assert_eq!(two.server_of(&directory, 4), Some(1));
        assert_eq!(two.get(&directory, 1, None).0.endpoint.port, 1);
        two.forget(&directory, 4);
        assert_eq!(two.server_of(&directory, 4), None);
        assert_eq!(two.note(&directory, 4, "a:1", false).unwrap(), 0);
        assert!(one.note(&directory, 9, "no host", false).is_err());
    }
}
