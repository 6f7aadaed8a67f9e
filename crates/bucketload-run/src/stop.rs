//! The handle with which a signal handler or a server ends a run early.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// How urgently a run is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// Not at all.
    Run,
    /// Offer no more operations, let those in flight end, clean up.
    Finish,
    /// Cancel operations in flight and leave at once, without cleaning up.
    Abort,
}

/// Asks a run to end. Cloned handles act on the same run. [`StopHandle::stop`] is one atomic operation, so a signal
/// handler may call it.
#[derive(Clone, Debug, Default)]
pub struct StopHandle(Arc<AtomicU8>);

impl StopHandle {
    /// A new handle, at [`StopLevel::Run`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The first call asks the run to finish early and clean up, the second to abort.
    pub fn stop(&self) {
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n < 2).then_some(n + 1)
            });
    }

    /// What has been asked for so far.
    #[must_use]
    pub fn level(&self) -> StopLevel {
        match self.0.load(Ordering::Relaxed) {
            0 => StopLevel::Run,
            1 => StopLevel::Finish,
            _ => StopLevel::Abort,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{StopHandle, StopLevel};

    #[test]
    fn two_calls_abort_and_more_change_nothing() {
        let handle = StopHandle::new();
        let other = handle.clone();
        assert_eq!(handle.level(), StopLevel::Run);
        other.stop();
        assert_eq!(handle.level(), StopLevel::Finish);
        handle.stop();
        handle.stop();
        assert_eq!(other.level(), StopLevel::Abort);
    }
}
