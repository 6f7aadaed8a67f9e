//! A non-blocking TCP socket registered with the runtime.
//!
//! Two rules make a small keep-alive request cost exactly one send and one receive. Sends are tried
//! before waiting for writability. Readiness is cleared after a *short* receive, when the queue is empty,
//! so the next wait sleeps instead of getting `EAGAIN`.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use rustix::net::RecvFlags;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::sys;

/// Counts of the system calls of a socket, for tests and cost reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// `send` and `sendmsg`.
    pub send: u64,
    /// `recv`, with any flags.
    pub recv: u64,
    /// `setsockopt`, after the initial set-up.
    pub setsockopt: u64,
}

impl Calls {
    /// The sum of all calls.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.send + self.recv + self.setsockopt
    }
}

/// A connected TCP socket. `TCP_NODELAY` is set; the kernel tunes the buffer sizes.
#[derive(Debug)]
pub struct Sock {
    fd: AsyncFd<Socket>,
    /// Value of `SO_RCVLOWAT`.
    low_water: u32,
    /// The last send was short or blocked: wait for an event before the next one.
    send_blocked: bool,
    busy_poll: bool,
    calls: Calls,
}

impl Sock {
    /// Connects to `addr`, from the address `source` if one is given.
    ///
    /// # Errors
    /// The system's reason, such as `ConnectionRefused`, or `AddrNotAvailable` if `source` is not an
    /// address of this machine.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub async fn connect(addr: SocketAddr, source: Option<IpAddr>) -> io::Result<Self> {
        let kind = Type::STREAM.nonblocking();
        let socket = Socket::new(Domain::for_address(addr), kind, Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        if let Some(ip) = source {
            // `connect` then chooses the port, knowing the destination. Otherwise 28 000 connections
            // to different servers would exhaust the ephemeral ports of one address.
            sys::set_option(
                socket.as_fd(),
                libc::IPPROTO_IP,
                libc::IP_BIND_ADDRESS_NO_PORT,
                1,
            )?;
            socket.bind(&SocketAddr::new(ip, 0).into())?;
        }
        let in_progress = match socket.connect(&addr.into()) {
            Ok(()) => false,
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => true,
            Err(e) => return Err(e),
        };
        // A peer on this machine accepts before `connect` returns, and there is nothing to wait for.
        let in_progress = in_progress && socket.peer_addr().is_err();
        let sock = Self::register(socket)?;
        if in_progress {
            sock.connected().await?;
        }
        Ok(sock)
    }

    /// Waits until the connection attempt succeeds or fails.
    async fn connected(&self) -> io::Result<()> {
        loop {
            let mut guard = self.fd.writable().await?;
            match self.fd.get_ref().peer_addr() {
                Ok(_) => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::NotConnected => {}
                Err(e) => return Err(e),
            }
            if let Some(error) = self.fd.get_ref().take_error()? {
                return Err(error);
            }
            guard.clear_ready();
        }
    }

    /// Takes over an accepted or otherwise connected stream.
    ///
    /// # Errors
    /// If the socket cannot be made non-blocking or registered.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub fn from_std(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Self::register(stream.into())
    }

    pub(crate) fn register(socket: Socket) -> io::Result<Self> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        // SAFETY: the socket owns its descriptor, which stays open and unchanged until the AsyncFd
        // that owns the socket is dropped and deregisters it.
        let fd = unsafe { AsyncFd::register_with_interest(socket, interest)? };
        Ok(Self {
            fd,
            low_water: 1,
            send_blocked: false,
            busy_poll: false,
            calls: Calls::default(),
        })
    }

    fn raw(&self) -> BorrowedFd<'_> {
        self.fd.get_ref().as_fd()
    }

    /// Receives into `buf`. Returns 0 at the end of the stream.
    ///
    /// # Errors
    /// The socket's error.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let len = buf.len();
        self.poll_recv_by(cx, len, |fd| sys::recv(fd, buf, RecvFlags::empty()))
    }

    /// Drops up to `max` received bytes without copying them. Returns 0 at the end of the stream.
    ///
    /// # Errors
    /// The socket's error.
    pub fn poll_discard(&mut self, cx: &mut Context<'_>, max: usize) -> Poll<io::Result<usize>> {
        self.poll_recv_by(cx, max, |fd| sys::recv_truncated(fd, max))
    }

    fn poll_recv_by(
        &mut self,
        cx: &mut Context<'_>,
        wanted: usize,
        mut call: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        if self.busy_poll {
            self.calls.recv += 1;
            return match call(self.raw()) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                other => Poll::Ready(other),
            };
        }
        loop {
            let mut guard = ready!(self.fd.poll_read_ready(cx))?;
            self.calls.recv += 1;
            match call(guard.get_inner().as_fd()) {
                Ok(n) => {
                    if n < wanted {
                        // The queue is empty. The end of the stream stays visible, because closed
                        // readiness is sticky.
                        guard.clear_ready();
                    }
                    return Poll::Ready(Ok(n));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }

    /// Completes when a byte, the end of the stream or an error can be received. Consumes nothing.
    ///
    /// # Errors
    /// The socket's error, if it has one.
    pub fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.fd.poll_read_ready(cx))?;
            self.calls.recv += 1;
            let mut byte = [0];
            match sys::recv(guard.get_inner().as_fd(), &mut byte, RecvFlags::PEEK) {
                Ok(_) => return Poll::Ready(Ok(())),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => guard.clear_ready(),
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }

    /// True if an event reported something to receive since the socket was last empty. Makes no
    /// system call.
    #[inline]
    #[must_use]
    pub fn has_news(&self) -> bool {
        let ready = self.fd.try_io(Interest::READABLE, |_| Ok(()));
        !matches!(ready, Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends as much of `parts` as the socket accepts now, at least one byte. Waits only if it accepts
    /// nothing.
    ///
    /// # Errors
    /// The socket's error; never raises SIGPIPE.
    pub fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.send_blocked {
                drop(ready!(self.fd.poll_write_ready(cx))?);
                self.send_blocked = false;
            }
            match self.try_send(parts) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                other => return Poll::Ready(other),
            }
        }
    }

    /// As [`Sock::poll_send`], but never waits: fails with `WouldBlock` if the socket accepts nothing now.
    ///
    /// # Errors
    /// The socket's error; never raises SIGPIPE.
    #[inline]
    pub fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.send_blocked {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.calls.send += 1;
        let result = sys::send(self.raw(), parts);
        let blocked = match &result {
            Ok(n) => *n < parts.iter().map(|part| part.len()).sum(),
            Err(e) => e.kind() == io::ErrorKind::WouldBlock,
        };
        if blocked {
            // The buffer is full, so the recorded readiness is outdated. The kernel raises a new
            // event when there is room again.
            self.send_blocked = true;
            let full = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
            let _ = self.fd.try_io(Interest::WRITABLE, |_| full());
        }
        result
    }

    /// Makes waits for bytes spin instead of sleep: the task retries in every turn of the runtime. This
    /// uses a whole core, but removes the client's own wake-up (a third of a short round trip) from the
    /// latency. For low concurrency.
    pub const fn set_busy_poll(&mut self, on: bool) {
        self.busy_poll = on;
    }

    /// Sets `SO_RCVLOWAT`: readiness is reported once `bytes` can be received or the stream has ended.
    /// The kernel caps it at half of `tcp_rmem[2]`. Makes no system call if it is unchanged.
    ///
    /// # Errors
    /// The system's reason.
    pub fn set_low_water(&mut self, bytes: u32) -> io::Result<()> {
        if self.low_water != bytes {
            self.calls.setsockopt += 1;
            let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
            sys::set_option(self.raw(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, value)?;
            self.low_water = bytes;
        }
        Ok(())
    }

    /// The current low-water mark.
    #[must_use]
    pub const fn low_water(&self) -> u32 {
        self.low_water
    }

    /// Makes dropping the socket send a reset (RST) instead of closing it gracefully.
    ///
    /// # Errors
    /// The system's reason.
    pub fn reset_on_drop(&self) -> io::Result<()> {
        SockRef::from(self.fd.get_ref()).set_linger(Some(std::time::Duration::ZERO))
    }

    /// The local address.
    ///
    /// # Errors
    /// The system's reason.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        inet(self.fd.get_ref().local_addr()?)
    }

    /// The peer's address.
    ///
    /// # Errors
    /// The error of the system call, for instance if the peer is already gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        inet(self.fd.get_ref().peer_addr()?)
    }

    /// The system calls made so far.
    #[must_use]
    pub const fn calls(&self) -> Calls {
        self.calls
    }
}

/// A socket address as an IP address and port; a TCP socket has no other kind.
pub(crate) fn inet(addr: socket2::SockAddr) -> io::Result<SocketAddr> {
    addr.as_socket()
        .ok_or_else(|| io::Error::other("not an IP address"))
}
