//! Recording on one load thread, in a tally that is swapped at interval boundaries.
//!
//! ```text
//!  load thread                                   collector (the caller's thread)
//!  tally ── record ── boundary: full tally ─────▶ merge into the interval, clear
//!    ▲                                              │
//!    └──────────── spare tallies ◀──────────────────┘   (bounded channels, nothing is allocated)
//! ```
//!
//! Records of operations that ended go into a short list and are counted a list at a time. Between two operations the
//! kernel pushes their contents through the caches, so counting one by one stalls on every histogram; counting a list
//! stalls once.
//!
//! The thread itself notices the boundary, at the first event at or after it, so an interval holds exactly what was
//! recorded before. The supervisor wakes an idle thread at the boundary.

use std::cell::{Cell, RefCell, RefMut};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

use bucketload_core::driver::RequestRoute;
use bucketload_core::endpoint::EndpointTally;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::Request;
use bucketload_core::oplog::Producer;
use bucketload_core::plan::PhasePlan;
use bucketload_core::ranks::RankSum;
use bucketload_core::record::{OpRecord, Outcome, Probe};
use bucketload_core::rows::PhaseRows;
use bucketload_core::sink::{Event, StreamSum};
use bucketload_core::slowest::{KEPT, Slowest};
use bucketload_core::tally::{Recording, Tally};
use bucketload_core::trail::{KeyText, Trail};

use crate::error::RunError;

/// Intervals that a thread may be ahead of a slow collector before it merges them; also the most tallies that a
/// thread allocates.
pub(crate) const INTERVALS_AHEAD: usize = 64;

/// Length of the list of uncounted records: long enough to share the stall on the histograms, short enough to stay in
/// the first-load cache and to delay no arrival by more than a microsecond or two.
const COUNTED_TOGETHER: usize = 16;

/// Records of operations that have ended and are not counted yet.
pub(crate) struct UncountedRecords {
    records: Box<[OpRecord; COUNTED_TOGETHER]>,
    len: usize,
}

impl UncountedRecords {
    fn new() -> Self {
        Self {
            records: Box::new([OpRecord::BLANK; COUNTED_TOGETHER]),
            len: 0,
        }
    }

    /// Adds a record and returns it to be filled in. [`Recorder::ended`] guarantees the room.
    #[inline]
    pub(crate) fn next(&mut self) -> &mut OpRecord {
        let at = self.len % COUNTED_TOGETHER;
        self.len += 1;
        &mut self.records[at]
    }
}

/// A load thread's readings at the end of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadGauges {
    /// Operations due but not ended.
    pub(crate) in_flight: u64,
    /// Open sessions.
    pub(crate) sessions: u64,
    /// Jobs that have arrived and not ended.
    pub(crate) jobs: u64,
    /// Age of the oldest operation that is due but not ended, nanoseconds.
    pub(crate) backlog_ns: u64,
    /// CPU time of the thread, nanoseconds.
    pub(crate) cpu_ns: u64,
}

/// Messages from load threads to the collector.
pub(crate) enum Message {
    /// The thread's first sessions are open and it waits for the start.
    Ready,
    /// The thread could not get ready.
    Failed(RunError),
    /// The tally of interval `index` and of all earlier ones that were not delivered.
    Tally {
        thread: usize,
        index: u64,
        recording: Box<Recording>,
        gauges: ThreadGauges,
        /// Operations that have entered the thread's list of slowest.
        slow: Vec<(Trail, KeyText)>,
    },
    /// An event for the sink: a failure in full, a finding, a warning.
    Report(Event),
    /// Sums of the thread's streams.
    Streams(Vec<StreamSum>),
    /// Figures of the thread's workers on named objects.
    Rows(Box<PhaseRows>),
    /// Sums of the thread's ranks.
    Ranks(Vec<RankSum>),
    /// Nothing more comes from this thread.
    Done(ThreadDone),
}

/// How a thread's part of a phase ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadDone {
    pub(crate) thread: usize,
    /// Latest due instant of an operation that was offered.
    pub(crate) last_due_ns: u64,
    /// Instant at which the last operation in flight ended.
    pub(crate) drained_ns: u64,
    /// Whether the time limit, not the end of the schedule, ended the offering.
    pub(crate) time_limit: bool,
    /// Whether the byte limit ended the offering.
    pub(crate) byte_limit: bool,
}

/// A recording with a cell for everything that `phase` can record, so recording allocates nothing.
pub(crate) fn empty_recording(phase: &PhasePlan, endpoints: usize) -> Box<Recording> {
    let mut tally = Tally::new();
    tally.endpoints = EndpointTally::all(endpoints);
    for (work, plan) in phase.works.iter().enumerate() {
        for entry in &plan.mix {
            let work = u16::try_from(work).expect("fewer than 65536 works");
            tally.cell_mut(work, entry.class);
            tally.size_cells(work, entry.class, &phase.accounting.size_classes);
        }
        if let Some(jobs) = plan.model.jobs() {
            let work = u16::try_from(work).expect("fewer than 65536 works");
            for part in 0..=jobs.stages.len() as u16 {
                tally.span_mut(work, part);
            }
        }
    }
    Box::new(Recording::new(tally))
}

/// Records the operations of one load thread.
pub(crate) struct Recorder {
    thread: usize,
    recording: RefCell<Box<Recording>>,
    ended: RefCell<UncountedRecords>,
    interval_ns: u64,
    index: Cell<u64>,
    /// End of the current interval, nanoseconds since the epoch; `u64::MAX` before the start.
    boundary: Cell<u64>,
    to_collector: SyncSender<Message>,
    spares: Receiver<Box<Recording>>,
    /// Makes a recording with all cells of the phase.
    make: Box<dyn Fn() -> Box<Recording>>,
    /// Number of recordings made.
    made: Cell<usize>,
    /// The slowest operations of the phase so far; `None` in phases that do not measure.
    slowest: Option<RefCell<Slowest<(Trail, KeyText)>>>,
    /// See [`Recorder::kept_from_ns`].
    kept_from_ns: Cell<u64>,
    op_log: Option<RefCell<Producer>>,
}

impl Recorder {
    pub(crate) fn new(
        thread: usize,
        interval_ns: u64,
        make: Box<dyn Fn() -> Box<Recording>>,
        to_collector: SyncSender<Message>,
        spares: Receiver<Box<Recording>>,
        keeps_slowest: bool,
        op_log: Option<Producer>,
    ) -> Self {
        Self {
            slowest: keeps_slowest.then(|| RefCell::new(Slowest::new(KEPT))),
            kept_from_ns: Cell::new(match (&op_log, keeps_slowest) {
                (Some(_), _) => 0,
                (None, true) => 1,
                (None, false) => u64::MAX,
            }),
            op_log: op_log.map(RefCell::new),
            thread,
            recording: RefCell::new(make()),
            ended: RefCell::new(UncountedRecords::new()),
            made: Cell::new(1),
            make,
            interval_ns,
            index: Cell::new(0),
            boundary: Cell::new(u64::MAX),
            to_collector,
            spares,
        }
    }

    /// The phase begins at `start_ns`.
    pub(crate) fn start(&self, start_ns: u64) {
        self.boundary.set(start_ns.saturating_add(self.interval_ns));
        self.begin_fine();
    }

    /// Starts the fine counts of the interval.
    fn begin_fine(&self) {
        let start_ns = self.boundary.get().saturating_sub(self.interval_ns);
        self.tally().fine.begin(start_ns, self.interval_ns);
    }

    /// End of the current interval.
    #[inline]
    pub(crate) fn boundary(&self) -> u64 {
        self.boundary.get()
    }

    /// The list of uncounted records, with room for one more.
    #[inline]
    pub(crate) fn ended(&self) -> RefMut<'_, UncountedRecords> {
        let mut ended = self.ended.borrow_mut();
        if ended.len == COUNTED_TOGETHER {
            self.count(&mut ended);
        }
        ended
    }

    /// Counts the list if it is half full. Call right after a request has left: the counting then delays no request
    /// that is about to leave.
    #[inline]
    pub(crate) fn count_meanwhile(&self) {
        let mut ended = self.ended.borrow_mut();
        if ended.len >= COUNTED_TOGETHER / 2 {
            self.count(&mut ended);
        }
    }

    #[inline(never)]
    fn count(&self, ended: &mut UncountedRecords) {
        self.recording
            .borrow_mut()
            .record_all(&ended.records[..ended.len]);
        ended.len = 0;
    }

    /// The current tally, for counters that are incremented directly.
    #[inline]
    pub(crate) fn tally(&self) -> RefMut<'_, Tally> {
        RefMut::map(self.recording.borrow_mut(), |recording| recording.counts())
    }

    /// Operations whose response time is at least this, nanoseconds, are kept individually.
    #[inline]
    pub(crate) fn kept_from_ns(&self) -> u64 {
        self.kept_from_ns.get()
    }

    /// Keeps an operation individually if it is wanted: every one for the operation log, the slowest for diagnosis.
    #[inline]
    pub(crate) fn keep(
        &self,
        record: &OpRecord,
        request: &Request<'_>,
        route: RequestRoute,
        probe: &Probe,
    ) {
        if record.response_ns() >= self.kept_from_ns() {
            self.keep_this(record, request, route, probe);
        }
    }

    /// The rare part of [`Recorder::keep`].
    #[inline(never)]
    fn keep_this(
        &self,
        record: &OpRecord,
        request: &Request<'_>,
        route: RequestRoute,
        probe: &Probe,
    ) {
        let trail = Trail::new(record, request.op, route, probe);
        if let Some(log) = &self.op_log {
            log.borrow_mut().push(trail, request.key, request.source);
        }
        if let Some(slowest) = &self.slowest
            && record.outcome != Outcome::Failed(ErrorKind::Cancelled)
        {
            let entry = (trail, KeyText::new(request.key));
            let mut slowest = slowest.borrow_mut();
            slowest.offer(record.response_ns(), entry);
            if self.op_log.is_none() {
                self.kept_from_ns.set(slowest.threshold() + 1);
            }
        }
    }

    /// Delivers the current interval and begins the next one. Normally reuses a tally that the collector gave back. If
    /// the collector is slow, allocates up to [`INTERVALS_AHEAD`] tallies, and then merges the interval into the next.
    pub(crate) fn rotate(&self, gauges: ThreadGauges) {
        self.count(&mut self.ended.borrow_mut());
        let spare = self.spares.try_recv().ok().or_else(|| {
            (self.made.get() < INTERVALS_AHEAD).then(|| {
                self.made.set(self.made.get() + 1);
                (self.make)()
            })
        });
        if let Some(log) = &self.op_log {
            log.borrow_mut().flush();
        }
        if let Some(spare) = spare {
            let full = self.recording.replace(spare);
            let message = self.message(full, gauges);
            if let Err(TrySendError::Full(Message::Tally {
                recording, slow, ..
            })) = self.to_collector.try_send(message)
            {
                // Nothing is lost: this tally is delivered with the next interval.
                if let (Some(slowest), false) = (&self.slowest, slow.is_empty()) {
                    slowest.borrow_mut().refresh();
                }
                self.recording.replace(recording);
                self.made.set(self.made.get() - 1);
            }
        }
        self.index.set(self.index.get() + 1);
        self.boundary
            .set(self.boundary.get().saturating_add(self.interval_ns));
        self.begin_fine();
    }

    /// Delivers the rest; may wait for the collector.
    pub(crate) fn finish(&self, gauges: ThreadGauges, streams: Vec<StreamSum>, done: ThreadDone) {
        self.count(&mut self.ended.borrow_mut());
        let full = self.recording.replace(Box::default());
        // A closed channel means that the collector has given up.
        let _ = self.to_collector.send(self.message(full, gauges));
        if !streams.is_empty() {
            let _ = self.to_collector.send(Message::Streams(streams));
        }
        let _ = self.to_collector.send(Message::Done(done));
    }

    /// Sends a message without waiting; drops it if the channel is full.
    pub(crate) fn try_send(&self, message: Message) {
        let _ = self.to_collector.try_send(message);
    }

    /// Operations that entered the list of slowest since the last delivery.
    fn fresh(&self) -> Vec<(Trail, KeyText)> {
        self.slowest
            .as_ref()
            .map_or_else(Vec::new, |slowest| slowest.borrow_mut().take_fresh())
    }

    /// Sends a message that must not be lost; may wait for the collector.
    pub(crate) fn send(&self, message: Message) {
        // A closed channel means that the collector has given up.
        let _ = self.to_collector.send(message);
    }

    fn message(&self, recording: Box<Recording>, gauges: ThreadGauges) -> Message {
        Message::Tally {
            thread: self.thread,
            index: self.index.get(),
            recording,
            gauges,
            slow: self.fresh(),
        }
    }
}
