//! What becomes of one request of a user (docs/spec/ai-kvcache.md section 5).
//!
//! ```text
//!  ask ─▶ read the entries of earlier turns ─▶ wait ─▶ write the own entry ─▶ read it, again and again ─▶ generate
//!             one after another                (limit)  └ and those that it pushes out of the memory        ─▶ think
//! ```
//!
//! Only the objects of one entry are in flight at a time. At the end of the phase nothing new begins.

use bucketload_core::generate::users::Turn;
use bucketload_core::op::{Op, OpClass};
use bucketload_core::plan::KvSpan;
use bucketload_core::record::Outcome;

use super::arrivals::Block;
use super::{Flight, Kvcache, Timer};
use crate::due::OpEnd;
use crate::shard::Shard;

/// What a request is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// GETs of the entries of earlier turns.
    Load,
    /// Nothing: too many others of the client write.
    Wait,
    /// PUTs.
    Write,
    /// GETs of the own entry.
    Decode,
    /// Nothing: the model generates the answer.
    Generate,
}

/// A request of a user.
#[derive(Debug)]
pub(super) struct Asked {
    user: u32,
    due_ns: u64,
    stage: Stage,
    /// What the stage reads or writes, one after another, and the one that is in flight.
    pub(super) entries: Vec<Block>,
    at: usize,
    /// Objects of it that are due already, and those that have not ended.
    begun: u64,
    in_flight: u32,
    pub(super) own: Block,
    /// Whether the own entry is in the memory of the client.
    in_memory: bool,
    reads: u64,
    output: u64,
    /// Earlier turns of the conversation, and their tokens.
    pub(super) earlier: u64,
    pub(super) earlier_tokens: u64,
    /// Entries of these that were there, and their tokens and bytes.
    hits: u64,
    hit_tokens: u64,
    hit_bytes: u64,
    /// First operation of the stage sent, nanoseconds since the epoch; 0 before.
    sent_ns: u64,
    /// When the own entry could be written, nanoseconds since the epoch.
    write_ns: u64,
}

impl Asked {
    pub(super) fn new(user: u32, due_ns: u64, turn: &Turn) -> Self {
        Self {
            user,
            due_ns,
            stage: Stage::Load,
            entries: Vec::new(),
            at: 0,
            begun: 0,
            in_flight: 0,
            own: Block {
                id: 0,
                tokens: 0,
                bytes: 0,
                good: 0,
                ended: 0,
                done_ns: 0,
            },
            in_memory: false,
            reads: turn.reads(),
            output: turn.output,
            earlier: 0,
            earlier_tokens: 0,
            hits: 0,
            hit_tokens: 0,
            hit_bytes: 0,
            sent_ns: 0,
            write_ns: 0,
        }
    }

    /// An earlier turn was there.
    pub(super) const fn hit(&mut self, tokens: u64, bytes: u64) {
        self.hits += 1;
        self.hit_tokens += tokens;
        self.hit_bytes += bytes;
    }

    /// Number in the store of the entry that is in flight.
    pub(super) fn id(&self) -> u64 {
        self.entries[self.at].id
    }

    fn begin(&mut self, stage: Stage) {
        (self.stage, self.at, self.begun, self.sent_ns) = (stage, 0, 0, 0);
    }
}

impl Kvcache {
    fn asked(&mut self, number: u32) -> &mut Asked {
        let users = self.users.as_mut().expect("only users ask");
        &mut users.asked.items[number as usize]
    }

    /// Makes as many operations of the request due as may be in flight; goes to the next stage after the last.
    pub(super) fn go_on(&mut self, number: u32, now_ns: u64, shard: &Shard) {
        let (parts, gets, puts) = (self.plan.parts(), self.plan.gets, self.plan.puts);
        let (get, put) = (self.entries.get, self.entries.put);
        let put_class = self.plan.put_class();
        loop {
            let asked = self.asked(number);
            if now_ns >= shard.cutoff_ns.get() {
                if asked.in_flight == 0 {
                    self.give_up(number);
                }
                return;
            }
            if let Some(entry) = asked.entries.get(asked.at).copied() {
                let (class, index, width) = match asked.stage {
                    Stage::Write => (put_class, put, puts),
                    _ => (OpClass::Get, get, gets),
                };
                if asked.begun < parts {
                    if asked.in_flight >= width {
                        return;
                    }
                    let part = asked.begun;
                    asked.begun += 1;
                    asked.in_flight += 1;
                    let op = Op {
                        entry: index,
                        key: entry.id.wrapping_mul(parts).wrapping_add(part),
                        size: self.plan.part_bytes(entry.bytes, part),
                        ..Op::new(class)
                    };
                    let part = part as u32;
                    let flight = Flight::Entry {
                        asked: number,
                        part,
                    };
                    self.add_task(op, flight, now_ns);
                    continue;
                }
                if asked.in_flight > 0 {
                    return;
                }
                asked.at += 1;
                asked.begun = 0;
                self.entry_ended(number, entry, shard);
                continue;
            }
            match asked.stage {
                Stage::Load => self.turns_loaded(number, now_ns, shard),
                Stage::Write => self.entry_written(number, now_ns, shard),
                Stage::Decode => {
                    let took = now_ns.saturating_sub(asked.sent_ns);
                    self.span(KvSpan::Decode as u16, took, shard);
                    self.answered(number, now_ns, shard);
                }
                Stage::Wait | Stage::Generate => {}
            }
            return;
        }
    }

    fn span(&self, part: u16, value_ns: u64, shard: &Shard) {
        let mut tally = shard.recorder.tally();
        tally.span_mut(self.work, part).makespan.record(value_ns);
    }

    /// An operation on the entry that is in flight has ended.
    pub(super) fn entry_object_ended(&mut self, number: u32, end: &OpEnd, shard: &Shard) {
        let good = end.outcome == Outcome::Ok && !end.absent;
        let asked = self.asked(number);
        asked.in_flight -= 1;
        if asked.sent_ns == 0 || end.started_ns < asked.sent_ns {
            asked.sent_ns = end.started_ns;
        }
        let writes = asked.stage == Stage::Write;
        let entry = &mut asked.entries[asked.at];
        entry.good += u32::from(good);
        entry.done_ns = entry.done_ns.max(end.done_ns);
        if writes {
            self.pending -= 1;
        }
        self.go_on(number, end.done_ns, shard);
    }

    /// All operations on an entry of the stage have ended.
    fn entry_ended(&mut self, number: u32, entry: Block, shard: &Shard) {
        let whole = u64::from(entry.good) == self.plan.parts();
        let asked = self.asked(number);
        let (stage, is_own) = (asked.stage, asked.own.id == entry.id);
        match stage {
            Stage::Load => {
                if whole {
                    asked.hit(entry.tokens, entry.bytes);
                }
                self.index.read(entry.id);
                if !whole {
                    self.index.lost(entry.id);
                    shard.recorder.tally().kvcache.lost += 1;
                }
            }
            Stage::Write => {
                self.index.wrote(entry.id, whole);
                let users = self.users.as_ref().expect("only users ask");
                if !is_own && !users.entry_of(entry.id, &self.plan).1 {
                    self.index.forget(entry.id);
                }
                let counts = &mut shard.recorder.tally().kvcache;
                counts.written += u64::from(whole);
                counts.unwritten += u64::from(!whole);
            }
            _ => {}
        }
    }

    /// The entries of earlier turns were read.
    fn turns_loaded(&mut self, number: u32, now_ns: u64, shard: &Shard) {
        let limit = self
            .users
            .as_ref()
            .map_or(0, |users| users.plan.allocations);
        let asked = self.asked(number);
        let (user, due_ns) = (asked.user, asked.due_ns);
        let read = asked.entries.iter().filter(|entry| entry.done_ns > 0);
        let ended_ns = read.map(|entry| entry.done_ns).max();
        let sent_ns = asked.sent_ns;
        let (hits, tokens, bytes) = (asked.hits, asked.hit_tokens, asked.hit_bytes);
        let (earlier, earlier_tokens) = (asked.earlier, asked.earlier_tokens);
        asked.stage = Stage::Wait;
        asked.write_ns = now_ns;
        {
            let counts = &mut shard.recorder.tally().kvcache;
            counts.loaded += 1;
            counts.blocks += earlier;
            counts.tokens += earlier_tokens;
            counts.hits += hits;
            counts.hit_tokens += tokens;
            counts.hit_bytes += bytes;
        }
        if let Some(ended_ns) = ended_ns {
            self.span(KvSpan::Load as u16, ended_ns.saturating_sub(sent_ns), shard);
            self.span(KvSpan::Ready as u16, ended_ns.saturating_sub(due_ns), shard);
        }
        let users = self.users.as_mut().expect("only users ask");
        let client = &mut users.clients[users.users[user as usize].client as usize];
        if limit > 0 && client.writing >= limit {
            client.waiting.push_back(number);
            return;
        }
        client.writing += 1;
        self.allocate(number, now_ns, shard);
    }

    /// Begins to write the own entry, or what it pushes out of the memory.
    pub(super) fn allocate(&mut self, number: u32, now_ns: u64, shard: &Shard) {
        let users = self.users.as_mut().expect("only users ask");
        let asked = &mut users.asked.items[number as usize];
        let client = users.users[asked.user as usize].client as usize;
        let own = asked.own;
        asked.entries.clear();
        asked.in_memory = users.clients[client].takes(own.bytes);
        let (mut evicted, mut entries) = (0, std::mem::take(&mut asked.entries));
        if asked.in_memory {
            let tier = &mut users.clients[client].tier;
            tier.insert(own.id, own.bytes);
            tier.evict();
            while let Some(id) = users.clients[client].tier.next_removal(1) {
                users.clients[client].tier.left(id);
                entries.push(users.entry_of(id, &self.plan).0);
                evicted += 1;
            }
        } else {
            entries.push(own);
        }
        for entry in &entries {
            self.index.insert(entry.id, entry.bytes);
        }
        self.pending += entries.len() as u64 * self.plan.parts();
        {
            let counts = &mut shard.recorder.tally().kvcache;
            counts.missed += entries.len() as u64;
            counts.evicted += evicted;
            counts.most_pending = counts.most_pending.max(self.pending);
            counts.most_bytes = counts.most_bytes.max(self.index.bytes());
        }
        let asked = &mut users.asked.items[number as usize];
        asked.entries = entries;
        asked.begin(Stage::Write);
        self.go_on(number, now_ns, shard);
    }

    /// The own entry is stored: reads it, as often as the answer needs it.
    fn entry_written(&mut self, number: u32, now_ns: u64, shard: &Shard) {
        let asked = self.asked(number);
        let (own, in_memory, reads) = (asked.own, asked.in_memory, asked.reads);
        let took = now_ns.saturating_sub(asked.write_ns);
        let user = asked.user as usize;
        asked.entries.clear();
        self.span(KvSpan::Prefill as u16, took, shard);
        let users = self.users.as_mut().expect("only users ask");
        let client = &mut users.clients[users.users[user].client as usize];
        // The place is taken before the timer gives it away.
        let next = client.waiting.pop_front();
        if next.is_none() {
            client.writing -= 1;
        }
        if in_memory {
            client.tier.wrote(own.id, true);
        }
        let asked = &mut users.asked.items[number as usize];
        let absorbed = match in_memory {
            true => reads,
            false if self.index.reading(own.id).is_some() => {
                // Only this request knows the entry until it is over.
                self.index.read(own.id);
                asked.entries.extend((0..reads).map(|_| own));
                0
            }
            // The write failed, so there is nothing to read.
            false => 0,
        };
        let is_read = !asked.entries.is_empty();
        asked.begin(Stage::Decode);
        shard.recorder.tally().kvcache.absorbed += absorbed;
        if let Some(next) = next {
            self.add_timer(now_ns, Timer::Allocate(next));
        }
        match is_read {
            true => self.go_on(number, now_ns, shard),
            false => self.answered(number, now_ns, shard),
        }
    }

    /// Everything that the request needs was read and written.
    fn answered(&mut self, number: u32, now_ns: u64, shard: &Shard) {
        let users = self.users.as_mut().expect("only users ask");
        let asked = &mut users.asked.items[number as usize];
        asked.stage = Stage::Generate;
        let took = now_ns.saturating_sub(asked.due_ns);
        let pause = asked
            .output
            .saturating_mul(users.plan.generation_ns_per_token);
        let class = users.users[asked.user as usize].profile.class;
        self.span(KvSpan::Request as u16, took, shard);
        if let Some(class) = self.plan.class_at(class) {
            self.span(KvSpan::CLASSES + class as u16, took, shard);
        }
        match pause {
            0 => self.answer_ended(number, now_ns),
            pause => self.add_timer(now_ns.saturating_add(pause), Timer::Answer(number)),
        }
    }

    /// The answer is generated: the user thinks about it.
    pub(super) fn answer_ended(&mut self, number: u32, now_ns: u64) {
        let users = self.users.as_mut().expect("only users ask");
        let user = users.asked.items[number as usize].user;
        users.asked.free.push(number);
        users.users[user as usize].turn += 1;
        self.think(user, now_ns);
    }

    /// The phase is over.
    fn give_up(&mut self, number: u32) {
        let users = self.users.as_mut().expect("only users ask");
        users.asked.free.push(number);
    }
}
