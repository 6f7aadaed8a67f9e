//! Locks by name.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of locks of one kind.
const STRIPES: usize = 256;

/// Locks by name; two names that share one wait for each other, no more. A thread must not hold two
/// of one set.
#[derive(Debug)]
pub(super) struct Stripes {
    hasher: RandomState,
    locks: Box<[Mutex<()>]>,
}

impl Stripes {
    pub(super) fn new() -> Self {
        let locks = (0..STRIPES).map(|_| Mutex::default()).collect();
        Self {
            hasher: RandomState::new(),
            locks,
        }
    }

    pub(super) fn lock(&self, name: &[u8]) -> MutexGuard<'_, ()> {
        let stripe = self.hasher.hash_one(name) as usize % STRIPES;
        self.locks[stripe]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
