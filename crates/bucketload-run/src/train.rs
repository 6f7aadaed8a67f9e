//! Training: readers that fetch batches ahead, accelerators that compute on them, and a barrier after each step.
//!
//! ```text
//!  reader      ─ read ─ read ─ batch ready ─┐   room for another? ─ read ─ …
//!                                           ▼           ▲
//!  accelerator  waits ────────────────── takes it ──────┘ computes (a timer) ─ meets the others ─ next step
//! ```
//!
//! An accelerator and its readers are tasks of one load thread, so they share cells. The accelerators of all threads
//! and processes meet at the barrier. Reads take the same path as all operations ([`perform`]). An accelerator that
//! computes sleeps.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use bucketload_core::error::ErrorKind;
use bucketload_core::generate::train::TrainGen;
use bucketload_core::record::Outcome;
use bucketload_core::sink::Event;
use bucketload_core::train::{StepTimes, TrainEpoch};
use tokio::sync::Notify;

use crate::clock::now_ns;
use crate::closed::TURN_NS;
use crate::due::DueOp;
use crate::perform::{Worker, perform};
use crate::rank_agreement::RankAgreement;
use crate::recorder::Message;
use crate::shard::Shard;
use crate::source::{Source, body_bytes};
use crate::timer::DueTimer;

/// How often waiting tasks check whether the phase has ended.
const LOOK: Duration = Duration::from_millis(50);

/// What the accelerators of this process share.
pub(crate) struct TrainWork {
    reads: TrainGen,
    barrier: Barrier,
}

impl TrainWork {
    /// The work of the `local` accelerators of this process in phase `phase`.
    pub(crate) fn new(
        reads: TrainGen,
        phase: u16,
        local: u32,
        agreement: Option<Arc<RankAgreement>>,
    ) -> Self {
        Self {
            reads,
            barrier: Barrier {
                local,
                arrived: AtomicU32::new(0),
                opened: AtomicU64::new(0),
                changed: Notify::new(),
                phase,
                agreement,
            },
        }
    }
}

/// Where accelerators wait for one another: at meeting 1 after the first step, and so on.
struct Barrier {
    /// Accelerators of this process.
    local: u32,
    arrived: AtomicU32,
    /// The last meeting that all of this process came to.
    opened: AtomicU64,
    changed: Notify,
    phase: u16,
    /// The agreement with other processes, if there are any: the last meeting that all came to.
    agreement: Option<Arc<RankAgreement>>,
}

impl Barrier {
    /// Waits until all have come to meeting `meeting`; `None` if the phase ends first.
    async fn meet(&self, shard: &Shard, meeting: u64) -> Option<()> {
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.local {
            // Nobody comes to the next meeting before this one opens.
            self.arrived.store(0, Ordering::Release);
            match &self.agreement {
                Some(agreement) => agreement.reached(self.phase, meeting),
                None => {
                    self.opened.store(meeting, Ordering::Release);
                    self.changed.notify_waiters();
                }
            }
        }
        let (changed, last): (_, &dyn Fn() -> u64) = match &self.agreement {
            Some(agreement) => (agreement.changed(), &|| {
                agreement.steps(self.phase).unwrap_or(0)
            }),
            None => (&self.changed, &|| self.opened.load(Ordering::Acquire)),
        };
        until(shard, changed, || last() >= meeting).await
    }
}

/// Waits until `holds`, which may change whenever `changed` is notified; `None` if the phase ends first.
async fn until(shard: &Shard, changed: &Notify, holds: impl Fn() -> bool) -> Option<()> {
    loop {
        let mut news = pin!(changed.notified());
        // Enabled before the check, so nothing that happens in between is missed.
        news.as_mut().enable();
        if holds() {
            return Some(());
        }
        if now_ns() >= shard.cutoff_ns.get() {
            return None;
        }
        let _ = tokio::time::timeout(LOOK, news).await;
    }
}

/// One accelerator, as its readers see it.
pub(crate) struct Accelerator {
    work: u16,
    number: u32,
    /// Whether the phase has begun. Its start wakes sessions, which only readers have.
    begun: Cell<bool>,
    /// Epochs that have begun.
    epochs: Cell<u32>,
    /// Batches of the epoch that the accelerator has taken.
    taken: Cell<u64>,
    /// Batches of the epoch that each reader has completed.
    ready: Vec<Cell<u64>>,
    /// A batch was taken, or an epoch began.
    room: Notify,
    /// A batch is ready.
    batches: Notify,
    timer: DueTimer,
    /// The epoch so far. It outlives an accelerator that the end of the phase interrupts.
    record: RefCell<TrainEpoch>,
}

impl Accelerator {
    pub(crate) fn new(work: u16, number: u32, readers: u32, precise: bool) -> io::Result<Rc<Self>> {
        Ok(Rc::new(Self {
            work,
            number,
            begun: Cell::new(false),
            epochs: Cell::new(0),
            taken: Cell::new(0),
            ready: (0..readers).map(|_| Cell::new(0)).collect(),
            room: Notify::new(),
            batches: Notify::new(),
            timer: DueTimer::new(precise)?,
            record: RefCell::default(),
        }))
    }

    /// Index of the work within the phase.
    pub(crate) const fn work(&self) -> u16 {
        self.work
    }

    /// Reports the epoch, if it has any step.
    pub(crate) fn report(&self, shard: &Shard) {
        let epoch = self.record.take();
        if epoch.steps > 0 {
            let event = Event::Train(epoch);
            shard.recorder.send(Message::Report(event));
        }
    }

    fn begin(&self, shard: &Shard, work: &TrainWork, epoch: u32, began_ns: u64) {
        let plan = work.reads.plan();
        *self.record.borrow_mut() = TrainEpoch {
            phase: shard.shared.phase,
            work: self.work,
            epoch,
            accelerator: self.number,
            began_ns,
            ended_ns: began_ns,
            planned: plan.steps(),
            times: Vec::<StepTimes>::with_capacity(plan.recorded_steps() as usize),
            ..TrainEpoch::default()
        };
        self.ready.iter().for_each(|ready| ready.set(0));
        self.taken.set(0);
        self.epochs.set(epoch + 1);
        self.room.notify_waiters();
    }

    /// Returns at `at_ns` or later; `None` if the phase ends first. The thread sleeps or does other work meanwhile.
    async fn compute(&self, shard: &Shard, at_ns: u64) -> Option<()> {
        loop {
            let now = now_ns();
            if now >= at_ns {
                return Some(());
            }
            if now >= shard.cutoff_ns.get() {
                return None;
            }
            let next = at_ns.min(now + LOOK.as_nanos() as u64);
            poll_fn(|cx| self.timer.poll_until(next, cx)).await;
        }
    }

    /// Goes through all epochs; `None` if the phase ends first.
    async fn train(&self, shard: &Shard, work: &TrainWork) -> Option<()> {
        let plan = work.reads.plan();
        let readers = self.ready.len() as u64;
        until(shard, &self.batches, || self.begun.get()).await?;
        let mut meeting = 0;
        let mut now = now_ns();
        for epoch in 0..plan.epochs {
            self.begin(shard, work, epoch, now);
            for step in 0..plan.steps() {
                let asked = now;
                let from = &self.ready[(step % readers) as usize];
                until(shard, &self.batches, || from.get() > step / readers).await?;
                let began = now_ns();
                self.taken.set(step + 1);
                self.room.notify_waiters();
                self.compute(shard, began + plan.computation_ns).await?;
                let computed = now_ns();
                meeting += 1;
                work.barrier.meet(shard, meeting).await?;
                now = now_ns();
                let mut record = self.record.borrow_mut();
                let times = [began - asked, computed - began, now - computed];
                record.step(times, plan.computation_ns);
                record.ended_ns = now;
            }
            self.report(shard);
        }
        Some(())
    }

    /// Reads the batches of reader `reader`; `None` if the phase ends first.
    async fn read(
        &self,
        shard: &Shard,
        (source, work): (&Source, &TrainWork),
        reader: u32,
        worker: &mut Worker,
    ) -> Option<()> {
        let plan = work.reads.plan();
        let readers = self.ready.len() as u64;
        let ahead = readers * u64::from(plan.ahead);
        let sessions = u64::from(plan.accelerators) * readers;
        let mut seq = u64::from(self.number) * readers + u64::from(reader);
        self.begun.set(true);
        self.batches.notify_waiters();
        let mut gone_on_ns = now_ns();
        for epoch in 0..plan.epochs {
            until(shard, &self.room, || self.epochs.get() > epoch).await?;
            let mut reads = work.reads.reads(epoch, self.number, reader);
            let mut batch = u64::from(reader);
            while reads.batch() {
                until(shard, &self.room, || batch < self.taken.get() + ahead).await?;
                while let Some(read) = reads.next(|object| source.op_on(0, seq, object).size) {
                    let now = now_ns();
                    shard.check_bytes(now);
                    if now >= shard.cutoff_ns.get() || shard.beyond_ops(seq) {
                        // Otherwise the others would wait for this batch.
                        shard.close(now);
                        return None;
                    }
                    shard.tick(now);
                    let mut op = source.op_on(0, seq, read.object);
                    op.range = read.range;
                    seq += sessions;
                    let mut due_op = DueOp::new(op, now, now);
                    shard.offered(now, &due_op.op);
                    shard.recorder.tally().issued += 1;
                    let end = perform(shard, worker, &mut due_op, || ()).await;
                    if end.outcome == Outcome::Failed(ErrorKind::Cancelled) {
                        return None;
                    }
                    {
                        let mut record = self.record.borrow_mut();
                        record.reads += 1;
                        record.failed += u64::from(end.outcome != Outcome::Ok);
                        record.wanted_bytes += body_bytes(&due_op.op);
                        record.bytes += end.bytes;
                    }
                    if end.waited {
                        gone_on_ns = end.now_ns;
                    } else if end.now_ns - gone_on_ns >= TURN_NS {
                        tokio::task::yield_now().await;
                        gone_on_ns = now_ns();
                    }
                }
                let ready = &self.ready[reader as usize];
                ready.set(ready.get() + 1);
                self.batches.notify_waiters();
                batch += readers;
            }
        }
        Some(())
    }
}

/// The task of an accelerator.
pub(crate) async fn run_accelerator(shard: Rc<Shard>, accelerator: Rc<Accelerator>) {
    if let Some(work) = shard.source(accelerator.work).train() {
        // The end of the phase is no failure.
        let _ = accelerator.train(&shard, work).await;
    }
    shard.closed_live.set(shard.closed_live.get() - 1);
    shard.wake_main();
}

/// The task of a reader, with an open session.
pub(crate) async fn run_reader(
    shard: Rc<Shard>,
    accelerator: Rc<Accelerator>,
    reader: u32,
    mut worker: Box<Worker>,
) {
    let source = shard.source(accelerator.work);
    if let Some(work) = source.train() {
        let _ = accelerator
            .read(&shard, (source, work), reader, &mut worker)
            .await;
    }
    shard.closed_live.set(shard.closed_live.get() - 1);
    shard.wake_main();
}
