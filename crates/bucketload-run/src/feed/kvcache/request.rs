//! What becomes of one request: lookup, reads, pause, writes.

use bucketload_core::op::{Op, OpClass};
use bucketload_core::plan::{KvLookup, KvSpan};
use bucketload_core::record::Outcome;

use super::arrivals::{Arrival, Block};
use super::{Flight, Kvcache, Timer};
use crate::due::OpEnd;
use crate::shard::Shard;

/// What a request is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// HEADs of its blocks.
    Lookup,
    /// GETs of its blocks.
    Load,
    /// Nothing: the model computes.
    Pause,
    /// PUTs of its blocks.
    Write,
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Request {
    number: u64,
    /// Its arrival, nanoseconds since the epoch.
    due_ns: u64,
    pub(super) blocks: Vec<Block>,
    tokens: u64,
    stage: Stage,
    /// Number of blocks that the stage goes through; a miss lowers it.
    limit: usize,
    /// The next object, over all blocks, and how many are in flight.
    cursor: u64,
    in_flight: u32,
    /// Blocks that the index keeps for the reads.
    kept: usize,
    /// Blocks before the first miss.
    hits: usize,
    /// First GET sent, nanoseconds since the epoch; 0 before.
    sent_ns: u64,
    /// When the writes were due, nanoseconds since the epoch.
    write_ns: u64,
}

impl Kvcache {
    /// Whether the store is asked what exists.
    pub(super) fn asks(&self) -> bool {
        self.plan.lookup != KvLookup::Index
    }

    /// Begins the next request.
    pub(super) fn begin(&mut self, due_ns: u64, shard: &Shard) {
        // The memory of a request that is over.
        let old = self.requests.free.last();
        let old = old.map(|&at| std::mem::take(&mut self.requests.items[at as usize].blocks));
        let Arrival {
            mut blocks, tokens, ..
        } = self.arrivals.take(old.unwrap_or_default());
        let mut kept = 0;
        for block in &mut blocks {
            let Some(bytes) = self.index.reading(block.id) else {
                break;
            };
            // A trace may contradict itself; what was written counts.
            block.bytes = bytes;
            kept += 1;
        }
        let limit = if self.asks() { blocks.len() } else { kept };
        let request = self.requests.add(Request {
            number: self.arrived,
            due_ns,
            blocks,
            tokens,
            stage: match self.plan.lookup {
                KvLookup::Head => Stage::Lookup,
                KvLookup::Get | KvLookup::Index => Stage::Load,
            },
            limit,
            cursor: 0,
            in_flight: 0,
            kept,
            hits: 0,
            sent_ns: 0,
            write_ns: 0,
        });
        self.arrived += 1;
        self.proceed(request, due_ns, shard);
    }

    /// Makes as many operations of the request due as may be in flight; goes to the next stage after the last.
    fn proceed(&mut self, number: u32, now_ns: u64, shard: &Shard) {
        let parts = self.plan.parts();
        loop {
            let request = &mut self.requests.items[number as usize];
            let (class, entry, width) = match request.stage {
                Stage::Lookup => (OpClass::Head, self.entries.head, self.plan.gets),
                Stage::Load => (OpClass::Get, self.entries.get, self.plan.gets),
                Stage::Write => (self.plan.put_class(), self.entries.put, self.plan.puts),
                Stage::Pause => return,
            };
            if request.cursor < request.limit as u64 * parts {
                if request.in_flight >= width {
                    return;
                }
                let (block, part) = (request.cursor / parts, request.cursor % parts);
                request.cursor += 1;
                request.in_flight += 1;
                let of = request.blocks[block as usize];
                let op = Op {
                    entry,
                    key: of.id.wrapping_mul(parts).wrapping_add(part),
                    size: match class {
                        OpClass::Head => 0,
                        _ => self.plan.part_bytes(of.bytes, part),
                    },
                    ..Op::new(class)
                };
                let flight = Flight::Object {
                    request: number,
                    block: block as u32,
                    part: part as u32,
                };
                self.add_task(op, flight, now_ns);
                continue;
            }
            if request.in_flight > 0 {
                return;
            }
            match request.stage {
                Stage::Lookup => {
                    let limit = request.limit;
                    shard.recorder.tally().kvcache.wasted += found_beyond(request);
                    for block in &mut request.blocks {
                        (block.good, block.ended) = (0, 0);
                    }
                    (request.stage, request.limit, request.cursor) = (Stage::Load, limit, 0);
                }
                Stage::Load => {
                    self.loaded(number, now_ns, shard);
                    return;
                }
                Stage::Pause | Stage::Write => {
                    self.written(number, now_ns, shard);
                    return;
                }
            }
        }
    }

    /// An operation on block number `at` of a request has ended.
    pub(super) fn object_ended(
        &mut self,
        number: u32,
        at: usize,
        class: OpClass,
        end: &OpEnd,
        shard: &Shard,
    ) {
        let parts = self.plan.parts();
        let request = &mut self.requests.items[number as usize];
        request.in_flight -= 1;
        let good = end.outcome == Outcome::Ok && !end.absent;
        let block = &mut request.blocks[at];
        block.ended += 1;
        block.good += u32::from(good);
        if class.writes_body() {
            self.pending -= 1;
            let avoided = self.plan.if_absent && good && end.bytes == 0;
            if u64::from(block.ended) == parts {
                let whole = u64::from(block.good) == parts;
                self.index.wrote(block.id, whole);
                let counts = &mut shard.recorder.tally().kvcache;
                counts.written += u64::from(whole);
                counts.unwritten += u64::from(!whole);
            }
            shard.recorder.tally().kvcache.avoided += u64::from(avoided);
        } else {
            if class == OpClass::Get {
                if request.sent_ns == 0 || end.started_ns < request.sent_ns {
                    request.sent_ns = end.started_ns;
                }
                block.done_ns = block.done_ns.max(end.done_ns);
            }
            if !good {
                request.limit = request.limit.min(at);
            }
        }
        self.proceed(number, end.done_ns, shard);
    }

    /// Everything that the request needs was read.
    fn loaded(&mut self, number: u32, now_ns: u64, shard: &Shard) {
        let request = &mut self.requests.items[number as usize];
        let hits = request.limit;
        request.hits = hits;
        for block in &request.blocks[..request.kept] {
            self.index.read(block.id);
        }
        // A block that the index kept for the reads was there and could not go.
        let lost = hits < request.kept;
        if lost {
            self.index.lost(request.blocks[hits].id);
        }
        let found = &request.blocks[..hits];
        let hit_tokens: u64 = found.iter().map(|block| block.tokens).sum();
        let missed_tokens = request.tokens - hit_tokens;
        let ended_ns = found.iter().map(|block| block.done_ns).max();
        {
            let mut tally = shard.recorder.tally();
            let counts = &mut tally.kvcache;
            counts.loaded += 1;
            counts.blocks += request.blocks.len() as u64;
            counts.hits += hits as u64;
            counts.tokens += request.tokens;
            counts.hit_tokens += hit_tokens;
            counts.hit_bytes += found.iter().map(|block| block.bytes).sum::<u64>();
            counts.lost += u64::from(lost);
            counts.wasted += found_beyond(request);
            if let Some(ended_ns) = ended_ns {
                let load = ended_ns.saturating_sub(request.sent_ns);
                let ready = ended_ns.saturating_sub(request.due_ns);
                let saved = hit_tokens.saturating_mul(self.plan.prefill_ns_per_token);
                let (span, value) = match load.checked_sub(saved) {
                    Some(added) => (KvSpan::Added, added),
                    None => (KvSpan::Saved, saved - load),
                };
                let class = self.plan.class_of(request.number);
                let class = class.map(|class| (KvSpan::CLASSES + class as u16, ready));
                let spans = [
                    (KvSpan::Load as u16, load),
                    (KvSpan::Ready as u16, ready),
                    (span as u16, value),
                ];
                for (part, value) in spans.into_iter().chain(class) {
                    tally.span_mut(self.work, part).makespan.record(value);
                }
            }
        }
        if hits == request.blocks.len() {
            self.over(number, now_ns, shard);
            return;
        }
        request.stage = Stage::Pause;
        let pause = missed_tokens.saturating_mul(self.plan.prefill_ns_per_token);
        self.add_timer(now_ns.saturating_add(pause), Timer::Write(number));
    }

    /// The blocks of the request that were missed are computed: begins to write them.
    pub(super) fn write(&mut self, number: u32, due_ns: u64, shard: &Shard) {
        let parts = self.plan.parts();
        let request = &mut self.requests.items[number as usize];
        let mut duplicates = 0;
        for block in &mut request.blocks[request.hits..] {
            (block.good, block.ended) = (0, 0);
            duplicates += u64::from(self.index.insert(block.id, block.bytes));
        }
        request.stage = Stage::Write;
        request.limit = request.blocks.len();
        request.cursor = request.hits as u64 * parts;
        request.write_ns = due_ns;
        let missed = (request.blocks.len() - request.hits) as u64;
        self.pending += missed * parts;
        let evicted = self.index.evict();
        {
            let counts = &mut shard.recorder.tally().kvcache;
            counts.missed += missed;
            counts.duplicates += duplicates;
            counts.evicted += evicted;
            counts.most_pending = counts.most_pending.max(self.pending);
            counts.most_bytes = counts.most_bytes.max(self.index.bytes());
        }
        self.remove_evicted(false, due_ns);
        self.proceed(number, due_ns, shard);
    }

    /// Everything that the request missed was written.
    fn written(&mut self, number: u32, now_ns: u64, shard: &Shard) {
        let request = &self.requests.items[number as usize];
        let took = now_ns.saturating_sub(request.write_ns);
        let failed = request.blocks[request.hits..]
            .iter()
            .any(|block| block.good < block.ended);
        {
            let mut tally = shard.recorder.tally();
            let span = tally.span_mut(self.work, KvSpan::WriteBehind as u16);
            span.makespan.record(took);
            span.failed += u64::from(failed);
        }
        self.over(number, now_ns, shard);
    }

    /// The request is over.
    fn over(&mut self, number: u32, now_ns: u64, shard: &Shard) {
        // What was read or written until now could not be evicted.
        let evicted = self.index.evict();
        shard.recorder.tally().kvcache.evicted += evicted;
        self.remove_evicted(true, now_ns);
        self.requests.free.push(number);
        self.freed_ns = self.freed_ns.max(now_ns);
    }
}

/// Objects that were found beyond the first miss.
fn found_beyond(request: &Request) -> u64 {
    let beyond = request.blocks.iter().skip(request.limit);
    beyond.map(|block| u64::from(block.good)).sum()
}
