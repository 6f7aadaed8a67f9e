//! The kernel's counters for the TCP sockets of another process of ours.
//!
//! `pidfd_getfd(2)` duplicates each socket, and `TCP_INFO` reads its counters. So the traffic of a program under
//! measurement is known at any moment without its help.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::sh::Result;

/// A counter of a socket; the offsets are those of `struct tcp_info` in `linux/tcp.h`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counter {
    /// Received segments with data. They equal answers if the server writes each answer at once and none is longer
    /// than the 64 KiB of loopback.
    Answers,
    /// Bytes acknowledged by the other side.
    Sent,
    /// Received bytes.
    Received,
}

/// Length of `struct tcp_info` up to the last field that is read.
const INFO: usize = 160;

/// Duplicates of a process's sockets.
pub(super) struct Sockets(Vec<OwnedFd>);

impl Sockets {
    /// Duplicates the sockets that process `pid` has open now.
    ///
    /// # Errors
    /// The process is gone, or belongs to somebody else.
    pub(super) fn of(pid: u32) -> Result<Self> {
        let at = |e: &dyn std::fmt::Display| format!("the sockets of process {pid}: {e}");
        let id = Pid::from_raw(pid.cast_signed()).ok_or("no process has the number 0")?;
        let process = pidfd_open(id, PidfdFlags::empty()).map_err(|e| at(&e))?;
        let mut sockets = Vec::new();
        for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).map_err(|e| at(&e))? {
            let entry = entry.map_err(|e| at(&e))?;
            // A descriptor closed in the meantime need not be counted.
            let Ok(leads_to) = std::fs::read_link(entry.path()) else {
                continue;
            };
            let number = entry.file_name().to_string_lossy().parse();
            if let (true, Ok(number)) = (leads_to.to_string_lossy().starts_with("socket:"), number)
            {
                match pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) {
                    Ok(socket) => sockets.push(socket),
                    Err(rustix::io::Errno::BADF) => {}
                    Err(e) => return Err(at(&e)),
                }
            }
        }
        Ok(Self(sockets))
    }

    /// The sum of `counter` over the sockets that speak TCP.
    pub(super) fn sum(&self, counter: Counter) -> u64 {
        self.0
            .iter()
            .filter_map(info)
            .map(|info| match counter {
                Counter::Answers => u64::from(u32::from_ne_bytes(field(&info, 152))),
                Counter::Sent => u64::from_ne_bytes(field(&info, 120)),
                Counter::Received => u64::from_ne_bytes(field(&info, 128)),
            })
            .sum()
    }
}

fn field<const N: usize>(info: &[u8; INFO], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&info[at..at + N]);
    bytes
}

/// The kernel's counters of `socket`; `None` if it is not a TCP socket.
fn info(socket: &OwnedFd) -> Option<[u8; INFO]> {
    let mut info = [0; INFO];
    let mut length = INFO as libc::socklen_t;
    // SAFETY: pointer and length describe `info`, which outlives the call.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (outcome == 0 && length as usize == INFO).then_some(info)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::{Counter, Sockets};

    #[test]
    fn answers_and_bytes_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let address = listener.local_addr().expect("address");
        let mut client = TcpStream::connect(address).expect("connect");
        let (mut server, _) = listener.accept().expect("accept");
        let both = Sockets::of(std::process::id()).expect("own sockets");
        let before = [Counter::Answers, Counter::Received].map(|counter| both.sum(counter));
        for _ in 0..3 {
            client.write_all(&[7; 5000]).expect("send");
            let mut bytes = [0; 5000];
            server.read_exact(&mut bytes).expect("receive");
        }
        // Other tests of this process may have sockets too.
        assert!(both.sum(Counter::Answers) >= before[0] + 3);
        assert!(both.sum(Counter::Received) >= before[1] + 15_000);
    }
}
