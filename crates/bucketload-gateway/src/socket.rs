//! A connected stream socket, TCP or Unix.
//!
//! Everything is sent with `MSG_NOSIGNAL`: the client runs inside other programs, which `SIGPIPE` would kill. The
//! standard library's vectored write lacks that flag.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, recv, recvmsg, send, sendmsg, shutdown,
};

use crate::address::Address;
use crate::busy_poll::BusyPoll;

/// A connected socket. All calls take `&self`: one thread uses it, another may shut it down.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

/// An expired socket timeout looks like a call that would block.
fn explain(errno: Errno) -> io::Error {
    match errno {
        Errno::AGAIN => io::ErrorKind::TimedOut.into(),
        other => other.into(),
    }
}

const fn blocking(may_block: bool) -> RecvFlags {
    match may_block {
        true => RecvFlags::empty(),
        false => RecvFlags::DONTWAIT,
    }
}

impl Socket {
    pub(crate) const fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Connects within `timeout`, trying the addresses of a name in turn.
    pub(crate) fn connect(address: &Address, timeout: Duration) -> io::Result<Self> {
        let path = match address {
            Address::Unix(path) => path,
            Address::Tcp(_) => return Self::connect_tcp(&address.resolve()?, timeout),
        };
        Ok(Self(UnixStream::connect(path)?.into()))
    }

    fn connect_tcp(addresses: &[SocketAddr], timeout: Duration) -> io::Result<Self> {
        let end = Instant::now() + timeout;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in addresses {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match TcpStream::connect_timeout(address, left) {
                Ok(stream) => {
                    let socket = Self(stream.into());
                    socket.tune_tcp()?;
                    return Ok(socket);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Sets the options of a TCP connection: no Nagle's algorithm, which costs 40 ms per small request with delayed
    /// acknowledgements, and keepalives that close the connection two minutes after the peer's host is gone.
    pub(crate) fn tune_tcp(&self) -> io::Result<()> {
        sockopt::set_tcp_nodelay(&self.0, true)?;
        sockopt::set_socket_keepalive(&self.0, true)?;
        sockopt::set_tcp_keepidle(&self.0, Duration::from_secs(60))?;
        sockopt::set_tcp_keepintvl(&self.0, Duration::from_secs(15))?;
        sockopt::set_tcp_keepcnt(&self.0, 4)?;
        Ok(())
    }

    /// Limits each single wait for the peer.
    pub(crate) fn limit(&self, wait: Duration) -> io::Result<()> {
        // Zero would mean no limit.
        let wait = Some(wait.max(Duration::from_micros(1)));
        sockopt::set_socket_timeout(&self.0, Timeout::Recv, wait)?;
        sockopt::set_socket_timeout(&self.0, Timeout::Send, wait)?;
        Ok(())
    }

    /// Receives at least one byte; returns 0 at the end of the stream.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match recv(&self.0, &mut *buffer, RecvFlags::empty()) {
                Ok((count, _)) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(explain(errno)),
            }
        }
    }

    /// Like [`receive`](Self::receive), but polls before it sleeps.
    pub(crate) fn receive_soon(
        &self,
        buffer: &mut [u8],
        busy_poll: &mut BusyPoll,
    ) -> io::Result<usize> {
        busy_poll.wait(|may_block| {
            let (count, _) = recv(&self.0, &mut *buffer, blocking(may_block))?;
            Ok(count)
        })
    }

    /// Like [`receive_soon`](Self::receive_soon), on a Unix socket; also returns a file sent with the bytes.
    pub(crate) fn receive_with_file(
        &self,
        buffer: &mut [u8],
        busy_poll: &mut BusyPoll,
    ) -> io::Result<(usize, Option<OwnedFd>)> {
        busy_poll.wait(|may_block| {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = blocking(may_block) | RecvFlags::CMSG_CLOEXEC;
            let mut parts = [IoSliceMut::new(buffer)];
            let message = recvmsg(&self.0, &mut parts, &mut control, flags)?;
            let file = control.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut files) => files.next(),
                _ => None,
            });
            Ok((message.bytes, file))
        })
    }

    /// Sends bytes over a Unix socket, with a file attached to the first byte.
    pub(crate) fn send_with_file(&self, bytes: &[u8], file: BorrowedFd<'_>) -> io::Result<()> {
        let count = loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let files = [file];
            control.push(SendAncillaryMessage::ScmRights(&files));
            let parts = [IoSlice::new(bytes)];
            match sendmsg(&self.0, &parts, &mut control, SendFlags::NOSIGNAL) {
                Ok(count) => break count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(explain(errno)),
            }
        };
        self.send(&bytes[count..], false)
    }

    /// Makes a waiting receiver wake only when `bytes` have arrived or the stream has ended, not for each packet. A
    /// wait for fewer bytes would hang.
    pub(crate) fn set_low_water(&self, bytes: usize) -> io::Result<()> {
        let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        // SAFETY: the option is an int that lives for the call.
        let result = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVLOWAT,
                std::ptr::from_ref(&value).cast(),
                size_of_val(&value) as libc::socklen_t,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Fills the whole buffer.
    pub(crate) fn receive_exact(&self, buffer: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            match self.receive(&mut buffer[done..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => done += count,
            }
        }
        Ok(())
    }

    /// Sends everything. `more` says that more data follows at once, so a partial packet may wait for it.
    pub(crate) fn send(&self, mut bytes: &[u8], more: bool) -> io::Result<()> {
        let mut flags = SendFlags::NOSIGNAL;
        flags.set(SendFlags::MORE, more);
        while !bytes.is_empty() {
            match send(&self.0, bytes, flags) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(explain(errno)),
            }
        }
        Ok(())
    }

    /// Sends two slices, in one call if the socket accepts them.
    pub(crate) fn send_both(&self, first: &[u8], second: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < first.len() {
            let parts = [IoSlice::new(&first[done..]), IoSlice::new(second)];
            let mut control = SendAncillaryBuffer::default();
            match sendmsg(&self.0, &parts, &mut control, SendFlags::NOSIGNAL) {
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(explain(errno)),
            }
        }
        self.send(&second[done - first.len()..], false)
    }

    /// Whether the peer has neither closed the connection nor sent anything.
    pub(crate) fn is_quiet(&self) -> bool {
        let mut byte = [0; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(recv(&self.0, &mut byte[..], flags), Err(Errno::AGAIN))
    }

    /// Closes both directions; a thread that waits on the socket wakes up.
    pub(crate) fn close_both(&self) {
        // It may be closed already.
        let _ = shutdown(&self.0, Shutdown::Both);
    }

    /// Closes the sending direction: the peer sees the end of the stream.
    pub(crate) fn close_writing(&self) {
        // It may be closed already.
        let _ = shutdown(&self.0, Shutdown::Write);
    }

    /// Closes the receiving direction: pending answers can still be sent.
    pub(crate) fn close_reading(&self) {
        // It may be closed already.
        let _ = shutdown(&self.0, Shutdown::Read);
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
