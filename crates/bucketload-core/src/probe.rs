//! The probe collects the instants and facts of one operation while a session performs it.

use std::cell::RefCell;

/// Phase durations of one connection establishment, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectTimes {
    /// Name resolution; 0 if the address was literal or already resolved.
    pub dns_ns: u64,
    /// TCP connect.
    pub tcp_ns: u64,
    /// TLS handshake; 0 without TLS.
    pub tls_ns: u64,
}

impl ConnectTimes {
    /// The sum of all three, nanoseconds.
    #[inline]
    #[must_use]
    pub const fn total_ns(&self) -> u64 {
        self.dns_ns + self.tcp_ns + self.tls_ns
    }
}

/// Most bytes kept of an identifier.
const ID_BYTES: usize = 80;

/// An identifier that a store gives to a request, in a fixed amount of memory. Longer ones are cut off.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AnswerId {
    len: u8,
    bytes: [u8; ID_BYTES],
}

impl Default for AnswerId {
    fn default() -> Self {
        Self {
            len: 0,
            bytes: [0; ID_BYTES],
        }
    }
}

impl std::fmt::Debug for AnswerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl AnswerId {
    /// Keeps the visible ASCII characters of `value`, at most 80. The identifier ends up in files and on terminals, so
    /// nothing else a store sends may pass.
    pub fn set(&mut self, value: &[u8]) {
        let mut len = 0;
        for &byte in value.iter().filter(|b| b.is_ascii_graphic()).take(ID_BYTES) {
            self.bytes[len] = byte;
            len += 1;
        }
        self.len = len as u8;
    }

    /// Empties the identifier.
    #[inline]
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// The identifier as text; empty if there is none.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // `set` keeps only ASCII.
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

/// The identifiers in an answer's head: S3's `x-amz-request-id` and `x-amz-id-2`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerIds {
    /// Identifies the request in the store's logs.
    pub request_id: AnswerId,
    /// Identifies the host or path inside the store.
    pub extended_id: AnswerId,
}

thread_local! {
    #[allow(clippy::vec_box, reason = "probes own them as boxes; only the boxes move")]
    static SPARE: RefCell<Vec<Box<AnswerIds>>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the memory of identifiers for the next operation that needs it.
#[cold]
fn spare(ids: Box<AnswerIds>) {
    SPARE.with_borrow_mut(|spare| spare.push(ids));
}

/// Collects the instants of one operation. The clock is a plain function, so tests can use virtual time.
#[derive(Clone, Debug)]
pub struct Probe {
    clock: fn() -> u64,
    started_ns: u64,
    sent_ns: u64,
    first_byte_ns: u64,
    done_ns: u64,
    requests: u32,
    connects: u32,
    connect: ConnectTimes,
    status: u16,
    /// The identifiers of answers that end at or after this instant are wanted.
    ids_from_ns: u64,
    /// The identifiers of this operation. The thread's probes share the memory, since few operations need it.
    ids: Option<Box<AnswerIds>>,
}

impl Probe {
    /// A probe that reads `clock`, nanoseconds since the run's epoch, and wants no identifiers.
    #[must_use]
    pub fn new(clock: fn() -> u64) -> Self {
        Self {
            clock,
            started_ns: 0,
            sent_ns: 0,
            first_byte_ns: 0,
            done_ns: 0,
            requests: 0,
            connects: 0,
            connect: ConnectTimes::default(),
            status: 0,
            ids_from_ns: u64::MAX,
            ids: None,
        }
    }

    /// A probe for requests that are not timed.
    #[must_use]
    pub fn untimed() -> Self {
        Self::new(|| 0)
    }

    /// Starts over for another operation, without wanting identifiers.
    #[inline]
    pub fn reset(&mut self) {
        self.started_ns = 0;
        self.sent_ns = 0;
        self.first_byte_ns = 0;
        self.done_ns = 0;
        self.requests = 0;
        self.connects = 0;
        self.connect = ConnectTimes::default();
        self.status = 0;
        self.ids_from_ns = u64::MAX;
        if let Some(ids) = self.ids.take() {
            spare(ids);
        }
    }

    /// Wants the identifiers of answers that end at or after `from_ns`: operations that slow are kept individually.
    #[inline]
    pub const fn want_ids_from(&mut self, from_ns: u64) {
        self.ids_from_ns = from_ns;
    }

    /// Current time in nanoseconds since the run's epoch.
    #[inline]
    #[must_use]
    pub fn now(&self) -> u64 {
        (self.clock)()
    }

    /// Marks the instant at which a request leaves. Each call counts one request; the first one of an operation sets
    /// `started`.
    #[inline]
    pub fn started(&mut self) {
        if self.requests == 0 {
            self.started_ns = (self.clock)();
        }
        self.requests += 1;
    }

    /// The clock, for code that performs the operation on another thread and reports the instants.
    #[inline]
    #[must_use]
    pub const fn clock(&self) -> fn() -> u64 {
        self.clock
    }

    /// As [`Probe::started`], at an instant read from [`Probe::clock`].
    #[inline]
    pub const fn started_at(&mut self, ns: u64) {
        if self.requests == 0 {
            self.started_ns = ns;
        }
        self.requests += 1;
    }

    /// As [`Probe::first_byte`], at an instant read from [`Probe::clock`].
    #[inline]
    pub const fn first_byte_at(&mut self, ns: u64) {
        if self.first_byte_ns == 0 {
            self.first_byte_ns = ns;
        }
    }

    /// As [`Probe::done`], at an instant read from [`Probe::clock`].
    #[inline]
    pub const fn done_at(&mut self, ns: u64) {
        self.done_ns = ns;
    }

    /// Marks the instant at which the whole first request of the operation has left. Call only if that took several
    /// system calls: for a request that left in one, `started` is the instant, and a reading of the clock is saved.
    /// Ignored for further requests of the same operation.
    #[inline]
    pub fn sent(&mut self) {
        if self.requests == 1 {
            self.sent_ns = (self.clock)();
        }
    }

    /// Counts `more` requests of the operation that other probes have seen, because they were under way at the same time.
    pub const fn add_requests(&mut self, more: u32) {
        self.requests += more;
    }

    /// Marks the arrival of the answer's first byte. Later calls of the same operation are ignored: the first of
    /// several answers counts.
    #[inline]
    pub fn first_byte(&mut self) {
        if self.first_byte_ns == 0 {
            self.first_byte_ns = (self.clock)();
        }
    }

    /// Marks the arrival of the answer's last byte. The last call counts.
    #[inline]
    pub fn done(&mut self) {
        self.done_ns = (self.clock)();
    }

    /// Marks first and last byte with one reading of the clock, if the whole answer came at once.
    #[inline]
    pub fn first_byte_and_done(&mut self) {
        self.done_ns = (self.clock)();
        if self.first_byte_ns == 0 {
            self.first_byte_ns = self.done_ns;
        }
    }

    /// Notes the status of an answer. The last call counts.
    #[inline]
    pub const fn answered(&mut self, status: u16) {
        self.status = status;
    }

    /// Adds a connection that was established before `started`.
    pub fn connected(&mut self, times: ConnectTimes) {
        self.connects += 1;
        self.connect.dns_ns += times.dns_ns;
        self.connect.tcp_ns += times.tcp_ns;
        self.connect.tls_ns += times.tls_ns;
    }

    /// Whether the identifiers of the answer that has just begun are wanted: it ended late, or it has not ended
    /// (`done` was not called), so it may still end late.
    #[inline]
    #[must_use]
    pub const fn wants_ids(&self) -> bool {
        if self.done_ns == 0 {
            self.ids_from_ns != u64::MAX
        } else {
            self.done_ns >= self.ids_from_ns
        }
    }

    /// Empty identifiers to fill in. Allocates only if more of the thread's probes hold identifiers than ever before.
    pub fn ids_mut(&mut self) -> &mut AnswerIds {
        let ids = self.ids.get_or_insert_with(|| {
            let kept = SPARE.with_borrow_mut(Vec::pop);
            kept.unwrap_or_default()
        });
        ids.request_id.clear();
        ids.extended_id.clear();
        ids
    }

    /// The identifiers of the answer, if they were wanted.
    #[must_use]
    pub fn ids(&self) -> Option<&AnswerIds> {
        self.ids.as_deref()
    }

    /// When the first request left; 0 if none did.
    #[must_use]
    pub const fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// When the whole first request had left; 0 if [`Probe::sent`] was not called.
    #[must_use]
    pub const fn sent_ns(&self) -> u64 {
        self.sent_ns
    }

    /// When the answer's first byte came; 0 if none came.
    #[must_use]
    pub const fn first_byte_ns(&self) -> u64 {
        self.first_byte_ns
    }

    /// When the answer's last byte came; 0 if none came.
    #[must_use]
    pub const fn done_ns(&self) -> u64 {
        self.done_ns
    }

    /// Number of requests sent for the operation.
    #[must_use]
    pub const fn requests(&self) -> u32 {
        self.requests
    }

    /// Status of the last answer; 0 if there was none.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Number of connections made during the operation, and the sums of their phase times.
    #[must_use]
    pub const fn connects(&self) -> (u32, ConnectTimes) {
        (self.connects, self.connect)
    }
}

#[cfg(test)]
mod tests {
    use super::{AnswerId, Probe};

    #[test]
    fn identifiers_are_bounded_and_printable() {
        let mut id = AnswerId::default();
        id.set(b"tx0\x1b[31m1-\xff2");
        assert_eq!(id.as_str(), "tx0[31m1-2");
        id.set(&[b'x'; 300]);
        assert_eq!(id.as_str().len(), 80);
        id.clear();
        assert_eq!(id.as_str(), "");
    }

    #[test]
    fn identifiers_of_late_and_of_unfinished_answers_are_wanted() {
        let mut probe = Probe::new(|| 1000);
        assert!(!probe.wants_ids(), "nobody asked");
        probe.want_ids_from(1001);
        assert!(probe.wants_ids(), "not done yet");
        probe.first_byte_and_done();
        assert!(!probe.wants_ids(), "done before");
        probe.reset();
        probe.want_ids_from(1000);
        probe.first_byte_and_done();
        assert!(probe.wants_ids());
        assert_eq!(probe.ids(), None);
        probe.ids_mut().request_id.set(b"1");
        assert_eq!(probe.ids().unwrap().request_id.as_str(), "1");
        probe.reset();
        assert_eq!(probe.ids(), None, "they belong to the previous operation");
    }

    #[test]
    fn only_the_first_request_is_timed() {
        let mut probe = Probe::new(|| 7);
        probe.started();
        probe.started();
        probe.sent();
        assert_eq!((probe.started_ns(), probe.sent_ns()), (7, 0));
    }
}
