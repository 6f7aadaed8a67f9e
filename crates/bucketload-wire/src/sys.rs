//! Thin safe wrappers around the few system calls of the request path, and around huge pages.
//!
//! The calls that every request makes use rustix, which enters the kernel directly. The C library's
//! `send` and `recv` are cancellation points, which doubles their cost.

use std::alloc::{self, Layout};
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};

/// Converts the result of a system call to a byte count or the thread's `errno`.
fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Repeats a call while signals interrupt it.
fn uninterrupted(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        match check(call()) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Receives the available bytes, at most `buf.len()`. Fails with `WouldBlock` if there are none.
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
        // SAFETY: with MSG_TRUNC the kernel discards TCP data and never accesses the buffer (tcp(7)),
        // so a null pointer is valid for any length.
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

/// Sends as much of `parts` as the socket accepts, in one call and without SIGPIPE.
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

/// Maximum receive buffer of a TCP socket under the kernel's tuning, in bytes; 6 MiB (an older default
/// of the kernel) if unknown.
pub(crate) fn tcp_rmem_max() -> u64 {
    static MAX: OnceLock<u64> = OnceLock::new();
    *MAX.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap_or_default();
        let last = text.split_ascii_whitespace().last();
        last.and_then(|max| max.parse().ok()).unwrap_or(6 << 20)
    })
}

/// The start of a huge page if the system grants one, otherwise of 2 MiB of ordinary pages, of which only
/// the used ones occupy memory.
pub(crate) struct HugePage {
    at: NonNull<u8>,
}

impl HugePage {
    /// Number of bytes in use.
    const USED: usize = crate::scratch::BUFFER;
    /// A huge page of x86-64 and 64-bit ARM.
    const LAYOUT: Layout = match Layout::from_size_align(2 << 20, 2 << 20) {
        Ok(layout) => layout,
        Err(_) => panic!("the size is a power of two"),
    };

    pub(crate) fn new() -> Self {
        // SAFETY: the layout's size is not zero.
        let Some(at) = NonNull::new(unsafe { alloc::alloc(Self::LAYOUT) }) else {
            alloc::handle_alloc_error(Self::LAYOUT)
        };
        // SAFETY: the range is exactly the memory just allocated, and the advice changes its mapping,
        // never its content. Systems without huge pages refuse the advice, which is harmless.
        unsafe { libc::madvise(at.as_ptr().cast(), Self::LAYOUT.size(), libc::MADV_HUGEPAGE) };
        // SAFETY: the memory is exclusively owned and at least that long.
        unsafe { at.write_bytes(0, Self::USED) };
        Self { at }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `new` initialised the memory, which is exclusively owned and borrowed with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), Self::USED) }
    }
}

impl Drop for HugePage {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with the same layout, and freed only here.
        unsafe { alloc::dealloc(self.at.as_ptr(), Self::LAYOUT) };
    }
}
