//! One load thread's accumulation: a tally that is swapped at interval boundaries.
//!
//! ```text
//!  load thread                                   collector (the caller's thread)
//!  tally ── record ── boundary: full tally ─────▶ merge into the interval, clear
//!    ▲                                              │
//!    └──────────── spare tallies ◀──────────────────┘   (bounded channels, nothing is allocated)
//! ```
//!
//! What ends is written into a short list first and counted a list at a time: between two operations the kernel moves
//! their contents through the caches, and the processor waits for histograms one by one; in a row it waits once.
//!
//! The thread itself notices the boundary, at the first event at or after it, so an interval holds
//! exactly what was recorded before it; the supervisor sees to it that an idle thread notices too.

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
use bucketload_core::slowest::{KEPT, SlowTrail, Slowest};
use bucketload_core::tally::{Recording, Tally};
use bucketload_core::trail::{KeyText, Trail};

use crate::clock::thread_cpu_ns;
use crate::error::RunError;

/// Intervals that a thread may be ahead of a slow collector before they are delivered jointly;
/// also the bound of the tallies that a thread allocates.
pub(crate) const INTERVALS_AHEAD: usize = 64;

/// Operations that have ended and are counted together: enough that waiting for the histograms is shared, few enough
/// that the list stays in the first-level cache and counting it delays no arrival by more than a microsecond or two.
const COUNTED_TOGETHER: usize = 16;

/// Operations that have ended and are not counted yet.
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

    /// Where the record of the next operation belongs; it is there from then on. There is room, as
    /// [`Recorder::ended`] sees to it.
    #[inline]
    pub(crate) fn next(&mut self) -> &mut OpRecord {
        let at = self.len % COUNTED_TOGETHER;
        self.len += 1;
        &mut self.records[at]
    }
}

/// What a load thread reads at the end of an interval.
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

/// What a load thread has under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// Operations due but not ended.
    pub(crate) in_flight: u64,
    /// Open sessions.
    pub(crate) sessions: u64,
    /// Jobs that have arrived and not ended.
    pub(crate) jobs: u64,
    /// Due instant of the oldest of these operations, nanoseconds since the epoch; `u64::MAX` when
    /// there is none.
    pub(crate) oldest_due_ns: u64,
}

/// What load threads tell the collector.
pub(crate) enum Message {
    /// The thread's first sessions are open; it waits for the start.
    Ready,
    /// The thread could not get ready.
    Failed(RunError),
    /// The tally of interval `index` and of all before it that were not delivered.
    Tally {
        thread: usize,
        index: u64,
        recording: Box<Recording>,
        gauges: ThreadGauges,
        /// Operations that have become some of the thread's slowest, with their response times.
        slow: Vec<(u64, SlowTrail)>,
    },
    /// A failure, in full.
    Failure(Event),
    /// What each of the thread's streams did.
    Streams(Vec<StreamSum>),
    /// What the thread's workers on named objects did.
    Rows(Box<PhaseRows>),
    /// What the thread's ranks did.
    Ranks(Vec<RankSum>),
    /// Nothing more comes from this thread.
    Done(Done),
}

/// How a thread's part of a phase ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) thread: usize,
    /// Latest due instant of an operation that was offered.
    pub(crate) last_due_ns: u64,
    /// Instant at which nothing was in flight any more.
    pub(crate) drained_ns: u64,
    /// Whether the time limit (not the end of the schedule) ended the offering.
    pub(crate) time_limit: bool,
    /// Whether the byte limit ended it.
    pub(crate) byte_limit: bool,
}

/// A recording with a cell for everything that `phase` can record, so that recording allocates nothing.
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

/// The recording end of one load thread.
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
    /// Makes a recording with all cells that the phase needs.
    make: Box<dyn Fn() -> Box<Recording>>,
    /// Recordings made.
    made: Cell<usize>,
    /// The slowest operations of the phase so far; `None` in phases that do not measure.
    slowest: Option<RefCell<Slowest<SlowTrail>>>,
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

    /// Fine counts of the interval begin.
    fn begin_fine(&self) {
        let start_ns = self.boundary.get().saturating_sub(self.interval_ns);
        self.tally().fine.begin(start_ns, self.interval_ns);
    }

    /// End of the current interval.
    #[inline]
    pub(crate) fn boundary(&self) -> u64 {
        self.boundary.get()
    }

    /// Room for the record of an operation that has ended.
    #[inline]
    pub(crate) fn ended(&self) -> RefMut<'_, UncountedRecords> {
        let mut ended = self.ended.borrow_mut();
        if ended.len == COUNTED_TOGETHER {
            self.count(&mut ended);
        }
        ended
    }

    /// For the moment after a request has left: counts what has ended if it is much already, rather than have it counted
    /// when the next request is to leave.
    #[inline]
    pub(crate) fn count_meanwhile(&self) {
        let mut ended = self.ended.borrow_mut();
        if ended.len >= COUNTED_TOGETHER / 2 {
            self.count(&mut ended);
        }
    }

    /// Counts what has ended.
    #[inline(never)]
    fn count(&self, ended: &mut UncountedRecords) {
        self.recording
            .borrow_mut()
            .record_all(&ended.records[..ended.len]);
        ended.len = 0;
    }

    /// The tally being filled, for what is counted one by one.
    #[inline]
    pub(crate) fn tally(&self) -> RefMut<'_, Tally> {
        RefMut::map(self.recording.borrow_mut(), |recording| recording.counts())
    }

    /// An operation whose response takes at least this long, nanoseconds, is kept one by one.
    #[inline]
    pub(crate) fn kept_from_ns(&self) -> u64 {
        self.kept_from_ns.get()
    }

    /// Keeps an operation one by one where that is wanted: all of them for the operation log, the
    /// slowest for diagnosis.
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

    /// Keeps an operation that [`Recorder::keep`] has found worth it: few are, unless all are wanted.
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

    /// Delivers the current interval and begins the next one. In steady state the tally that the
    /// collector gave back is used again; a slow collector makes the thread allocate a few more,
    /// and beyond that bound the interval is delivered together with the next one.
    pub(crate) fn rotate(&self, level: Level) {
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
            let message = self.message(full, level, self.boundary.get());
            if let Err(TrySendError::Full(Message::Tally {
                recording, slow, ..
            })) = self.to_collector.try_send(message)
            {
                // Nothing is lost: the records go with the next interval.
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

    /// Delivers what is left; may wait for the collector.
    pub(crate) fn finish(&self, level: Level, streams: Vec<StreamSum>, done: Done) {
        self.count(&mut self.ended.borrow_mut());
        let full = self.recording.replace(Box::default());
        // A closed channel means that the collector has given up; there is nobody left to tell.
        let _ = self
            .to_collector
            .send(self.message(full, level, done.drained_ns));
        if !streams.is_empty() {
            let _ = self.to_collector.send(Message::Streams(streams));
        }
        let _ = self.to_collector.send(Message::Done(done));
    }

    /// Tells the collector something without ever waiting for it.
    pub(crate) fn try_tell(&self, message: Message) {
        let _ = self.to_collector.try_send(message);
    }

    /// Operations that have become some of the slowest since they were delivered last.
    fn fresh(&self) -> Vec<(u64, SlowTrail)> {
        self.slowest
            .as_ref()
            .map_or_else(Vec::new, |slowest| slowest.borrow_mut().take_fresh())
    }

    /// Tells the collector something that must not be missed; may wait for it.
    pub(crate) fn tell(&self, message: Message) {
        // A closed channel means that the collector has given up.
        let _ = self.to_collector.send(message);
    }

    fn message(&self, recording: Box<Recording>, level: Level, at_ns: u64) -> Message {
        Message::Tally {
            thread: self.thread,
            index: self.index.get(),
            recording,
            gauges: ThreadGauges {
                in_flight: level.in_flight,
                sessions: level.sessions,
                backlog_ns: at_ns.saturating_sub(level.oldest_due_ns),
                jobs: level.jobs,
                cpu_ns: thread_cpu_ns(),
            },
            slow: self.fresh(),
        }
    }
}
