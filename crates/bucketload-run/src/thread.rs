//! A load thread: its runtime, its workers, and the supervisor that watches over one phase.
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
use bucketload_core::plan::{ArrivalLaw, ModelPlan, PhaseKind, ReplayTiming};
use bucketload_core::tally::Recording;
use bucketload_core::wakeup;
use tokio::runtime::LocalOptions;
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_local;

use crate::affinity::settle;
use crate::baton::Baton;
use crate::clock::now_ns;
use crate::closed::{self, Opening, crew, places};
use crate::error::RunError;
use crate::open::OpenWork;
use crate::options::Pacing;
use crate::partition::Partition;
use crate::recorder::{Message, Recorder, empty_recording};
use crate::rounds::{self, Rounds};
use crate::shard::{Shard, Shared};
use crate::sleeper::sleep_in_driver;
use crate::stop::StopLevel;
use crate::supervisor::{Command, supervise};
use crate::think::ThinkTimer;
use crate::timer::DueTimer;

/// Closed-loop sessions that a thread opens at the same time.
const OPENING: usize = 64;

/// What a load thread is made of.
pub(crate) struct ThreadSetup {
    pub(crate) driver: AnyDriver,
    pub(crate) shared: Arc<Shared>,
    pub(crate) thread: usize,
    /// Core to run on.
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
            // Not a `LocalSet`: that is a second scheduler inside the first one, and each wake
            // passes both.
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
    let number = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
    let op_log = shared.op_log.as_ref();
    let recorder = Recorder::new(
        thread,
        interval_ns,
        Box::new(move || empty_recording(for_tallies.phase_plan(), for_tallies.endpoints)),
        to_collector.clone(),
        spares,
        shared.phase_plan().kind == PhaseKind::Run,
        op_log.map(|log| log.producer(number(shared.phase), number(thread))),
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

/// Starts the tasks of all workers; they open their sessions and wait for the start. The open works
/// must be kept for the length of the phase.
fn prepare(shard: &Rc<Shard>, driver: &AnyDriver) -> io::Result<Vec<Rc<OpenWork>>> {
    let shared = &*shard.shared;
    let precise = shared.pacing == Pacing::Precise;
    let share = (shared.share.index, shared.share.of);
    let position = (shard.thread, shared.threads);
    let mut batons = Vec::new();
    let mut works = Vec::new();
    let mut sessions = Vec::new();
    let opening = Rc::new(Opening {
        driver: driver.clone(),
        turns: Semaphore::new(OPENING),
    });
    // What has to be on time to fractions of a millisecond needs the event loop.
    let mut punctual = shared.pacing == Pacing::BusyPoll;
    for (index, work) in shared.phase_plan().works.iter().enumerate() {
        let number = u16::try_from(index).unwrap_or(u16::MAX);
        match &work.model {
            model @ (ModelPlan::Closed { .. } | ModelPlan::Named(_) | ModelPlan::Ranks(_)) => {
                let workers = model.max_sessions();
                let mine: Vec<_> = match shared.sources[index].named() {
                    Some(named) => places(number, workers, named.crew(), position).collect(),
                    None => places(number, workers, crew(workers, share), position).collect(),
                };
                shard.slots.reserve(mine.len());
                let think = match shared.sources[index].pauses() {
                    false => None,
                    true => Some(Rc::new(ThinkTimer::new(mine.len(), precise)?)),
                };
                if let Some(think) = &think {
                    punctual = true;
                    let (think, shard) = (Rc::clone(think), Rc::clone(shard));
                    let task = Rc::clone(&shard);
                    Shard::spawn(&task, async move { think.serve(&shard.slots).await });
                }
                for place in mine {
                    shard.closed_live.set(shard.closed_live.get() + 1);
                    shard.opening_begun();
                    let (shard_too, opening) = (Rc::clone(shard), Rc::clone(&opening));
                    let task = closed::labour(shard_too, opening, think.clone(), place);
                    Shard::spawn(shard, task);
                }
            }
            ModelPlan::Rounds(plan) => {
                punctual = true;
                // All on one thread, where they can wait for each other.
                if shard.thread > 0 {
                    continue;
                }
                let rounds = Rounds::new(*plan, number);
                for index in 0..plan.workers {
                    shard.closed_live.set(shard.closed_live.get() + 1);
                    shard.opening_begun();
                    let task = round_worker(
                        Rc::clone(shard),
                        Rc::clone(&opening),
                        Rc::clone(&rounds),
                        index,
                    );
                    Shard::spawn(shard, task);
                }
            }
            model @ (ModelPlan::Open { .. } | ModelPlan::Jobs(_) | ModelPlan::Replay(_)) => {
                punctual = true;
                let Some(part) = Partition::of(model.max_sessions(), share, position) else {
                    continue;
                };
                let Some(feed) = shared.sources[index].feed(number, (part.index, part.of)) else {
                    continue;
                };
                let baton = Rc::new(Baton::new(number, part.cap, feed));
                let open = Rc::new(OpenWork {
                    shard: Rc::clone(shard),
                    baton: Rc::clone(&baton),
                    timer: DueTimer::new(precise)?,
                    driver: driver.clone(),
                });
                OpenWork::enable_hiring(&open);
                works.push(open);
                sessions.push(initial_sessions(model, &part));
                batons.push(baton);
            }
        }
    }
    // Before the drivers' sessions open.
    wakeup::expect_sleeper(!punctual);
    if !punctual {
        let task = Rc::clone(shard);
        Shard::spawn(shard, async move { sleep_in_driver(&task).await });
    }
    let _ = shard.batons.set(batons);
    for (work, sessions) in works.iter().zip(sessions) {
        work.baton.hire_up_to(sessions);
    }
    Ok(works)
}

/// As [`closed::labour`], for a worker of a work in rounds.
async fn round_worker(shard: Rc<Shard>, opening: Rc<Opening>, rounds: Rc<Rounds>, index: u32) {
    if let Some(worker) = opening.worker(&shard).await {
        shard.started().await;
        rounds::labour(shard, rounds, index, worker).await;
    }
}

/// Sessions to open before the start: what ten milliseconds of arrivals, or one batch, may need.
fn initial_sessions(model: &ModelPlan, part: &Partition) -> usize {
    let arrival = match model {
        ModelPlan::Open { arrival, .. } => arrival,
        // A stage, and the deletions beside it.
        ModelPlan::Jobs(jobs) => return (2 * jobs.widest() as usize).clamp(4, 256),
        ModelPlan::Replay(replay) if replay.timing == ReplayTiming::Asap => return part.cap,
        ModelPlan::Replay(_)
        | ModelPlan::Closed { .. }
        | ModelPlan::Rounds(_)
        | ModelPlan::Ranks(_)
        | ModelPlan::Named(_) => return 16,
    };
    let peak = match arrival {
        ArrivalLaw::Constant { rate }
        | ArrivalLaw::Poisson { rate }
        | ArrivalLaw::LognormalGaps { rate, .. }
        | ArrivalLaw::LognormalRate { rate, .. } => rate / 100.0,
        ArrivalLaw::PeriodicBatch { max, .. } => f64::from(*max),
        ArrivalLaw::Ramp { from, .. } => from / 100.0,
        ArrivalLaw::Steps { rates, .. } => rates.first().copied().unwrap_or(0.0) / 100.0,
    };
    // A cast of a float saturates.
    ((peak / f64::from(part.of)) as usize).clamp(4, 256)
}
