//! The listening socket: loopback or a Unix socket without a token, other addresses only with a token.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen,
    shutdown, socket_with,
};

use super::ServerOptions;
use crate::address::Address;
use crate::socket::Socket;

/// Maximum number of connections waiting to be accepted.
const BACKLOG: i32 = 1024;

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Other hosts can reach the address, and there is no token.
    #[error(
        "{0} can be reached from other hosts, so clients must know a token: name its file with --token-file, \
         or listen on 127.0.0.1 or unix:PATH"
    )]
    NoToken(Address),
    /// The address cannot be bound.
    #[error("{0}: {1}")]
    Listen(Address, #[source] io::Error),
    /// The path is in use.
    #[error("{0}: {1}")]
    Occupied(Address, &'static str),
    /// The thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

/// A listening socket.
#[derive(Debug)]
pub(super) struct Listener {
    fd: OwnedFd,
    address: Address,
    /// The Unix socket's file, removed on close.
    path: Option<PathBuf>,
}

impl Listener {
    pub(super) fn open(options: &ServerOptions) -> Result<Self, StartError> {
        let address = &options.address;
        let failed = |error: io::Error| StartError::Listen(address.clone(), error);
        match address {
            Address::Tcp(_) => {
                let addresses = address.resolve().map_err(failed)?;
                if options.token.is_none() && !address.is_local() {
                    return Err(StartError::NoToken(address.clone()));
                }
                let listener = TcpListener::bind(&addresses[..]).map_err(failed)?;
                // The standard library's queue of 128 overflows in a burst, and clients then wait for seconds to repeat.
                listen(&listener, BACKLOG).map_err(|errno| failed(errno.into()))?;
                let local = listener.local_addr().map_err(failed)?;
                // Checks the bound address too: the name may have resolved differently the second time.
                let bound = Address::Tcp(local.to_string());
                if options.token.is_none() && !bound.is_local() {
                    return Err(StartError::NoToken(bound));
                }
                Ok(Self {
                    fd: listener.into(),
                    address: bound,
                    path: None,
                })
            }
            Address::Unix(path) => {
                remove_stale_socket(path)
                    .map_err(|why| StartError::Occupied(address.clone(), why))?;
                let fd = bind_unix(path).map_err(|errno| failed(errno.into()))?;
                Ok(Self {
                    fd,
                    address: address.clone(),
                    path: Some(path.clone()),
                })
            }
        }
    }

    pub(super) const fn address(&self) -> &Address {
        &self.address
    }

    /// Waits for the next connection.
    pub(super) fn accept(&self) -> io::Result<Socket> {
        let fd = accept_with(&self.fd, SocketFlags::CLOEXEC)?;
        let socket = Socket::new(fd);
        if self.path.is_none() {
            socket.tune_tcp()?;
        }
        Ok(socket)
    }

    /// Stops listening. A thread in `accept` wakes with an error.
    pub(super) fn close(&self) {
        if let Some(path) = &self.path {
            // The file may be gone already.
            let _ = std::fs::remove_file(path);
        }
        // Cannot fail on a listening socket.
        let _ = shutdown(&self.fd, Shutdown::Both);
    }
}

/// Removes the socket file that a dead gateway left behind.
fn remove_stale_socket(path: &Path) -> Result<(), &'static str> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        return Err("the path is a file other than a socket; remove it or choose another path");
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // If this fails, binding reports it.
            let _ = std::fs::remove_file(path);
            Ok(())
        }
        _ => Err("another process listens there already"),
    }
}

/// Binds a Unix socket to which only this user may connect: on Linux the socket's mode becomes its file's mode.
fn bind_unix(path: &Path) -> Result<OwnedFd, Errno> {
    let fd = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::fs::fchmod(fd.as_fd(), Mode::RUSR | Mode::WUSR)?;
    bind(&fd, &SocketAddrUnix::new(path)?)?;
    listen(&fd, BACKLOG)?;
    Ok(fd)
}
