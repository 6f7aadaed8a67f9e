//! Standard input and output as one connection: how an agent talks to the coordinator that started it,
//! locally or through ssh. No port is opened, and no token is needed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tonic::transport::server::Connected;

/// An inherited end of a pipe or socket.
#[derive(Debug)]
struct End(AsyncFd<OwnedFd>);

impl End {
    fn new(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&fd)?;
        rustix::fs::fcntl_setfl(&fd, flags | rustix::fs::OFlags::NONBLOCK)?;
        // SAFETY: the descriptor is owned by the `AsyncFd` from here on and never replaced.
        let fd = unsafe { AsyncFd::register_with_interest(fd, interest) }?;
        Ok(Self(fd))
    }
}

/// Standard input and output.
#[derive(Debug)]
pub(crate) struct Stdio {
    input: End,
    output: End,
}

impl Stdio {
    /// Takes both over. Must be called inside a runtime.
    ///
    /// # Errors
    /// When they are not pipes or sockets.
    pub(crate) fn take() -> io::Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self {
            input: End::new(input, Interest::READABLE)?,
            output: End::new(output, Interest::WRITABLE)?,
        })
    }
}

impl Connected for Stdio {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Stdio {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let mut guard = ready!(this.input.0.poll_read_ready(cx))?;
            let free = buffer.initialize_unfilled();
            match guard.try_io(|fd| rustix::io::read(fd, free).map_err(Into::into)) {
                Ok(Ok(n)) => {
                    buffer.advance(n);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(e)) => return Poll::Ready(Err(e)),
                Err(_not_ready) => {}
            }
        }
    }
}

impl AsyncWrite for Stdio {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        loop {
            let mut guard = ready!(this.output.0.poll_write_ready(cx))?;
            match guard.try_io(|fd| rustix::io::write(fd, bytes).map_err(Into::into)) {
                Ok(outcome) => return Poll::Ready(outcome),
                Err(_not_ready) => {}
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
