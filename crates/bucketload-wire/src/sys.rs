//! Thin safe wrappers around the few system calls of the path. All unsafe code of the crate that
//! touches sockets and timers is here.
//!
//! What every request needs goes through rustix, which enters the kernel directly: the C library's
//! `send` and `recv` are cancellation points and spend as much again on being ones.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};

/// Turns the result of a system call into bytes or the thread's `errno`.
fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Repeats a call that a signal interrupted.
fn uninterrupted(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        match check(call()) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Receives what is there, at most `buf.len()` bytes. `WouldBlock` when nothing is.
#[inline]
pub(crate) fn recv(fd: BorrowedFd<'_>, buf: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
    loop {
        match rustix::net::recv(fd, &mut *buf, flags | RecvFlags::DONTWAIT) {
            Ok((n, _)) => return Ok(n),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Drops up to `max` received bytes inside the kernel.
pub(crate) fn recv_truncated(fd: BorrowedFd<'_>, max: usize) -> io::Result<usize> {
    uninterrupted(|| {
        // SAFETY: with MSG_TRUNC the kernel discards TCP data and never touches the buffer
        // (tcp(7)), so a null pointer is valid for any length.
        unsafe {
            libc::recv(
                fd.as_raw_fd(),
                std::ptr::null_mut(),
                max,
                libc::MSG_TRUNC | libc::MSG_DONTWAIT,
            )
        }
    })
}

/// Sends as much of `parts` as the socket takes, in one call and without SIGPIPE.
#[inline]
pub(crate) fn send(fd: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    const FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
    loop {
        let sent = match parts {
            [one] => rustix::net::send(fd, one, FLAGS),
            _ => rustix::net::sendmsg(fd, parts, &mut SendAncillaryBuffer::default(), FLAGS),
        };
        match sent {
            Ok(n) => return Ok(n),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Sets an integer socket option.
pub(crate) fn set_option(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the value pointer and length describe a live c_int.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    check(result as isize).map(drop)
}
