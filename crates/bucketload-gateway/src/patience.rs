//! How a side waits for the other: it looks for bytes for a moment before it sleeps.
//!
//! A sleeping thread costs its peer an interrupt of another core and itself the way back from idleness, together
//! several times what a small request costs otherwise. So whoever has just talked looks a little longer. It does so
//! only while it keeps nobody from working: at most half of the cores have a thread that looks, who looks offers the
//! core to other threads again and again, and who loses it by that sleeps as usual. A peer that is mostly slower than the moment is
//! looked for ever less often.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::sched_yield;

/// An offer of the core that takes longer has been taken: there is other work.
const TAKEN: Duration = Duration::from_micros(4);
/// Looks between two offers of the core, the first of which follows the first look: an offer that nobody takes keeps
/// from looking for as long as a look takes.
const LOOKS: usize = 4;
/// Most waits in a row without a look, after looks that were in vain.
const MOST_BLIND: u32 = 256;

/// Threads of this process that look now.
static LOOKING: AtomicUsize = AtomicUsize::new(0);

/// How many may: half of the cores that the calling thread has. Never remembered for the whole process: one thread
/// that is bound to a core would decide for all.
pub(crate) fn most_looking() -> usize {
    std::thread::available_parallelism().map_or(0, |cores| cores.get() / 2)
}

/// The right to look, given back when dropped.
struct Turn;

impl Turn {
    fn take(most: usize) -> Option<Self> {
        let free = |looking| (looking < most).then_some(looking + 1);
        LOOKING
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, free)
            .ok()
            .map(|_| Self)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        LOOKING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a connection has learnt about its peer.
#[derive(Debug)]
pub(crate) struct Patience {
    longest: Duration,
    /// How many threads may look for this one to begin.
    most: usize,
    /// Waits still to come without a look.
    blind: u32,
    /// How many more looks were in vain of late than were not.
    vain: u32,
}

impl Patience {
    /// Looks for at most `longest` per wait, zero for never, and only while fewer than half of the calling thread's
    /// cores have a thread that looks.
    pub(crate) fn new(longest: Duration) -> Self {
        Self {
            longest,
            most: most_looking(),
            blind: 0,
            vain: 0,
        }
    }

    /// Makes `call` until it gives something: without blocking while there is patience, then as it blocks. `call` is
    /// told whether it may block.
    pub(crate) fn wait<T>(
        &mut self,
        mut call: impl FnMut(bool) -> Result<T, Errno>,
    ) -> io::Result<T> {
        if let Some(result) = self.look(&mut call) {
            return result.map_err(io::Error::from);
        }
        loop {
            match call(true) {
                Ok(value) => return Ok(value),
                Err(Errno::INTR) => {}
                // An expired time limit of the socket looks like a call that would block.
                Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn look<T>(
        &mut self,
        call: &mut impl FnMut(bool) -> Result<T, Errno>,
    ) -> Option<Result<T, Errno>> {
        if self.longest.is_zero() {
            return None;
        }
        if self.blind > 0 {
            self.blind -= 1;
            return None;
        }
        let _turn = Turn::take(self.most)?;
        let end = Instant::now() + self.longest;
        for looks in 0_usize.. {
            match call(false) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => {
                    self.vain = self.vain.saturating_sub(1);
                    return Some(result);
                }
            }
            if !looks.is_multiple_of(LOOKS) {
                continue;
            }
            let before = Instant::now();
            sched_yield();
            let now = Instant::now();
            if now >= end || now - before > TAKEN {
                self.vain = (self.vain + 1).min(MOST_BLIND.ilog2());
                self.blind = (1 << self.vain) - 2;
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;

    #[test]
    fn a_bound_thread_counts_its_own_cores_and_nobody_elses() {
        let all = sched_getaffinity(None).unwrap();
        let bound = std::thread::spawn(move || {
            let mut only = CpuSet::new();
            only.set((0..CpuSet::MAX_CPU).find(|core| all.is_set(*core)).unwrap());
            sched_setaffinity(None, &only).unwrap();
            Patience::new(Duration::ZERO).most
        });
        assert_eq!(bound.join().unwrap(), 0);
        let cores = std::thread::available_parallelism().unwrap().get();
        assert_eq!(Patience::new(Duration::ZERO).most, cores / 2);
    }

    #[test]
    fn looks_become_rare_in_vain_and_frequent_with_success() {
        let mut patience = Patience::new(Duration::from_nanos(1));
        let mut looks = 0;
        for _ in 0..4096 {
            let got = patience.wait(|may_block| {
                looks += u32::from(!may_block);
                if may_block { Ok(7) } else { Err(Errno::AGAIN) }
            });
            assert_eq!(got.unwrap(), 7);
        }
        assert!(looks < 80, "{looks} looks");
        // Wherever it stands, it looks again within as many waits, and then each time that it is its turn.
        let mut found = 0;
        for _ in 0..4 * MOST_BLIND {
            patience
                .wait(|may_block| {
                    found += u32::from(!may_block);
                    Ok(())
                })
                .unwrap();
        }
        assert!(most_looking() == 0 || found >= MOST_BLIND, "{found}");
    }

    #[test]
    fn errors_and_limits_arrive() {
        let mut patience = Patience::new(Duration::ZERO);
        let mut calls = 0;
        let interrupted = patience.wait(|_| {
            calls += 1;
            if calls == 1 {
                Err(Errno::INTR)
            } else {
                Ok(calls)
            }
        });
        assert_eq!(interrupted.unwrap(), 2);
        let limit = patience.wait(|_| Err::<(), _>(Errno::AGAIN)).unwrap_err();
        assert_eq!(limit.kind(), io::ErrorKind::TimedOut);
        let mut patience = Patience::new(Duration::from_secs(1));
        let reset = patience
            .wait(|_| Err::<(), _>(Errno::CONNRESET))
            .unwrap_err();
        assert_eq!(reset.kind(), io::ErrorKind::ConnectionReset);
    }
}
