//! Whether io_uring is there, and rings as the driver needs them.

use std::io;

use io_uring::{Builder, IoUring, Probe, opcode};
use rustix::io::Errno;

/// Calls that may wait to be submitted.
const ENTRIES: u32 = 256;
/// Answers that fit; more than there are sessions on a thread.
const ANSWERS: u32 = 32 * 1024;
/// As many do where the kernel has no more memory at once; further ones wait inside it
/// (`IORING_FEAT_NODROP`).
const LEAST_ANSWERS: u32 = 4 * 1024;

/// Whether this process may use io_uring and the kernel knows the calls.
pub(super) fn probe() -> Result<(), String> {
    let (ring, _) = build(false).map_err(|e| match e.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel does not have it".to_owned(),
        Some(libc::EPERM) => {
            "it is forbidden here (kernel.io_uring_disabled, or a container)".to_owned()
        }
        _ => e.to_string(),
    })?;
    let mut known = Probe::new();
    ring.submitter()
        .register_probe(&mut known)
        .map_err(|e| format!("the kernel does not tell what it can do: {e}"))?;
    let needed = [
        opcode::OpenAt::CODE,
        opcode::Read::CODE,
        opcode::Write::CODE,
        opcode::ReadFixed::CODE,
        opcode::WriteFixed::CODE,
        opcode::Fsync::CODE,
        opcode::Timeout::CODE,
    ];
    match needed.iter().all(|code| known.is_supported(*code)) {
        true => Ok(()),
        false => Err("the kernel lacks some of its calls".to_owned()),
    }
}

/// How answers reach the thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Delivery {
    /// When it asks, which a sleep in the ring does; one at first, the others with the next call: Linux 6.1.
    OnDemand,
    /// With its next system call; an answer ends the one that it sleeps in: Linux 5.19. In a virtual machine an
    /// interrupt from another core costs more than a request.
    NextCall,
    /// By an interrupt.
    Interrupt,
}

impl Delivery {
    /// The best one first.
    const ALL: [Self; 3] = [Self::OnDemand, Self::NextCall, Self::Interrupt];

    fn set(self, ring: &mut Builder) -> &mut Builder {
        match self {
            Self::OnDemand => {
                let ring = ring.setup_single_issuer().setup_defer_taskrun();
                ring.setup_taskrun_flag()
            }
            Self::NextCall => ring.setup_coop_taskrun(),
            Self::Interrupt => ring,
        }
    }
}

/// A ring that only the calling thread may use; `sleeps` is whether the thread sleeps in it more often than elsewhere.
pub(super) fn build(sleeps: bool) -> io::Result<(IoUring, Delivery)> {
    let mut refused = io::Error::from(Errno::INVAL);
    for delivery in &Delivery::ALL[usize::from(!sleeps)..] {
        match build_with(*delivery) {
            // So says a kernel about what it does not know.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => refused = error,
            built => return Ok((built?, *delivery)),
        }
    }
    Err(refused)
}

fn build_with(delivery: Delivery) -> io::Result<IoUring> {
    let mut answers = ANSWERS;
    loop {
        let mut builder = IoUring::builder();
        match delivery.set(builder.setup_cqsize(answers)).build(ENTRIES) {
            // The kernel takes the pages in one go, which a machine that is busy with files may refuse.
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory && answers > LEAST_ANSWERS => {
                answers /= 2;
            }
            built => return built,
        }
    }
}
