//! Locks by name (lock striping).

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of locks of one kind.
const STRIPES: usize = 256;

/// A hash that distributes names over a few slots: the upper half of FNV-1a, which is well mixed and
/// fast. Names chosen to collide would only wait for each other.
pub(super) fn spread(name: &[u8]) -> u32 {
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) as u32
}

/// Locks by name. Names that share a lock wait for each other, so a thread must not hold two locks of
/// one set.
#[derive(Debug)]
pub(super) struct Stripes {
    locks: Box<[Mutex<()>]>,
}

impl Stripes {
    pub(super) fn new() -> Self {
        let locks = (0..STRIPES).map(|_| Mutex::default()).collect();
        Self { locks }
    }

    pub(super) fn lock(&self, name: &[u8]) -> MutexGuard<'_, ()> {
        let stripe = spread(name) as usize % STRIPES;
        self.locks[stripe]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
