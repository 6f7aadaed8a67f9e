//! The key-value cache of a language model in an object store (docs/spec/ai-kvcache.md section 4).
//!
//! ```text
//!  request arrives ─▶ look up its blocks ─▶ read the prefix found ─▶ compute the rest ─▶ write it behind
//!                       head, get, index      (load time)              (a pause)           └ evict the oldest
//! ```
//!
//! The requests are not in the plan: they come from a [`crate::trace::TraceSource`], one record per block. Or they come
//! from users ([`crate::generate::users`]), whose cache has one entry per request (section 5).

use serde::{Deserialize, Serialize};

use crate::generate::LawError;
use crate::generate::rng::mix64;
use crate::op::OpClass;
use crate::plan::{Model, Plan, is_default};

/// Requests of a trace or of users, and the cache that serves them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KvcachePlan {
    /// Identity of the trace: a hash over its records and over what selects them; empty for users.
    pub trace: String,
    /// Divisor of recorded times; 0 = the next request begins when the one before it has written everything.
    pub speed: f64,
    /// The language model, as it appears in names.
    pub model: String,
    /// Tokens of a whole block of the trace.
    pub trace_block_tokens: u64,
    /// Tokens of a whole block of the cache; it divides `trace_block_tokens`.
    pub block_tokens: u64,
    /// Bytes of a whole block, over all its objects.
    pub block_bytes: u64,
    /// Tensor-parallel ranks: each stores its part of a block.
    pub ranks: u32,
    /// Objects per rank and block: the layers of the model, or 1.
    pub layers: u32,
    /// Whether to store a block that is not whole.
    pub partial_last: bool,
    /// How blocks are found.
    pub lookup: KvLookup,
    /// Most objects of a request that are looked up or read at a time.
    pub gets: u32,
    /// Most objects of a request that are written at a time.
    pub puts: u32,
    /// Time to compute a token, nanoseconds; 0 = storage alone.
    pub prefill_ns_per_token: u64,
    /// Most bytes of the cache; 0 = no limit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub budget_bytes: u64,
    /// Whether to write only objects that do not exist.
    #[serde(default, skip_serializing_if = "is_default")]
    pub if_absent: bool,
    /// Classes of requests with their targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<KvClass>,
    /// Maximum number of operations in flight; reaching it marks the run semi-open.
    pub max_in_flight: u32,
    /// The users, in place of a trace. Then a block is a token, an entry consists of as many as the prompt has, and the
    /// cache is found by an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<KvUsers>,
}

/// Users that converse with a language model: each waits for the answer, thinks, and asks again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KvUsers {
    /// Number of clients: servers of the model, each with its own users, memory and limit on writes.
    pub clients: u32,
    /// Users of each client.
    pub users: u32,
    /// Most requests of a client that write their entry at a time; 0 = no limit.
    pub allocations: u32,
    /// Memory of each client that holds the newest entries, bytes; 0 = none.
    pub tier_bytes: u64,
    /// Time to generate a token of the answer, nanoseconds.
    pub generation_ns_per_token: u64,
    /// Kinds of users, equally frequent.
    pub kinds: Vec<KvKind>,
}

/// A kind of user. Each user draws its own values from these ranges, least to most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvKind {
    /// Name.
    pub name: String,
    /// Longest prompt, tokens.
    pub context: [u64; 2],
    /// Longest answer, tokens.
    pub output: [u64; 2],
    /// Mean pause before a request, nanoseconds.
    pub think_ns: [u64; 2],
}

impl KvUsers {
    /// The users of MLPerf Storage (docs/spec/ai-kvcache.md section 5), without memory and limits.
    #[must_use]
    pub fn mlperf(clients: u32, users: u32) -> Self {
        let kind = |name: &str, context, output, think_ms: [u64; 2]| KvKind {
            name: name.to_owned(),
            context,
            output,
            think_ns: think_ms.map(|ms| ms * 1_000_000),
        };
        Self {
            clients,
            users,
            allocations: 0,
            tier_bytes: 0,
            generation_ns_per_token: 0,
            kinds: vec![
                kind("chatbot", [512, 4096], [50, 200], [100, 500]),
                kind("coding", [4096, 25_000], [100, 500], [200, 1000]),
                kind("document", [4096, 16_384], [200, 800], [300, 1500]),
            ],
        }
    }

    /// Users of all clients.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.clients as u64 * self.users as u64
    }

    /// Tokens of the longest prompt.
    #[must_use]
    pub fn most_tokens(&self) -> u64 {
        let most = self.kinds.iter().map(|kind| kind.context[1]).max();
        most.unwrap_or(0)
    }
}

/// How the blocks of a request are found.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum KvLookup {
    /// A HEAD per object, then the GETs.
    Head,
    /// GETs at once; an absent object is a miss.
    Get,
    /// The client knows what it has written.
    Index,
}

/// A class of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KvClass {
    /// Name.
    pub name: String,
    /// Relative number of requests.
    pub share: f64,
    /// Most time from the arrival of a request to its last needed block, at p95, p99, p99.9 and p99.99, nanoseconds.
    pub targets_ns: [u64; 4],
}

impl KvClass {
    /// The classes of MLPerf Storage (docs/spec/ai-kvcache.md section 2).
    #[must_use]
    pub fn mlperf() -> Vec<Self> {
        let class = |name: &str, share, ms: [u64; 4]| Self {
            name: name.to_owned(),
            share,
            targets_ns: ms.map(|ms| ms * 1_000_000),
        };
        vec![
            class("interactive", 0.15, [50, 100, 150, 200]),
            class("responsive", 0.35, [100, 200, 350, 500]),
            class("batch", 0.5, [1000, 5000, 7500, 10_000]),
        ]
    }
}

/// The percentiles of [`KvClass::targets_ns`].
pub const KV_QUANTILES: [f64; 4] = [0.95, 0.99, 0.999, 0.9999];

/// What the spans of such a work measure ([`crate::tally::Span::part`]); the spans of classes follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum KvSpan {
    /// First GET sent to last needed block received.
    Load,
    /// Arrival to last needed block received.
    Ready,
    /// Time added to the first token, of requests for which loading took longer than computing.
    Added,
    /// Time saved before the first token, of the others.
    Saved,
    /// Writes due to the last one ended.
    WriteBehind,
    /// Of users: entry ready to be written to written, with the wait for other writes of the client.
    Prefill,
    /// Of users: first read of the own entry sent to the last received.
    Decode,
    /// Of users: the request to the last byte that it needs, without the time to generate the answer.
    Request,
}

impl KvSpan {
    /// The name of [`KvSpan::Saved`], the only one of which more is better.
    pub const EARLIER: &'static str = "first token earlier by";
    /// The span of class number 0.
    pub const CLASSES: u16 = 16;
    /// Every span that is not a class, with its name in reports.
    pub const NAMES: [(Self, &'static str); 8] = [
        (Self::Load, "load"),
        (Self::Ready, "arrival to loaded"),
        (Self::Added, "first token later by"),
        (Self::Saved, Self::EARLIER),
        (Self::WriteBehind, "write-behind"),
        (Self::Prefill, "prefill"),
        (Self::Decode, "decode"),
        (Self::Request, "request"),
    ];
}

impl KvcachePlan {
    /// Objects of a block.
    #[must_use]
    pub const fn parts(&self) -> u64 {
        self.ranks as u64 * self.layers as u64
    }

    /// Bytes of a block of `tokens` tokens.
    #[must_use]
    pub const fn bytes_of(&self, tokens: u64) -> u64 {
        let bytes = self.block_bytes as u128 * tokens as u128 / self.block_tokens as u128;
        bytes as u64
    }

    /// Bytes of part `part` of a block of `bytes` bytes. The parts add up to the block.
    #[must_use]
    pub const fn part_bytes(&self, bytes: u64, part: u64) -> u64 {
        let (bytes, parts) = (bytes as u128, self.parts() as u128);
        let part = part as u128;
        (bytes * (part + 1) / parts - bytes * part / parts) as u64
    }

    /// The class of writes.
    #[must_use]
    pub const fn put_class(&self) -> OpClass {
        match self.if_absent {
            true => OpClass::PutIfAbsent,
            false => OpClass::Put,
        }
    }

    /// Index of the class of request number `number`; `None` without classes.
    #[must_use]
    pub fn class_of(&self, number: u64) -> Option<usize> {
        self.class_at((mix64(number) >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// Index of the class at `place` of all shares, from 0 to 1; `None` without classes.
    #[must_use]
    pub fn class_at(&self, place: f64) -> Option<usize> {
        let total: f64 = self.classes.iter().map(|class| class.share).sum();
        let mut rest = place * total;
        let found = self.classes.iter().position(|class| {
            rest -= class.share;
            rest < 0.0
        });
        found.or_else(|| self.classes.len().checked_sub(1))
    }
}

impl Model for KvcachePlan {
    fn max_sessions(&self) -> u32 {
        self.max_in_flight
    }

    fn open_cap(&self) -> Option<u32> {
        (self.speed > 0.0).then_some(self.max_in_flight)
    }

    fn ends_by_itself(&self) -> bool {
        self.users.is_none()
    }

    fn has_indexed_names(&self) -> bool {
        false
    }

    fn fingerprint(
        &self,
        plan: &Plan,
        _: (usize, usize),
        put: &mut dyn FnMut(u64),
    ) -> Result<(), LawError> {
        // The trace's identity represents its requests.
        self.trace.bytes().for_each(|byte| put(u64::from(byte)));
        put(self.speed.to_bits());
        for value in [self.block_tokens, self.block_bytes, self.parts()] {
            put(value);
        }
        if let Some(users) = &self.users {
            put(plan.seed);
            put(u64::from(users.clients));
            put(users.all());
            put(users.tier_bytes);
            put(u64::from(users.allocations));
            put(users.generation_ns_per_token);
            for kind in &users.kinds {
                for range in [kind.context, kind.output, kind.think_ns] {
                    range.into_iter().for_each(&mut *put);
                }
            }
        }
        Ok(())
    }
}
