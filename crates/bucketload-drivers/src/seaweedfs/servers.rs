//! Which volume is on which server: looked up once per volume and driver, kept by every session for
//! itself, so that the request path meets no lock.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::http::connection::Connection;
use crate::http::{ConfigError, Endpoint};

/// A volume server.
#[derive(Debug)]
pub(crate) struct VolumeServer {
    pub(crate) endpoint: Endpoint,
    /// What follows the path of every request.
    pub(crate) fields: Vec<u8>,
}

/// What the driver has learned from the master.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    servers: Vec<Arc<VolumeServer>>,
    volumes: HashMap<u32, usize>,
}

impl Directory {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server of `volume`, if it was looked up before.
    fn server_of(&self, volume: u32) -> Option<usize> {
        self.known().volumes.get(&volume).copied()
    }

    /// Notes that `volume` is on the server at `address` (`host:port`), spoken to with TLS if `tls`.
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

    /// Forgets where `volume` is.
    fn forget(&self, volume: u32) {
        self.known().volumes.remove(&volume);
    }

    fn servers_from(&self, first: usize) -> Vec<Arc<VolumeServer>> {
        self.known().servers[first..].to_vec()
    }
}

/// A session's connections to volume servers, and what it knows of volumes.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    seats: Vec<(Arc<VolumeServer>, Connection)>,
    volumes: HashMap<u32, usize>,
}

impl Seats {
    /// The server of `volume`, if this session or another one has looked it up.
    pub(crate) fn server_of(&mut self, directory: &Directory, volume: u32) -> Option<usize> {
        if let Some(&server) = self.volumes.get(&volume) {
            return Some(server);
        }
        let server = directory.server_of(volume)?;
        self.volumes.insert(volume, server);
        Some(server)
    }

    /// Notes where `volume` is; quick when that is known.
    pub(crate) fn note(
        &mut self,
        directory: &Directory,
        volume: u32,
        address: &str,
        tls: bool,
    ) -> Result<usize, ConfigError> {
        if let Some(&server) = self.volumes.get(&volume)
            && let Some((seat, _)) = self.seats.get(server)
            && seat.endpoint.authority == address
        {
            return Ok(server);
        }
        let server = directory.note(volume, address, tls)?;
        self.volumes.insert(volume, server);
        Ok(server)
    }

    /// Forgets where `volume` is: it may have moved.
    pub(crate) fn forget(&mut self, directory: &Directory, volume: u32) {
        self.volumes.remove(&volume);
        directory.forget(volume);
    }

    /// The seat at `server`.
    pub(crate) fn seat(
        &mut self,
        directory: &Directory,
        server: usize,
        source: Option<IpAddr>,
    ) -> &mut (Arc<VolumeServer>, Connection) {
        if server >= self.seats.len() {
            let new = directory.servers_from(self.seats.len());
            let seats = new.into_iter().map(|s| (s, Connection::new(0, source)));
            self.seats.extend(seats);
        }
        &mut self.seats[server]
    }
}

#[cfg(test)]
mod tests {
    use super::{Directory, Seats};

    #[test]
    fn sessions_learn_from_each_other() {
        let directory = Directory::default();
        let (mut one, mut two) = (Seats::default(), Seats::default());
        assert_eq!(one.server_of(&directory, 3), None);
        assert_eq!(one.note(&directory, 3, "a:1", false).unwrap(), 0);
        assert_eq!(one.note(&directory, 4, "b:1", false).unwrap(), 1);
        assert_eq!(one.note(&directory, 5, "a:1", false).unwrap(), 0);
        assert_eq!(two.server_of(&directory, 4), Some(1));
        assert_eq!(two.seat(&directory, 1, None).0.endpoint.port, 1);
        two.forget(&directory, 4);
        assert_eq!(two.server_of(&directory, 4), None);
        assert_eq!(two.note(&directory, 4, "a:1", false).unwrap(), 0);
        assert!(one.note(&directory, 9, "no host", false).is_err());
    }
}
