//! Thin safe wrappers around the few system calls of the path. All unsafe code of the crate that
//! touches sockets and timers is here.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd};

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
pub(crate) fn recv(fd: BorrowedFd<'_>, buf: &mut [u8], flags: libc::c_int) -> io::Result<usize> {
    uninterrupted(|| {
        // SAFETY: `buf` is valid for writes of `buf.len()` bytes for the whole call.
        unsafe {
            libc::recv(
                fd.as_raw_fd(),
                buf.as_mut_ptr().cast(),
                buf.len(),
                flags | libc::MSG_DONTWAIT,
            )
        }
    })
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
pub(crate) fn send(fd: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    const FLAGS: libc::c_int = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    if let [one] = parts {
        return uninterrupted(|| {
            // SAFETY: `one` is valid for reads of its length for the whole call.
            unsafe { libc::send(fd.as_raw_fd(), one.as_ptr().cast(), one.len(), FLAGS) }
        });
    }
    // SAFETY: an all-zero msghdr is the documented empty value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len() as _;
    uninterrupted(|| {
        // SAFETY: `IoSlice` is ABI-compatible with iovec; the slices live for the whole call and
        // are only read.
        unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, FLAGS) }
    })
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
