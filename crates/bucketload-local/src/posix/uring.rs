//! The check for io_uring, and the setup of rings.

use std::io;

use io_uring::{Builder, IoUring, Probe, opcode};
use rustix::io::Errno;

/// Size of the submission queue.
const ENTRIES: u32 = 256;
/// Size of the completion queue: more than there are sessions on a thread.
const ANSWERS: u32 = 32 * 1024;
/// Smallest size of the completion queue, if the kernel has no more memory at once. Further answers wait
/// inside the kernel (`IORING_FEAT_NODROP`).
const LEAST_ANSWERS: u32 = 4 * 1024;

/// Checks that this process may use io_uring and that the kernel supports the calls.
pub(super) fn probe() -> Result<(), String> {
    let (ring, _) = build(false).map_err(|e| match e.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel lacks it".to_owned(),
        Some(libc::EPERM) => {
            "it is forbidden (kernel.io_uring_disabled, or a container)".to_owned()
        }
        _ => e.to_string(),
    })?;
    let mut known = Probe::new();
    ring.submitter()
        .register_probe(&mut known)
        .map_err(|e| format!("the kernel does not list its calls: {e}"))?;
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
        false => Err("the kernel lacks some of the calls".to_owned()),
    }
}

/// How answers reach the thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Delivery {
    /// When the thread asks, which a sleep in the ring does: first one answer, the others with the next call. Linux 6.1.
    OnDemand,
    /// With the thread's next system call; an answer ends a call that sleeps. Linux 5.19. Avoids an interrupt from
    /// another core, which costs more than a request in a virtual machine.
    NextCall,
    /// By an interrupt.
    Interrupt,
}

impl Delivery {
    /// Best first.
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

/// Builds a ring for the calling thread only; `sleeps` tells whether the thread mostly sleeps in the ring.
pub(super) fn build(sleeps: bool) -> io::Result<(IoUring, Delivery)> {
    let mut refused = io::Error::from(Errno::INVAL);
    for delivery in &Delivery::ALL[usize::from(!sleeps)..] {
        match build_with(*delivery) {
            // The kernel's error for unknown flags.
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
            // The kernel allocates the pages at once, which may fail on a machine with a full page cache.
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory && answers > LEAST_ANSWERS => {
                answers /= 2;
            }
            built => return built,
        }
    }
}
