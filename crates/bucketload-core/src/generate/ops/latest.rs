//! Popularity by age: the newest object is the most popular, even while objects are being written.
//!
//! The objects that exist before operation `seq` are the initial ones and the fresh ones of earlier
//! operations of the same work. Whether an earlier operation wrote an object is known only by recomputing its
//! mix choice, so an age is converted to an object without counting all of them:
//!
//! ```text
//!  seq:   0 … ─────────────────────────────────────── seq-1      w: operation wrote an object
//!  initial objects │ w    w  w      w     w w   w   w  w
//!                    └── far: age ≈ p·distance ──┘└─ near: counted back exactly ─┘
//! ```
//!
//! Near ages (up to 32) are counted. Farther ages are mapped to their expected distance age/p, where p is the
//! share of writes, and redrawn if that operation wrote nothing. Initial objects are thinned by the same p,
//! so all objects keep their relative weight. The age of a far object is therefore correct up to the random
//! fluctuation of the number of writes, about 1/√age relative.
//!
//! With a lag, ages start at it: the newest objects, which may still be in flight, are left out.

use crate::generate::LawError;
use crate::generate::popularity::{Popularity, Shares};
use crate::generate::rng::Draws;
use crate::plan::KeyLaw;

/// With a smaller share of writes, finding one by trial would take too long.
const LEAST_SHARE: f64 = 0.01;

/// Zipf over age.
#[derive(Clone, Debug)]
pub(super) struct Latest {
    popularity: Popularity,
    /// Number of initial objects.
    count: u64,
    /// Index of the fresh object of operation 0.
    base: u64,
    /// Which entries of the mix write a fresh object of the key set.
    writers: Box<[bool]>,
    /// Their share of the operations.
    share: f64,
    /// Ages below this are counted exactly.
    near: u64,
    /// Number of newest objects to leave out.
    lag: u64,
}

impl Latest {
    pub(super) fn new(
        (theta, lag): (f64, u64),
        count: u64,
        base: u64,
        writers: Box<[bool]>,
        share: f64,
    ) -> Result<Self, LawError> {
        if share > 0.0 && share < LEAST_SHARE {
            let reason = format!(
                "latest cannot follow writes with a share of {share} of the operations; make it at \
                 least {LEAST_SHARE}, or none"
            );
            return Err(LawError::new("theta", reason));
        }
        Ok(Self {
            popularity: Popularity::new(&KeyLaw::Latest { theta, lag }, count)?,
            count,
            base,
            writers,
            share,
            near: ((320.0 * share) as u64).clamp(4, 32),
            lag,
        })
    }

    /// Moves the fresh objects up by `by` indices.
    pub(super) fn shift_fresh(&mut self, by: u64) {
        self.base = self.base.saturating_add(by);
    }

    /// Whether entry `entry` of the mix writes an object that this law follows.
    #[inline]
    pub(super) fn writes(&self, entry: usize) -> bool {
        self.writers[entry]
    }

    /// The shares at the start, over the initial objects.
    pub(super) fn shares(&self) -> Shares {
        self.popularity.shares()
    }

    /// The object for operation `seq`; `wrote(s)` says whether operation `s` wrote an object.
    #[inline]
    pub(super) fn pick(&self, seq: u64, mut draws: Draws, wrote: impl Fn(u64) -> bool) -> u64 {
        let Some(law) = self.popularity.power() else {
            return self.initial(0);
        };
        if self.share == 0.0 || seq == 0 {
            return self.initial(law.sample(&mut draws));
        }
        let written = self.share * seq as f64;
        let n = (self.count + written as u64).saturating_sub(self.lag);
        if n == 0 {
            // Everything written so far is too new, but the initial objects are not.
            return self.initial(law.sample(&mut draws));
        }
        let mut age = law.sample_below(&mut draws, n) + self.lag;
        if age < self.near {
            return self.count_back(seq, age, wrote);
        }
        loop {
            let exact_age = age as f64 + draws.next_unit();
            let distance = exact_age / self.share;
            if distance < seq as f64 {
                let at = seq - 1 - distance as u64;
                if wrote(at) {
                    return self.base + at;
                }
            } else if draws.next_unit() < self.share {
                return self.initial((exact_age - written).max(0.0) as u64);
            }
            age = law.sample_below(&mut draws, n) + self.lag;
            while age < self.near {
                age = law.sample_below(&mut draws, n) + self.lag;
            }
        }
    }

    /// The initial object of age `age`; the oldest one for greater ages.
    #[inline]
    fn initial(&self, age: u64) -> u64 {
        self.count - 1 - age.min(self.count - 1)
    }

    fn count_back(&self, seq: u64, age: u64, wrote: impl Fn(u64) -> bool) -> u64 {
        let mut left = age;
        for at in (0..seq).rev() {
            if wrote(at) {
                if left == 0 {
                    return self.base + at;
                }
                left -= 1;
            }
        }
        self.initial(left)
    }
}
