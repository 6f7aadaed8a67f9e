//! A load thread: its runtime, its workers, and the supervisor of one phase.
//!
//! ```text
//!  pin, timer slack ─▶ open sessions ─▶ Ready ─▶ wait for the start ─▶ workers run ─▶ drain ─▶ Done
//!                                                    supervisor: intervals, timeouts, limits, commands
//! ```

use std::io;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use bucketload_core::driver::AnyDriver;
use bucketload_core::plan::{PhaseKind, RoundsPlan, TrainPlan};
use bucketload_core::tally::Recording;
use bucketload_core::wakeup;
use tokio::runtime::LocalOptions;
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_local;

use crate::affinity::settle;
use crate::baton::Baton;
use crate::clock::now_ns;
use crate::closed::{self, Opening, crew, worker_shares};
use crate::error::RunError;
use crate::models;
use crate::open::OpenWork;
use crate::options::Pacing;
use crate::partition::Partition;
use crate::recorder::{Message, Recorder, empty_recording};
use crate::rounds::{self, Rounds};
use crate::shard::{PhaseShared, Shard};
use crate::sleeper::sleep_in_driver;
use crate::stop::StopLevel;
use crate::supervisor::{Command, supervise};
use crate::think::ThinkTimer;
use crate::timer::DueTimer;
use crate::train::{self, Accelerator};

/// Most closed-loop sessions that a thread opens at the same time.
const OPENING: usize = 64;

/// Everything a load thread needs.
pub(crate) struct ThreadSetup {
    pub(crate) driver: AnyDriver,
    pub(crate) shared: Arc<PhaseShared>,
    pub(crate) thread: usize,
    /// Core to run on; `None` = not pinned.
    pub(crate) core: Option<usize>,
    pub(crate) interval_ns: u64,
    pub(crate) to_collector: SyncSender<Message>,
    pub(crate) spares: Receiver<Box<Recording>>,
    pub(crate) commands: watch::Receiver<Command>,
}

/// The body of a load thread: one phase from opening sessions to the last interval.
pub(crate) fn load_thread(setup: ThreadSetup) {
    let to_collector = setup.to_collector.clone();
    let runtime = settle(setup.core).and_then(|()| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_unpark(wakeup::woken)
            // Not a `LocalSet`, which is a second scheduler inside the first: each wake would pass both.
            .build_local(LocalOptions::default())
    });
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(async {
            match spawn_local(serve(setup)).await {
                Ok(outcome) => outcome,
                Err(error) => resume_unwind(error.into_panic()),
            }
        }),
        Err(error) => Err(RunError::Thread(error)),
    };
    if let Err(error) = outcome {
        // A closed channel means that the collector has given up already.
        let _ = to_collector.send(Message::Failed(error));
    }
}

async fn serve(setup: ThreadSetup) -> Result<(), RunError> {
    let ThreadSetup {
        driver,
        shared,
        thread,
        interval_ns,
        to_collector,
        spares,
        mut commands,
        ..
    } = setup;
    let for_tallies = Arc::clone(&shared);
    let thread_number = u16::try_from(thread).unwrap_or(u16::MAX);
    let op_log = shared.op_log.as_ref();
    let recorder = Recorder::new(
        thread,
        interval_ns,
        Box::new(move || empty_recording(for_tallies.phase_plan(), for_tallies.endpoints)),
        to_collector.clone(),
        spares,
        shared.phase_plan().kind == PhaseKind::Run,
        op_log.map(|log| log.producer(shared.phase, thread_number)),
    );
    let shard = Rc::new(Shard::new(shared, thread, recorder));
    let _works = prepare(&shard, &driver).map_err(RunError::Thread)?;
    while shard.is_opening() {
        shard.resume_panic();
        tokio::select! {
            () = shard.woken() => {}
            changed = commands.changed() => {
                if changed.is_err() || commands.borrow().level > StopLevel::Run {
                    break;
                }
            }
        }
    }
    if let Some(error) = shard.open_error() {
        return Err(error);
    }
    let _ = to_collector.send(Message::Ready);
    supervise(&shard, &mut commands).await;
    shard.finish(now_ns());
    Ok(())
}

/// Starts the tasks of all workers, which open their sessions and wait for the start. Keep the returned open works for
/// the length of the phase.
fn prepare(shard: &Rc<Shard>, driver: &AnyDriver) -> io::Result<Vec<Rc<OpenWork>>> {
    let shared = &*shard.shared;
    let mut starting = Starting {
        shard,
        driver,
        opening: Rc::new(Opening {
            driver: driver.clone(),
            turns: Semaphore::new(OPENING),
        }),
        punctual: shared.pacing == Pacing::BusyPoll,
        works: Vec::new(),
        sessions: Vec::new(),
    };
    for (index, work) in shared.phase_plan().works.iter().enumerate() {
        let number = u16::try_from(index).unwrap_or(u16::MAX);
        models::of(&work.model).start(&mut starting, number)?;
    }
    let Starting {
        punctual,
        works,
        sessions,
        ..
    } = starting;
    // Before the drivers' sessions open.
    wakeup::expect_sleeper(!punctual);
    if !punctual {
        let task = Rc::clone(shard);
        Shard::spawn(shard, async move { sleep_in_driver(&task).await });
    }
    let batons = works.iter().map(|work| Rc::clone(&work.baton)).collect();
    let _ = shard.batons.set(batons);
    for (work, sessions) in works.iter().zip(sessions) {
        work.baton.hire_up_to(sessions);
    }
    Ok(works)
}

/// Starts the works of a load thread.
pub(crate) struct Starting<'a> {
    shard: &'a Rc<Shard>,
    driver: &'a AnyDriver,
    opening: Rc<Opening>,
    /// Whether something needs timing finer than a millisecond, which only the event loop gives.
    punctual: bool,
    works: Vec<Rc<OpenWork>>,
    /// Number of sessions of each of these works that open before the start.
    sessions: Vec<usize>,
}

impl Starting<'_> {
    /// Starts this thread's part of the `workers` closed-loop workers of work number `work`.
    pub(crate) fn workers(&mut self, work: u16, workers: u32) -> io::Result<()> {
        let (shard, shared) = (self.shard, &*self.shard.shared);
        let share = (shared.share.index, shared.share.of);
        let position = (shard.thread, shared.threads);
        let source = &shared.sources[usize::from(work)];
        let mine: Vec<_> = match (source.named(), source.checkpoint()) {
            (Some(named), _) => worker_shares(work, workers, named.crew(), position).collect(),
            (_, Some(ranks)) => worker_shares(work, workers, ranks.crew(), position).collect(),
            _ => worker_shares(work, workers, crew(workers, share), position).collect(),
        };
        shard.slots.reserve(mine.len());
        let precise = shared.pacing == Pacing::Precise;
        let think = match source.pauses() {
            false => None,
            true => Some(Rc::new(ThinkTimer::new(mine.len(), precise)?)),
        };
        if let Some(think) = &think {
            self.punctual = true;
            let (think, shard) = (Rc::clone(think), Rc::clone(shard));
            let task = Rc::clone(&shard);
            Shard::spawn(&task, async move { think.serve(&shard.slots).await });
        }
        for share in mine {
            shard.closed_live.set(shard.closed_live.get() + 1);
            shard.opening_begun();
            let (shard_too, opening) = (Rc::clone(shard), Rc::clone(&self.opening));
            let task = closed::run_worker(shard_too, opening, think.clone(), share);
            Shard::spawn(shard, task);
        }
        Ok(())
    }

    /// Starts the workers of rounds, all on the first thread, where they can wait for each other.
    pub(crate) fn rounds(&mut self, work: u16, plan: RoundsPlan) {
        self.punctual = true;
        let shard = self.shard;
        if shard.thread > 0 {
            return;
        }
        let rounds = Rounds::new(plan, work);
        for index in 0..plan.workers {
            shard.closed_live.set(shard.closed_live.get() + 1);
            shard.opening_begun();
            let (opening, rounds) = (Rc::clone(&self.opening), Rc::clone(&rounds));
            let task = round_worker(Rc::clone(shard), opening, rounds, index);
            Shard::spawn(shard, task);
        }
    }

    /// Starts this thread's accelerators of work number `work`, with their readers.
    pub(crate) fn train(&mut self, work: u16, plan: &TrainPlan) -> io::Result<()> {
        self.punctual = true;
        let (shard, shared) = (self.shard, &*self.shard.shared);
        let share = (shared.share.index, shared.share.of);
        let mine = crew(plan.accelerators, share);
        let position = (shard.thread, shared.threads);
        let precise = shared.pacing == Pacing::Precise;
        for share in worker_shares(work, plan.accelerators, mine, position) {
            let accelerator = Accelerator::new(work, share.index, plan.readers, precise)?;
            shard.slots.reserve(plan.readers as usize);
            for reader in 0..plan.readers {
                shard.closed_live.set(shard.closed_live.get() + 1);
                shard.opening_begun();
                let (opening, accelerator) = (Rc::clone(&self.opening), Rc::clone(&accelerator));
                let task = train_reader(Rc::clone(shard), opening, accelerator, reader);
                Shard::spawn(shard, task);
            }
            shard.closed_live.set(shard.closed_live.get() + 1);
            shard
                .accelerators
                .borrow_mut()
                .push(Rc::clone(&accelerator));
            Shard::spawn(shard, train::run_accelerator(Rc::clone(shard), accelerator));
        }
        Ok(())
    }

    /// Starts this thread's part of work number `work`, which gets its operations from a feed. At most `cap`
    /// operations are in flight over all agents. `sessions` returns the number of sessions to open before the start.
    pub(crate) fn fed(
        &mut self,
        work: u16,
        cap: u32,
        sessions: impl Fn(&Partition) -> usize,
    ) -> io::Result<()> {
        self.punctual = true;
        let (shard, shared) = (self.shard, &*self.shard.shared);
        let share = (shared.share.index, shared.share.of);
        let Some(part) = Partition::of(cap, share, (shard.thread, shared.threads)) else {
            return Ok(());
        };
        self.feed(work, &part, sessions(&part))
    }

    /// As [`Starting::fed`], for `units` that cannot be divided further, each with at most `cap` operations in flight.
    pub(crate) fn fed_in_units(
        &mut self,
        work: u16,
        units: u32,
        cap: u32,
        sessions: usize,
    ) -> io::Result<()> {
        self.punctual = true;
        let (shard, shared) = (self.shard, &*self.shard.shared);
        let share = (shared.share.index, shared.share.of);
        let Some(part) = Partition::of(units, share, (shard.thread, shared.threads)) else {
            return Ok(());
        };
        let part = Partition {
            cap: part.cap * cap as usize,
            ..part
        };
        self.feed(work, &part, sessions.min(part.cap))
    }

    /// As [`Starting::fed`], with all operations on the first thread.
    pub(crate) fn fed_alone(&mut self, work: u16, cap: u32, sessions: usize) -> io::Result<()> {
        self.punctual = true;
        let part = Partition {
            index: 0,
            of: 1,
            cap: cap as usize,
        };
        match self.shard.thread {
            0 => self.feed(work, &part, sessions.min(part.cap)),
            _ => Ok(()),
        }
    }

    fn feed(&mut self, work: u16, part: &Partition, sessions: usize) -> io::Result<()> {
        let (shard, shared) = (self.shard, &*self.shard.shared);
        let source = &shared.sources[usize::from(work)];
        let Some(feed) = source.feed(work, (part.index, part.of)) else {
            return Ok(());
        };
        let open = Rc::new(OpenWork {
            shard: Rc::clone(shard),
            baton: Rc::new(Baton::new(work, part.cap, feed)),
            timer: DueTimer::new(shared.pacing == Pacing::Precise)?,
            driver: self.driver.clone(),
        });
        OpenWork::enable_hiring(&open);
        self.works.push(open);
        self.sessions.push(sessions);
        Ok(())
    }
}

/// As [`closed::run_worker`], for a worker of a work in rounds.
async fn round_worker(shard: Rc<Shard>, opening: Rc<Opening>, rounds: Rc<Rounds>, index: u32) {
    if let Some(worker) = opening.worker(&shard, rounds.work()).await {
        shard.started().await;
        rounds::run_worker(shard, rounds, index, worker).await;
    }
}

/// As [`closed::run_worker`], for a reader of an accelerator.
async fn train_reader(
    shard: Rc<Shard>,
    opening: Rc<Opening>,
    accelerator: Rc<Accelerator>,
    reader: u32,
) {
    if let Some(worker) = opening.worker(&shard, accelerator.work()).await {
        shard.started().await;
        train::run_reader(shard, accelerator, reader, worker).await;
    }
}
