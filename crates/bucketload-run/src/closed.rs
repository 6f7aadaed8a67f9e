//! Closed loop: a fixed number of workers. Each starts an operation when its previous one has ended and its think
//! time is over.
//!
//! Worker `w` of `W` (over all agents) performs the sequence numbers `w, w + W, w + 2W, …`. So a run with an
//! operation limit performs the same operations however its workers are spread over threads and agents. Workers that
//! fill a data set take its missing objects in order instead ([`crate::prepared`]). A worker on
//! named objects draws its own sequence ([`crate::named_objects`]); a rank goes through its steps
//! ([`crate::ranks`]), and the workers of a checkpoint's rank share its operations ([`crate::checkpoint`]).

use std::rc::Rc;

use bucketload_core::driver::AnyDriver;
use bucketload_core::op::{Op, OpClass};
use bucketload_core::record::Outcome;
use tokio::sync::Semaphore;

use crate::checkpoint::{CheckpointTurns, CheckpointWork};
use crate::clock::now_ns;
use crate::due::{DueOp, OpEnd};
use crate::named_objects::{NamedTurns, NamedWork};
use crate::options::Pacing;
use crate::perform::{Worker, perform};
use crate::ranks::{RankTurns, RankWork, Turn, Wait};
use crate::session::open_session;
use crate::shard::Shard;
use crate::source::Source;
use crate::think::ThinkTimer;

/// How long a worker that never waits goes on before it yields to other tasks of the thread, nanoseconds: short
/// enough for them not to notice, long enough to make the event loop's microsecond negligible.
pub(crate) const TURN_NS: u64 = 200_000;

/// One worker's share of its work: the sequence numbers congruent to `index` modulo `of`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerShare {
    /// Index of the work within the phase.
    pub(crate) work: u16,
    /// Index of the worker in the work, over all agents.
    pub(crate) index: u32,
    /// Number of workers of the work, over all agents.
    pub(crate) of: u32,
}

/// The workers of agent `agent` of `agents`: those of `0..of` that are congruent to `agent`.
pub(crate) fn crew(of: u32, (agent, agents): (u32, u32)) -> impl Iterator<Item = u32> {
    (agent..of).step_by(agents as usize)
}

/// The workers of load thread `thread` of `threads`. An agent deals its workers, `crew` out of `of`, to its threads
/// in turn.
pub(crate) fn worker_shares(
    work: u16,
    of: u32,
    crew: impl Iterator<Item = u32>,
    (thread, threads): (usize, usize),
) -> impl Iterator<Item = WorkerShare> {
    crew.skip(thread)
        .step_by(threads)
        .map(move |index| WorkerShare { work, index, of })
}

/// Where a worker's next operation comes from: sequence numbers, its own names, or the steps of a rank.
enum Turns<'a> {
    Numbered,
    Named(&'a NamedWork, Box<NamedTurns>),
    Ranks(&'a RankWork, Box<RankTurns>),
    Checkpoint(&'a CheckpointWork, CheckpointTurns),
}

impl<'a> Turns<'a> {
    fn new(shard: &'a Shard, share: WorkerShare, worker: &mut Worker) -> Self {
        let source = &shard.shared.sources[usize::from(share.work)];
        if let Some(work) = source.ranks() {
            let (history, start_ns) = (&shard.shared.history, shard.start_ns.get());
            let turns = RankTurns::new(work, share.index, history, start_ns);
            worker.watch = turns.watch();
            shard.ranks.borrow_mut().push(turns.record());
            return Self::Ranks(work, Box::new(turns));
        }
        if let Some(work) = source.checkpoint() {
            let turns = CheckpointTurns::new(work, share.index, &shard.shared.history);
            worker.version = turns.version().or_else(|| worker.version.take());
            shard.ranks.borrow_mut().push(turns.record());
            return Self::Checkpoint(work, turns);
        }
        let (Some(work), Some(rows)) = (source.named(), &shard.rows) else {
            return Self::Numbered;
        };
        let more = worker.names.more_mut();
        more.bucket.reserve(source.max_key_len());
        rows.enter(worker.id, share, work.ops.entries());
        if (0..work.ops.entries()).any(|entry| work.ops.has_trailer(entry as u16)) {
            worker.trailing = Some(Box::default());
        }
        let (window, start_ns) = (rows.window(share.work), shard.start_ns.get());
        let turns = NamedTurns::new(work, share, window, start_ns);
        Self::Named(work, Box::new(turns))
    }

    /// The earliest start of turn number `turn`, given that the turn before was over at `ready_ns`.
    #[inline]
    fn ready_ns(&self, source: &Source, share: WorkerShare, turn: u64, ready_ns: u64) -> u64 {
        match self {
            Self::Named(work, turns) => ready_ns.max(turns.not_before_ns(work)),
            Self::Ranks(_, turns) => ready_ns.max(turns.not_before_ns()),
            Self::Checkpoint(..) => ready_ns,
            Self::Numbered if turn == 0 => ready_ns,
            Self::Numbered => ready_ns.saturating_add(source.think_ns(share.index, turn - 1)),
        }
    }

    /// The worker offers nothing from this instant on, nanoseconds since the epoch.
    #[inline]
    fn cutoff_ns(&self, shard: &Shard) -> u64 {
        let work_cutoff_ns = match self {
            Self::Numbered | Self::Ranks(..) | Self::Checkpoint(..) => u64::MAX,
            Self::Named(work, turns) => turns.cutoff_ns(work),
        };
        work_cutoff_ns.min(shard.cutoff_ns.get())
    }

    /// What the worker does in turn number `turn`, which could begin at `now_ns`.
    #[inline]
    fn next(&mut self, shard: &Shard, share: WorkerShare, turn: u64, now_ns: u64) -> Turn {
        let op = match self {
            Self::Ranks(work, turns) => return turns.next(work, shard, now_ns),
            Self::Named(work, turns) => turns.next(work),
            Self::Checkpoint(work, turns) => turns.next(work),
            Self::Numbered => {
                if let Some(progress) = &shard.shared.progress {
                    return progress.take().map_or(Turn::End, Turn::Number);
                }
                let seq = u64::from(share.index) + turn * u64::from(share.of);
                return match shard.beyond_ops(seq) {
                    true => Turn::End,
                    false => Turn::Number(seq),
                };
            }
        };
        op.map_or(Turn::End, Turn::Op)
    }

    /// Waits for the other ranks; `false` if the phase ends first.
    async fn meet(&self, shard: &Shard, wait: Wait) -> bool {
        match self {
            Self::Ranks(work, _) => work.meet(shard, wait).await,
            Self::Numbered | Self::Named(..) | Self::Checkpoint(..) => true,
        }
    }

    #[inline]
    fn ended(&mut self, shard: &Shard, due_op: &DueOp, end: &OpEnd) {
        match self {
            Self::Numbered => {
                if let Some(progress) = &shard.shared.progress {
                    progress.ended(due_op.op.key, end.outcome == Outcome::Ok);
                }
            }
            Self::Named(_, turns) => turns.ended(due_op, end),
            Self::Ranks(work, turns) => turns.ended(work, due_op, end),
            Self::Checkpoint(_, turns) => turns.ended(due_op, end, &shard.shared.history),
        }
    }
}

/// Opens the sessions of a thread's closed-loop workers.
pub(crate) struct Opening {
    pub(crate) driver: AnyDriver,
    /// Limits how many open at the same time.
    pub(crate) turns: Semaphore,
}

impl Opening {
    /// Opens a session of work number `work`. Tells the shard when that fails and returns `None`.
    pub(crate) async fn worker(&self, shard: &Shard, work: u16) -> Option<Box<Worker>> {
        let _turn = self.turns.acquire().await;
        // Boxed so the worker's future does not store it: it ends before the first operation.
        match Box::pin(open_session(&self.driver, shard, work)).await {
            Ok(worker) => {
                shard.opening_ended(None);
                Some(worker)
            }
            Err(error) => {
                shard.opening_ended(Some(error));
                None
            }
        }
    }
}

/// Opens a session, waits for the start of the phase and works until it offers nothing more.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn stores its arguments twice"
)]
pub(crate) fn run_worker(
    shard: Rc<Shard>,
    opening: Rc<Opening>,
    think: Option<Rc<ThinkTimer>>,
    share: WorkerShare,
) -> impl Future<Output = ()> {
    async move {
        let Some(mut worker) = opening.worker(&shard, share.work).await else {
            return;
        };
        shard.started().await;
        let mut turns = Turns::new(&shard, share, &mut worker);
        let mut ready_ns = now_ns();
        let mut now = ready_ns;
        let mut gone_on_ns = now;
        let mut turn = 0;
        loop {
            let before_ns = ready_ns;
            ready_ns = turns.ready_ns(shard.source(share.work), share, turn, ready_ns);
            if ready_ns > before_ns
                && let Some(think) = &think
            {
                if ready_ns >= turns.cutoff_ns(&shard) {
                    break;
                }
                if shard.shared.pacing == Pacing::BusyPoll {
                    while now_ns() < ready_ns {
                        tokio::task::yield_now().await;
                    }
                } else {
                    think.sleep_until(ready_ns, worker.slot).await;
                }
                now = now_ns();
                gone_on_ns = now;
            }
            shard.check_bytes(now);
            if ready_ns.max(now) >= turns.cutoff_ns(&shard) {
                break;
            }
            let mut due_op = DueOp::new(Op::new(OpClass::Get), ready_ns, now);
            match turns.next(&shard, share, turn, now) {
                Turn::Number(seq) => shard.source(share.work).op_into(seq, &mut due_op.op),
                Turn::Op(op) => due_op.op = op,
                Turn::End => break,
                Turn::Meet(wait) => {
                    if !turns.meet(&shard, wait).await {
                        break;
                    }
                    ready_ns = now_ns();
                    now = ready_ns;
                    turn += 1;
                    continue;
                }
            }
            shard.tick(now);
            shard.offered(ready_ns, &due_op.op);
            shard.recorder.tally().issued += 1;
            if turn == 0
                && let Some(streams) = &shard.streams
            {
                streams.begun(now);
            }
            turn += 1;
            // Scoped so the future does not store the end while the worker pauses.
            let waited = {
                let end = perform(&shard, &mut worker, &mut due_op, || ()).await;
                turns.ended(&shard, &due_op, &end);
                // The loop's own work between two operations counts as build time of the next one.
                (ready_ns, now) = (end.now_ns, end.now_ns);
                end.waited
            };
            if waited {
                gone_on_ns = now;
            } else if now - gone_on_ns >= TURN_NS {
                // The worker caused this pause, so it counts as ready only when it resumes.
                tokio::task::yield_now().await;
                ready_ns = now_ns();
                now = ready_ns;
                gone_on_ns = now;
            }
        }
        if let Some(streams) = &shard.streams {
            streams.ended(worker.id);
        }
        shard.closed_live.set(shard.closed_live.get() - 1);
        shard.wake_main();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{crew, worker_shares};

    proptest! {
        #[test]
        fn every_worker_has_exactly_one_place(of in 0u32..200, agents in 1u32..9, threads in 1usize..9) {
            let mut seen: Vec<u32> = (0..agents)
                .flat_map(|a| (0..threads).flat_map(move |t| worker_shares(0, of, crew(of, (a, agents)), (t, threads))))
                .map(|p| p.index)
                .collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..of).collect::<Vec<_>>());
        }
    }
}
