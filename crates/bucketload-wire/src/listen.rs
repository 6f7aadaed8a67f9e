//! Listeners of several threads on one port (`SO_REUSEPORT`): each thread accepts its own connections,
//! and none moves between threads.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::ready;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::sock::{Sock, inet};

/// Maximum number of connections that wait for `accept` (capped by `somaxconn`).
const BACKLOG: i32 = 4096;

/// A bound port that is not yet served. It may move to the thread that will serve it.
#[derive(Debug)]
pub struct Port {
    socket: Socket,
    addr: SocketAddr,
}

impl Port {
    /// Binds `addr`; port 0 picks a free port.
    ///
    /// # Errors
    /// `AddrInUse` if another process (or another group of listeners) uses the port, even if it allows
    /// sharing: the kernel would otherwise silently distribute connections over two servers.
    pub fn bind(addr: SocketAddr) -> io::Result<Self> {
        if addr.port() != 0 {
            let probe = Self::socket(addr)?;
            probe.bind(&addr.into())?;
            probe.listen(1)?;
        }
        Self::shared(addr)
    }

    /// Another listener on the same address, for another thread.
    ///
    /// # Errors
    /// The system's reason.
    pub fn another(&self) -> io::Result<Self> {
        Self::shared(self.addr)
    }

    /// The bound address, with its actual port.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Starts accepting on the calling thread.
    ///
    /// # Errors
    /// If the socket cannot be registered.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub fn listen(self) -> io::Result<Listener> {
        // SAFETY: the socket owns its descriptor, which stays open and unchanged until the AsyncFd
        // that owns the socket is dropped and deregisters it.
        let fd = unsafe { AsyncFd::register_with_interest(self.socket, Interest::READABLE)? };
        Ok(Listener {
            fd,
            addr: self.addr,
        })
    }

    fn socket(addr: SocketAddr) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_reuse_address(true)?;
        Ok(socket)
    }

    fn shared(addr: SocketAddr) -> io::Result<Self> {
        let socket = Self::socket(addr)?;
        socket.set_reuse_port(true)?;
        socket.bind(&addr.into())?;
        // Listens here rather than on the serving thread, so that a connection made right after
        // start-up waits in the backlog instead of being refused.
        socket.listen(BACKLOG)?;
        let addr = inet(socket.local_addr()?)?;
        Ok(Self { socket, addr })
    }
}

/// Accepts connections on one thread.
#[derive(Debug)]
pub struct Listener {
    fd: AsyncFd<Socket>,
    addr: SocketAddr,
}

impl Listener {
    /// Accepts one connection. The future may be dropped at any time.
    ///
    /// # Errors
    /// The system's reason. Running out of file descriptors (`EMFILE`) is an error too; the caller
    /// decides whether to continue.
    pub async fn accept(&self) -> io::Result<(Sock, SocketAddr)> {
        let (socket, peer) = poll_fn(|cx| {
            loop {
                let mut guard = ready!(self.fd.poll_read_ready(cx))?;
                match guard.get_inner().accept() {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
                    // The peer gave up while waiting in the queue: not the listener's failure.
                    Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                    other => return std::task::Poll::Ready(other),
                }
            }
        })
        .await?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        Ok((Sock::register(socket)?, inet(peer)?))
    }

    /// The bound address.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }
}
