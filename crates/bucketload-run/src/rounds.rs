//! Rounds: how soon does a listing show writes and deletions?
//!
//! ```text
//!  workers   put put put … ─┤                 ├─ delete … ─┤                    ├─ next round
//!  worker 0                 ├─ list … list ───┤            ├─ list … list ──────┤
//!                           gate              gate         gate                 gate
//! ```
//!
//! All workers of a work run on one thread and wait for each other at gates. Operations take the usual path
//! ([`perform`]). A listing is judged by the keys that a [`Watch`] sees. If the write or deletion of an object was not
//! acknowledged, the listing may show it or not.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bucketload_core::generate::rng::mix64;
use bucketload_core::op::Watch;
use bucketload_core::plan::RoundsPlan;
use bucketload_core::record::Outcome;
use bucketload_core::sink::{Event, Round};
use tokio::sync::Notify;

use crate::clock::now_ns;
use crate::due::DueOp;
use crate::perform::{Worker, perform};
use crate::recorder::Message;
use crate::shard::Shard;

/// Entries of the mix, in the order of the resolver.
const PUT: u16 = 0;
const LIST: u16 = 1;
const DELETE: u16 = 2;

/// How often waiting workers check whether the phase has ended.
const LOOK: Duration = Duration::from_millis(50);

/// What the listing has to show of an object of the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObjectState {
    There,
    Gone,
    Unclear,
}

/// What the workers of one work share.
pub(crate) struct Rounds {
    plan: RoundsPlan,
    work: u16,
    seq: Cell<u64>,
    objects: RefCell<Vec<ObjectState>>,
    /// Whether each object of the round is to be deleted.
    to_delete: RefCell<Vec<bool>>,
    /// When the last write or delete of the step was acknowledged.
    acknowledged_ns: Cell<u64>,
    arrived: Cell<u32>,
    gates: Cell<u64>,
    opened: Notify,
}

impl Rounds {
    pub(crate) fn new(plan: RoundsPlan, work: u16) -> Rc<Self> {
        let objects = plan.workers as usize * plan.objects as usize;
        Rc::new(Self {
            plan,
            work,
            seq: Cell::new(0),
            objects: RefCell::new(vec![ObjectState::Unclear; objects]),
            to_delete: RefCell::new(vec![false; objects]),
            acknowledged_ns: Cell::new(0),
            arrived: Cell::new(0),
            gates: Cell::new(0),
            opened: Notify::new(),
        })
    }

    /// Index of the work within the phase.
    pub(crate) fn work(&self) -> u16 {
        self.work
    }

    /// Waits until all workers are here; `false` if the phase ends first.
    async fn gate(&self, shard: &Shard) -> bool {
        let gate = self.gates.get();
        self.arrived.set(self.arrived.get() + 1);
        if self.arrived.get() == self.plan.workers {
            self.arrived.set(0);
            self.gates.set(gate + 1);
            self.opened.notify_waiters();
        }
        while self.gates.get() == gate {
            if now_ns() >= shard.cutoff_ns.get() {
                return false;
            }
            let _ = tokio::time::timeout(LOOK, self.opened.notified()).await;
        }
        true
    }

    /// Index in the key set of object `number` of round `iteration`.
    fn key(&self, iteration: u32, number: usize) -> u64 {
        u64::from(iteration) + number as u64 * u64::from(self.plan.iterations)
    }

    /// Chooses the objects of the round to delete: those with the smallest random numbers.
    fn choose(&self, seed: u64, iteration: u32) {
        let mut to_delete = self.to_delete.borrow_mut();
        let number = |i: usize| mix64(seed ^ mix64(self.key(iteration, i)));
        let mut order: Vec<usize> = (0..to_delete.len()).collect();
        order.sort_unstable_by_key(|&i| number(i));
        let chosen = (self.plan.delete * to_delete.len() as f64).round() as usize;
        to_delete.fill(false);
        order[..chosen].iter().for_each(|&i| to_delete[i] = true);
    }

    /// Number of objects of the round in this state.
    fn count(&self, wanted: ObjectState) -> usize {
        let objects = self.objects.borrow();
        objects.iter().filter(|state| **state == wanted).count()
    }

    /// Number of objects that a listing of `iteration` lacks, and number of deleted objects that it shows.
    fn wrong(&self, iteration: u32, listed: &mut [u64]) -> (u32, u32) {
        listed.sort_unstable();
        let (mut missing, mut ghosts) = (0, 0);
        for (number, state) in self.objects.borrow().iter().enumerate() {
            let shown = listed.binary_search(&self.key(iteration, number)).is_ok();
            missing += u32::from(*state == ObjectState::There && !shown);
            ghosts += u32::from(*state == ObjectState::Gone && shown);
        }
        (missing, ghosts)
    }
}

/// Collects the keys of a listing.
struct ListedKeys {
    shard: Rc<Shard>,
    work: u16,
    keyset: u16,
    keys: RefCell<Vec<u64>>,
}

impl Watch for ListedKeys {
    fn body(&self, _bytes: &[u8]) {}

    fn listed(&self, key: &str) {
        let source = &self.shard.shared.sources[usize::from(self.work)];
        if let Some(index) = source.index_of(self.keyset, key) {
            self.keys.borrow_mut().push(index);
        }
    }

    fn cut_short(&self) {}
}

/// Works until the rounds are over or the phase ends.
pub(crate) async fn run_worker(
    shard: Rc<Shard>,
    rounds: Rc<Rounds>,
    index: u32,
    mut worker: Box<Worker>,
) {
    let mut round_worker = RoundWorker {
        shard: &shard,
        rounds: &rounds,
        worker: &mut worker,
        index,
    };
    for iteration in 0..rounds.plan.iterations {
        if !round_worker.round(iteration).await {
            break;
        }
    }
    shard.closed_live.set(shard.closed_live.get() - 1);
    shard.wake_main();
}

/// One worker of the rounds.
struct RoundWorker<'a> {
    shard: &'a Rc<Shard>,
    rounds: &'a Rounds,
    worker: &'a mut Worker,
    index: u32,
}

impl RoundWorker<'_> {
    /// Performs one round; `false` if the phase ends before it is over.
    async fn round(&mut self, iteration: u32) -> bool {
        for deleted in [false, true] {
            if self.index == 0 {
                self.prepare(iteration, deleted);
            }
            if !self.rounds.gate(self.shard).await
                || !self.mutate(iteration, deleted).await
                || !self.rounds.gate(self.shard).await
                || (self.index == 0 && !self.list(iteration, deleted).await)
                || !self.rounds.gate(self.shard).await
            {
                return false;
            }
        }
        true
    }

    fn prepare(&self, iteration: u32, deleted: bool) {
        self.rounds.acknowledged_ns.set(0);
        if deleted {
            self.rounds.choose(self.shard.shared.plan.seed, iteration);
        } else {
            self.rounds.objects.borrow_mut().fill(ObjectState::Unclear);
        }
    }

    /// Writes the worker's objects, or deletes those of them that were chosen.
    async fn mutate(&mut self, iteration: u32, deleted: bool) -> bool {
        let per_worker = self.rounds.plan.objects as usize;
        let first = self.index as usize * per_worker;
        for number in first..first + per_worker {
            if deleted && !self.rounds.to_delete.borrow()[number] {
                continue;
            }
            let key = self.rounds.key(iteration, number);
            let entry = if deleted { DELETE } else { PUT };
            let Some((outcome, ended_ns)) = self.perform(entry, key).await else {
                return false;
            };
            self.rounds.objects.borrow_mut()[number] = match (outcome, deleted) {
                (Outcome::Ok, false) => ObjectState::There,
                (Outcome::Ok, true) => ObjectState::Gone,
                (Outcome::Failed(_), _) => ObjectState::Unclear,
            };
            if outcome == Outcome::Ok {
                let last = self.rounds.acknowledged_ns.get();
                self.rounds.acknowledged_ns.set(last.max(ended_ns));
            }
        }
        true
    }

    /// Lists until the listing is right or the limit is reached.
    async fn list(&mut self, iteration: u32, deleted: bool) -> bool {
        let rounds = self.rounds;
        let begun_ns = now_ns();
        let wanted = if deleted {
            ObjectState::Gone
        } else {
            ObjectState::There
        };
        let objects = rounds.count(wanted);
        let listed = Rc::new(ListedKeys {
            shard: Rc::clone(self.shard),
            work: rounds.work,
            keyset: self.shard.shared.phase_plan().works[usize::from(rounds.work)].mix[0].keyset,
            keys: RefCell::default(),
        });
        self.worker.watch = Some(Rc::clone(&listed) as Rc<dyn Watch>);
        let mut lists = 0;
        let mut first = None;
        let (right, at_ns) = loop {
            listed.keys.borrow_mut().clear();
            let Some((outcome, now)) = self.perform(LIST, u64::from(iteration)).await else {
                self.worker.watch = None;
                return false;
            };
            // A failed listing is neither right nor wrong.
            if outcome == Outcome::Ok {
                lists += 1;
                let wrong = rounds.wrong(iteration, &mut listed.keys.borrow_mut());
                first.get_or_insert(wrong);
                if wrong == (0, 0) {
                    break (true, now);
                }
            }
            if now.saturating_sub(begun_ns) >= rounds.plan.limit_ns {
                break (false, now);
            }
        };
        self.worker.watch = None;
        let (missing, ghosts) = first.unwrap_or((0, 0));
        let from = match rounds.acknowledged_ns.get() {
            0 => begun_ns,
            last => last,
        };
        let round = Round {
            phase: self.shard.shared.phase,
            iteration,
            deleted,
            objects: u32::try_from(objects).unwrap_or(u32::MAX),
            lists,
            missing,
            ghosts,
            window_ns: at_ns.saturating_sub(from),
            right,
            at_ns,
        };
        self.shard
            .recorder
            .send(Message::Report(Event::Round(round)));
        true
    }

    /// Performs one operation and returns its outcome and the time; `None` if the phase offers no more.
    async fn perform(&mut self, entry: u16, key: u64) -> Option<(Outcome, u64)> {
        let (shard, rounds) = (self.shard, self.rounds);
        let now = now_ns();
        let seq = rounds.seq.get();
        shard.check_bytes(now);
        if now >= shard.cutoff_ns.get() || shard.beyond_ops(seq) {
            // Otherwise the other workers would wait at a gate for this one.
            shard.close(now);
            return None;
        }
        rounds.seq.set(seq + 1);
        shard.tick(now);
        let source = &shard.shared.sources[usize::from(rounds.work)];
        let mut due_op = DueOp::new(source.op_on(entry, seq, key), now, now);
        shard.offered(now, &due_op.op);
        shard.recorder.tally().issued += 1;
        let end = perform(shard, self.worker, &mut due_op, || ()).await;
        Some((end.outcome, end.now_ns))
    }
}
