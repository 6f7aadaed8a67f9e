//! The requests of a language model whose key-value cache is in the store (docs/spec/ai-kvcache.md section 4).
//!
//! ```text
//!  arrivals ─▶ begin ─▶ look up, read ─ last end ─▶ pause ─▶ write ─ last end ─▶ request over
//!                 │                                  timers     └▶ removals of evicted blocks (nobody waits)
//!                 └───────────── operations that are due: ready ──▶ take
//! ```
//!
//! Users ask in place of a trace ([`users`]), and their requests take another course ([`turn`]).
//!
//! One thread performs all requests, because the index of the cache decides what they do. Memory grows with the blocks
//! that the cache holds and with the requests under way, whose number is bounded: a request beyond the bound waits.

mod arrivals;
mod request;
mod turn;
mod users;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use bucketload_core::error::ErrorKind;
use bucketload_core::op::{Op, OpClass};
use bucketload_core::plan::KvcachePlan;
use bucketload_core::record::Outcome;

use self::arrivals::Arrivals;
use self::request::Request;
use self::users::Users;
use super::queue::Queue;
use super::{Next, Offer};
use crate::due::{DueOp, OpEnd};
use crate::kvcache::{Index, KvEntries, KvNames, KvWork};
use crate::names::Names;
use crate::shard::Shard;

/// Most requests under way.
const MOST_LIVE: usize = 16_384;
/// Most objects of a DeleteObjects (S3).
const BATCH: usize = 1000;
/// A request that begins later than this was late, nanoseconds.
const LATE_NS: u64 = 1_000_000;

/// What an operation is for.
#[derive(Clone, Copy, Debug)]
enum Flight {
    /// Object `part` of block number `block` of a request.
    Object { request: u32, block: u32, part: u32 },
    /// Object `part` of the entry that a request of a user reads or writes.
    Entry { asked: u32, part: u32 },
    /// The removal of the objects of a batch.
    Removal { batch: u32 },
}

/// What becomes due after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The writes of a request of the trace.
    Write(u32),
    /// The write of a user's request, whose turn it is.
    Allocate(u32),
    /// The end of the answer to a user's request.
    Answer(u32),
    /// The next request of a user.
    Ask(u32),
}

/// An operation that is due.
#[derive(Clone, Copy, Debug)]
struct Task {
    op: Op,
    flight: u32,
    due_ns: u64,
    /// How long it waited for a removal of its object.
    blocked_ns: u64,
    counted: bool,
}

/// Items with numbers that are used again.
struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    const fn new() -> Self {
        Self {
            items: Vec::new(),
            free: Vec::new(),
        }
    }

    fn live(&self) -> usize {
        self.items.len() - self.free.len()
    }

    fn add(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.items[at as usize] = item;
                at
            }
            None => {
                self.items.push(item);
                (self.items.len() - 1) as u32
            }
        }
    }
}

/// The cache of one work.
pub(crate) struct Kvcache {
    work: u16,
    plan: KvcachePlan,
    names: KvNames,
    entries: KvEntries,
    arrivals: Arrivals,
    index: Index,
    start_ns: u64,
    /// When the latest request was over, nanoseconds since the epoch.
    freed_ns: u64,
    /// Requests that have arrived.
    arrived: u64,
    /// Sequence number of the next operation.
    seq: u64,
    requests: Slab<Request>,
    flights: Slab<Flight>,
    /// Objects of the batches that are being removed: block and part.
    batches: Slab<Vec<(u64, u64)>>,
    /// What becomes due, and when.
    timers: BinaryHeap<Reverse<(u64, Timer)>>,
    ready: VecDeque<Task>,
    /// Writes that wait for a removal of their object.
    held: Vec<Task>,
    /// Objects that are due to be written and not written.
    pending: u64,
    /// The users, in place of arrivals.
    users: Option<Users>,
}

impl Kvcache {
    /// The requests of the trace that `queue` delivers, or those of share `share` of the users.
    pub(crate) fn new(work: u16, shared: &KvWork, queue: Arc<Queue>, share: (u32, u32)) -> Self {
        let users = shared.plan.users.as_ref().zip(shared.users.as_ref());
        Self {
            users: users.map(|(plan, generator)| Users::new(plan, generator, share)),
            work,
            names: shared.names.clone(),
            entries: shared.entries,
            arrivals: Arrivals::new(queue),
            index: Index::new(shared.plan.budget_bytes),
            start_ns: 0,
            freed_ns: 0,
            arrived: 0,
            seq: 0,
            requests: Slab::new(),
            flights: Slab::new(),
            batches: Slab::new(),
            timers: BinaryHeap::new(),
            ready: VecDeque::new(),
            held: Vec::new(),
            pending: 0,
            plan: shared.plan.clone(),
        }
    }

    pub(super) fn start(&mut self, start_ns: u64) {
        (self.start_ns, self.freed_ns) = (start_ns, start_ns);
        self.start_users(start_ns);
    }

    fn add_timer(&mut self, at_ns: u64, timer: Timer) {
        self.timers.push(Reverse((at_ns, timer)));
    }

    /// Whether one request begins when the one before is over.
    fn is_serial(&self) -> bool {
        self.plan.speed == 0.0
    }

    /// Due instant of the next request, if it may begin.
    fn arrival_ns(&mut self, waker: Option<&Waker>) -> Option<u64> {
        // One after another, a request also waits for what the one before removes.
        let waits = match self.is_serial() {
            true => self.requests.live() + self.batches.live() > 0,
            false => self.requests.live() >= MOST_LIVE,
        };
        if waits {
            return None;
        }
        let due_ns = self.arrivals.head_ns(&self.plan, waker)?;
        Some(match self.is_serial() {
            true => self.freed_ns,
            false => self.start_ns.saturating_add(due_ns),
        })
    }

    pub(super) fn next(&mut self, cutoff_ns: u64, waker: Option<&Waker>) -> Next {
        if let Some(task) = self.ready.front() {
            return Next::At(task.due_ns);
        }
        let timer = self.timers.peek().map(|first| first.0.0);
        if self.users.is_some() {
            return match timer {
                Some(at) if at < cutoff_ns => Next::At(at),
                _ if self.flights.live() > 0 => Next::Later,
                Some(_) => Next::At(cutoff_ns),
                None => Next::Over,
            };
        }
        let arrival = self.arrival_ns(waker);
        let live = self.requests.live() + self.batches.live();
        match arrival
            .filter(|at| *at < cutoff_ns)
            .into_iter()
            .chain(timer)
            .min()
        {
            Some(at) => Next::At(at),
            None if live > 0 => Next::Later,
            None if arrival.is_some() => Next::At(cutoff_ns),
            None if self.arrivals.is_over() => Next::Over,
            None => Next::Later,
        }
    }

    pub(super) fn take(&mut self, now_ns: u64, shard: &Shard, names: &mut Names) -> Offer {
        if self.users.is_none() {
            self.begin_due(now_ns, shard);
        } else if now_ns >= shard.cutoff_ns.get() {
            // Users begin nothing any more.
            self.timers.clear();
        }
        while let Some(&Reverse((due_ns, timer))) = self.timers.peek()
            && due_ns <= now_ns
        {
            self.timers.pop();
            match timer {
                Timer::Write(request) => self.write(request, due_ns, shard),
                Timer::Allocate(asked) => self.allocate(asked, due_ns, shard),
                Timer::Answer(asked) => self.answer_ended(asked, due_ns),
                Timer::Ask(user) => {
                    self.count_request(now_ns - due_ns, shard);
                    self.ask(user, due_ns, shard);
                }
            }
        }
        let Some(task) = self.ready.pop_front() else {
            return Offer::Nothing;
        };
        self.write_names(&task, names);
        let is_read = matches!(task.op.class, OpClass::Get | OpClass::Head);
        Offer::Perform(DueOp {
            feed_tag: task.flight,
            uncounted: !task.counted,
            blocked_ns: task.blocked_ns,
            // The index says what exists; otherwise the answer does.
            absent_expected: is_read && self.asks(),
            ..DueOp::new(task.op, task.due_ns, now_ns)
        })
    }

    /// Begins the requests that are due.
    fn begin_due(&mut self, now_ns: u64, shard: &Shard) {
        let cutoff_ns = shard.cutoff_ns.get();
        while let Some(due_ns) = self.arrival_ns(None) {
            if due_ns >= cutoff_ns && now_ns >= cutoff_ns {
                self.arrivals.end();
            }
            if due_ns > now_ns || due_ns >= cutoff_ns {
                return;
            }
            let late_ns = if self.is_serial() { 0 } else { now_ns - due_ns };
            self.count_request(late_ns, shard);
            self.begin(due_ns, shard);
        }
    }

    fn count_request(&self, late_ns: u64, shard: &Shard) {
        let counts = &mut shard.recorder.tally().kvcache;
        counts.requests += 1;
        counts.late += u64::from(late_ns > LATE_NS);
    }

    /// Writes the names of an operation.
    fn write_names(&self, task: &Task, names: &mut Names) {
        names.clear_source();
        match self.flights.items[task.flight as usize] {
            Flight::Object {
                request,
                block,
                part,
            } => {
                let block = self.requests.items[request as usize].blocks[block as usize];
                let key = names.key_mut();
                key.clear();
                self.names.push(block.id, u64::from(part), key);
            }
            Flight::Entry { asked, part } => {
                let Some(users) = &self.users else { return };
                let id = users.asked.items[asked as usize].id();
                let key = names.key_mut();
                key.clear();
                self.names.push(id, u64::from(part), key);
            }
            Flight::Removal { batch } => {
                let objects = &self.batches.items[batch as usize];
                let (key, more) = names.parts_mut();
                key.clear();
                more.listed.clear();
                for &(block, part) in objects {
                    more.listed.push(|out| self.names.push(block, part, out));
                }
                if let Some(&(block, part)) = objects.first() {
                    self.names.push(block, part, key);
                }
            }
        }
    }

    /// Adds an operation that is due at `due_ns`.
    fn add_task(&mut self, op: Op, flight: Flight, due_ns: u64) {
        let seq = self.seq;
        self.seq += 1;
        let task = Task {
            op: Op { seq, ..op },
            flight: self.flights.add(flight),
            due_ns,
            blocked_ns: 0,
            counted: false,
        };
        let waits = match flight {
            Flight::Object { request, block, .. } if op.class.writes_body() => {
                let request = &self.requests.items[request as usize];
                self.index.is_leaving(request.blocks[block as usize].id)
            }
            _ => false,
        };
        match waits {
            true => self.held.push(task),
            false => self.ready.push_back(task),
        }
    }

    /// An operation has ended.
    pub(super) fn ended(&mut self, due_op: &DueOp, end: &OpEnd, shard: &Shard) -> bool {
        if end.outcome == Outcome::Failed(ErrorKind::Cancelled) {
            // The phase is being given up: nothing new begins.
            return false;
        }
        let flight = due_op.feed_tag;
        self.flights.free.push(flight);
        match self.flights.items[flight as usize] {
            Flight::Object {
                request,
                block,
                part: _,
            } => self.object_ended(request, block as usize, due_op.op.class, end, shard),
            Flight::Entry { asked, .. } => self.entry_object_ended(asked, end, shard),
            Flight::Removal { batch } => self.batch_ended(batch, end, shard),
        }
        true
    }

    /// Sends the removal of evicted blocks: full batches, or with `all` what is left too.
    fn remove_evicted(&mut self, all: bool, due_ns: u64) {
        let parts = self.plan.parts();
        while self.index.queued() > 0 && (all || self.index.queued() as u64 * parts >= BATCH as u64)
        {
            let mut objects = Vec::new();
            while objects.len() < BATCH
                && let Some(id) = self.index.next_removal(parts)
            {
                objects.extend((0..parts).map(|part| (id, part)));
            }
            for objects in objects.chunks(BATCH) {
                let batch = self.batches.add(objects.to_vec());
                let op = Op {
                    entry: self.entries.delete,
                    key: objects[0].0,
                    size: 0,
                    count: objects.len() as u64,
                    ..Op::new(OpClass::DeleteMany)
                };
                self.add_task(op, Flight::Removal { batch }, due_ns);
            }
        }
    }

    fn batch_ended(&mut self, batch: u32, end: &OpEnd, shard: &Shard) {
        self.batches.free.push(batch);
        self.freed_ns = self.freed_ns.max(end.done_ns);
        let objects = std::mem::take(&mut self.batches.items[batch as usize]);
        if end.outcome == Outcome::Ok {
            shard.recorder.tally().kvcache.removed += objects.len() as u64;
        }
        for &(block, _) in &objects {
            self.index.left(block);
        }
        let mut held = std::mem::take(&mut self.held);
        held.retain(|task| {
            let Flight::Object { request, block, .. } = self.flights.items[task.flight as usize]
            else {
                return false;
            };
            let block = self.requests.items[request as usize].blocks[block as usize];
            let waits = self.index.is_leaving(block.id);
            if !waits {
                self.ready.push_back(Task {
                    blocked_ns: end.done_ns.saturating_sub(task.due_ns),
                    ..*task
                });
            }
            waits
        });
        self.held = held;
    }

    pub(super) fn count_until(&mut self, until_ns: u64, offer: &mut dyn FnMut(u64, &Op)) {
        let due = |task: &&mut Task| !task.counted && task.due_ns < until_ns;
        for task in self.ready.iter_mut().chain(&mut self.held).filter(due) {
            offer(task.due_ns, &task.op);
            task.counted = true;
        }
    }

    /// Due instant of the oldest operation that is not taken.
    pub(super) fn oldest_ns(&self) -> Option<u64> {
        let tasks = self.ready.iter().chain(&self.held);
        tasks.map(|task| task.due_ns).min()
    }

    /// Requests that have arrived and are not over.
    pub(super) fn under_way(&self) -> u64 {
        let asked = self.users.as_ref().map_or(0, |users| users.asked.live());
        (self.requests.live() + asked) as u64
    }
}
