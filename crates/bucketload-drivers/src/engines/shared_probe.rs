//! The probe of the current operation, within reach of a library's HTTP layer.
//!
//! A library hides when its requests leave and how often it repeats them. Its HTTP layer can be
//! wrapped, but the wrapper must be `'static` and `Sync`. So a session swaps the worker's probe into
//! the shared one for the duration of an operation, and the wrapper marks the shared one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bucketload_core::record::Probe;

/// A probe that a session shares with the HTTP layer of its client.
#[derive(Clone, Debug)]
pub(crate) struct SharedProbe(Arc<Mutex<Probe>>);

impl Default for SharedProbe {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Probe::untimed())))
    }
}

impl SharedProbe {
    /// Lends the worker's probe to the HTTP layer until the value is dropped.
    pub(crate) fn lend<'a>(&'a self, probe: &'a mut Probe) -> LentProbe<'a> {
        std::mem::swap(&mut *self.lock(), probe);
        LentProbe {
            shared_probe: self,
            probe,
        }
    }

    /// Locks the probe. The session and the HTTP layer take turns on one thread, so the lock is never
    /// contended.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Probe> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the start of a request. Clears the status of an earlier answer, so a failure without an
    /// answer is not attributed to it.
    pub(crate) fn started(&self) {
        let mut probe = self.lock();
        probe.started();
        probe.answered(0);
    }

    /// Marks the arrival of an answer's head, and records the store's request IDs if the probe wants
    /// them. `field` looks up a header field.
    pub(crate) fn answered<'v>(&self, status: u16, field: impl Fn(&str) -> Option<&'v [u8]>) {
        let mut probe = self.lock();
        probe.first_byte();
        probe.answered(status);
        if probe.wants_ids() {
            let ids = probe.ids_mut();
            if let Some(id) = field("x-amz-request-id") {
                ids.request_id.set(id);
            }
            if let Some(id) = field("x-amz-id-2") {
                ids.extended_id.set(id);
            }
        }
    }
}

/// Returns the worker's probe when dropped, also when the operation is abandoned.
pub(crate) struct LentProbe<'a> {
    shared_probe: &'a SharedProbe,
    probe: &'a mut Probe,
}

impl Drop for LentProbe<'_> {
    fn drop(&mut self) {
        std::mem::swap(&mut *self.shared_probe.lock(), self.probe);
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::record::Probe;

    use super::SharedProbe;

    #[test]
    fn the_http_layer_marks_the_workers_probe() {
        let shared_probe = SharedProbe::default();
        let layer = shared_probe.clone();
        let mut probe = Probe::new(|| 7);
        probe.want_ids_from(0);
        {
            let _lent = shared_probe.lend(&mut probe);
            layer.started();
            layer.started();
            layer.answered(503, |name| {
                (name == "x-amz-request-id").then_some(b"r1".as_slice())
            });
        }
        assert_eq!((probe.requests(), probe.started_ns()), (2, 7));
        assert_eq!((probe.first_byte_ns(), probe.status()), (7, 503));
        assert_eq!(probe.ids().unwrap().request_id.as_str(), "r1");
        // A leftover request does not affect a later operation.
        layer.started();
        assert_eq!(probe.requests(), 2);
    }
}
