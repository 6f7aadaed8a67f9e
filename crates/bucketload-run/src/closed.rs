//! Closed loop: a fixed number of workers, each starting an operation when its previous one has
//! ended and its think time is over.
//!
//! Worker `w` of `W` (over all agents) performs the sequence numbers `w, w + W, w + 2W, …`, so the
//! set of operations of a run that is limited by operations does not depend on how the workers are
//! spread over threads and agents. A worker on named objects draws its own sequence ([`crate::named_objects`]), a
//! rank goes through its steps ([`crate::ranks`]).

use std::rc::Rc;

use bucketload_core::driver::AnyDriver;
use bucketload_core::op::{Op, OpClass};
use tokio::sync::Semaphore;

use crate::clock::now_ns;
use crate::named_objects::{NamedTurns, NamedWork};
use crate::options::Pacing;
use crate::perform::{Performed, Taken, Worker, perform};
use crate::ranks::{RankTurns, RankWork, Turn, Wait};
use crate::session::open_session;
use crate::shard::Shard;
use crate::source::Source;
use crate::think::ThinkTimer;

/// How long a worker goes on without ever waiting before other tasks of the thread get their turn, nanoseconds: short
/// enough that they do not notice, long enough that the microsecond of the event loop is lost among the operations.
const TURN_NS: u64 = 200_000;

/// One worker's place in its work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Index of the work within the phase.
    pub(crate) work: u16,
    /// Index of the worker among all of the work, over all agents.
    pub(crate) index: u32,
    /// Workers of the work, over all agents.
    pub(crate) of: u32,
}

/// The workers of `of` that agent `agent` of `agents` has: those congruent to `agent`.
pub(crate) fn crew(of: u32, (agent, agents): (u32, u32)) -> impl Iterator<Item = u32> {
    (agent..of).step_by(agents as usize)
}

/// The places of thread `thread` of `threads` of an agent, which spreads its workers, `crew` of `of`, over
/// its threads in turn.
pub(crate) fn places(
    work: u16,
    of: u32,
    crew: impl Iterator<Item = u32>,
    (thread, threads): (usize, usize),
) -> impl Iterator<Item = Place> {
    crew.skip(thread)
        .step_by(threads)
        .map(move |index| Place { work, index, of })
}

/// What a worker does next: the sequence numbers of its place, names of its own, or the steps of a rank.
enum Turns<'a> {
    Numbered,
    Named(&'a NamedWork, Box<NamedTurns>),
    Ranks(&'a RankWork, Box<RankTurns>),
}

impl<'a> Turns<'a> {
    fn new(shard: &'a Shard, place: Place, worker: &mut Worker) -> Self {
        let source = &shard.shared.sources[usize::from(place.work)];
        if let Some(work) = source.ranks() {
            let (history, start_ns) = (&shard.shared.history, shard.start_ns.get());
            let turns = RankTurns::new(work, place.index, history, start_ns);
            worker.watch = turns.watch();
            shard.ranks.borrow_mut().push(turns.record());
            return Self::Ranks(work, Box::new(turns));
        }
        let (Some(work), Some(rows)) = (source.named(), &shard.rows) else {
            return Self::Numbered;
        };
        let more = worker.names.more_mut();
        more.bucket.reserve(source.max_key_len());
        rows.enter(worker.id, place, work.ops.entries());
        if (0..work.ops.entries()).any(|entry| work.ops.has_trailer(entry as u16)) {
            worker.trailing = Some(Box::default());
        }
        let (window, start_ns) = (rows.window(place.work), shard.start_ns.get());
        let turns = NamedTurns::new(work, place, window, start_ns);
        Self::Named(work, Box::new(turns))
    }

    /// When the worker is ready for its turn number `turn` that could begin at `ready_ns`.
    #[inline]
    fn ready_ns(&self, source: &Source, place: Place, turn: u64, ready_ns: u64) -> u64 {
        match self {
            Self::Named(work, turns) => ready_ns.max(turns.not_before_ns(work)),
            Self::Ranks(_, turns) => ready_ns.max(turns.not_before_ns()),
            Self::Numbered if turn == 0 => ready_ns,
            Self::Numbered => ready_ns.saturating_add(source.think_ns(place.index, turn - 1)),
        }
    }

    /// Nothing is offered from this instant on, nanoseconds since the epoch.
    #[inline]
    fn cutoff_ns(&self, shard: &Shard) -> u64 {
        let own = match self {
            Self::Numbered | Self::Ranks(..) => u64::MAX,
            Self::Named(work, turns) => turns.cutoff_ns(work),
        };
        own.min(shard.cutoff_ns.get())
    }

    /// What turn number `turn` is, which could begin at `now_ns`.
    #[inline]
    fn next(&mut self, shard: &Shard, place: Place, turn: u64, now_ns: u64) -> Turn {
        let op = match self {
            Self::Ranks(work, turns) => return turns.next(work, shard, now_ns),
            Self::Named(work, turns) => turns.next(work),
            Self::Numbered => {
                let seq = u64::from(place.index) + turn * u64::from(place.of);
                return match shard.beyond_ops(seq) {
                    true => Turn::End,
                    false => Turn::Number(seq),
                };
            }
        };
        op.map_or(Turn::End, Turn::Op)
    }

    /// Waits for the other ranks; `false` when the phase ends before.
    async fn meet(&self, shard: &Shard, wait: Wait) -> bool {
        match self {
            Self::Ranks(work, _) => work.meet(shard, wait).await,
            Self::Numbered | Self::Named(..) => true,
        }
    }

    #[inline]
    fn ended(&mut self, op: &Op, due_ns: u64, end: &Performed) {
        match self {
            Self::Numbered => {}
            Self::Named(_, turns) => turns.ended(due_ns, end),
            Self::Ranks(work, turns) => turns.ended(work, (op, due_ns), end),
        }
    }
}

/// What the closed-loop workers of a thread open their sessions with.
pub(crate) struct Opening {
    pub(crate) driver: AnyDriver,
    /// Lets a few of them open theirs at the same time.
    pub(crate) turns: Semaphore,
}

impl Opening {
    /// Opens a session; `None` when that fails, which the shard is told.
    pub(crate) async fn worker(&self, shard: &Shard) -> Option<Box<Worker>> {
        let _turn = self.turns.acquire().await;
        // In a box: it ends before the worker's first operation, whose future has no room for it.
        match Box::pin(open_session(&self.driver, shard)).await {
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
    reason = "an async fn has room for its arguments twice"
)]
pub(crate) fn labour(
    shard: Rc<Shard>,
    opening: Rc<Opening>,
    think: Option<Rc<ThinkTimer>>,
    place: Place,
) -> impl Future<Output = ()> {
    async move {
        let Some(mut worker) = opening.worker(&shard).await else {
            return;
        };
        shard.started().await;
        let mut turns = Turns::new(&shard, place, &mut worker);
        let mut ready_ns = now_ns();
        let mut now = ready_ns;
        let mut gone_on_ns = now;
        let mut turn = 0;
        loop {
            let before_ns = ready_ns;
            ready_ns = turns.ready_ns(shard.source(place.work), place, turn, ready_ns);
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
            let mut taken = Taken {
                work: place.work,
                op: Op::new(OpClass::Get),
                due_ns: ready_ns,
                taken_ns: now,
                dispatch_ns: 0,
                blocked_ns: 0,
                absent_expected: false,
            };
            match turns.next(&shard, place, turn, now) {
                Turn::Number(seq) => shard.source(place.work).op_into(seq, &mut taken.op),
                Turn::Op(op) => taken.op = op,
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
            shard.offered(ready_ns, &taken.op);
            shard.recorder.tally().issued += 1;
            if turn == 0
                && let Some(streams) = &shard.streams
            {
                streams.begun(now);
            }
            turn += 1;
            // As above: how it ended is not kept while the worker pauses.
            let waited = {
                let end = perform(&shard, &mut worker, &mut taken, || ()).await;
                turns.ended(&taken.op, taken.due_ns, &end);
                // What the loop does between two operations belongs to the next one's build time.
                (ready_ns, now) = (end.now_ns, end.now_ns);
                end.waited
            };
            if waited {
                gone_on_ns = now;
            } else if now - gone_on_ns >= TURN_NS {
                // The worker is ready when it gets its turn again: the pause is its own.
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

    use super::{crew, places};

    proptest! {
        #[test]
        fn every_worker_has_exactly_one_place(of in 0u32..200, agents in 1u32..9, threads in 1usize..9) {
            let mut seen: Vec<u32> = (0..agents)
                .flat_map(|a| (0..threads).flat_map(move |t| places(0, of, crew(of, (a, agents)), (t, threads))))
                .map(|p| p.index)
                .collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..of).collect::<Vec<_>>());
        }
    }
}
