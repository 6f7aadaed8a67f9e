//! The probe of the operation under way, where the HTTP layer of a library can reach it.
//!
//! A library hides when its requests leave and how often it repeats them. Its HTTP layer can be
//! wrapped, but what it is given there has to be `'static` and `Sync`. So the session exchanges the
//! worker's probe for the one in here while the operation lasts, and the wrapper marks that one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bucketload_core::record::Probe;

/// Shared by a session and the HTTP layer of its client.
#[derive(Clone, Debug)]
pub(crate) struct Marks(Arc<Mutex<Probe>>);

impl Default for Marks {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Probe::untimed())))
    }
}

impl Marks {
    /// Lends the worker's probe to the HTTP layer until the value is dropped.
    pub(crate) fn lend<'a>(&'a self, probe: &'a mut Probe) -> Lent<'a> {
        std::mem::swap(&mut *self.probe(), probe);
        Lent { marks: self, probe }
    }

    /// The probe. The session and the HTTP layer take turns on one thread: the lock is never
    /// contended.
    pub(crate) fn probe(&self) -> MutexGuard<'_, Probe> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request leaves. The status of an answer before it is forgotten, so that a failure without
    /// an answer is not taken for one with it.
    pub(crate) fn started(&self) {
        let mut probe = self.probe();
        probe.started();
        probe.answered(0);
    }

    /// An answer's head has come: marks it and keeps the store's names for the request where they
    /// are wanted. `field` looks up a header field.
    pub(crate) fn answered<'v>(&self, status: u16, field: impl Fn(&str) -> Option<&'v [u8]>) {
        let mut probe = self.probe();
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

/// Gives the worker's probe back when dropped, also when the operation is abandoned.
pub(crate) struct Lent<'a> {
    marks: &'a Marks,
    probe: &'a mut Probe,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        std::mem::swap(&mut *self.marks.probe(), self.probe);
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::record::Probe;

    use super::Marks;

    #[test]
    fn what_the_http_layer_marks_is_the_workers() {
        let marks = Marks::default();
        let layer = marks.clone();
        let mut probe = Probe::new(|| 7);
        probe.want_ids_from(0);
        {
            let _lent = marks.lend(&mut probe);
            layer.started();
            layer.started();
            layer.answered(503, |name| {
                (name == "x-amz-request-id").then_some(b"r1".as_slice())
            });
        }
        assert_eq!((probe.requests(), probe.started_ns()), (2, 7));
        assert_eq!((probe.first_byte_ns(), probe.status()), (7, 503));
        assert_eq!(probe.ids().unwrap().request_id.as_str(), "r1");
        // What a left-over request does later touches nobody's operation.
        layer.started();
        assert_eq!(probe.requests(), 2);
    }
}
