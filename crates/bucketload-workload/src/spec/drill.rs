//! The tables of drills: `[drill]`, the stages, and `[[fault]]`, what breaks.

use schemars::{JsonSchema, json_schema};

use super::decode::{Cx, Decode, decode_variants, json_schema_of, spec_table};
use super::law::ThinkSpec;
use super::node::{Node, Value};
use super::quantity::{ByteSize, Nanos, Share};
use bucketload_core::units;

spec_table! {
    /// The stages of a drill: warm, steady (the baseline), the faults, recover.
    pub struct DrillSpec {
        /// Time before the baseline. Default: 10s.
        pub warm: Option<Nanos>,
        /// Length of the baseline. Default: 30s.
        pub steady: Option<Nanos>,
        /// How long the load goes on after the last fault. Default: 30s.
        pub recover: Option<Nanos>,
        /// How long everything has to stay within the baseline's band to count as recovered. Default: 10s, or
        /// half of `recover` if that is shorter.
        pub hold: Option<Nanos>,
        /// Length of an interval, the resolution of all times. Default: 100ms.
        pub interval: Option<Nanos>,
        /// Longest response time of an operation that counts as answered in time. Default: the limit that 99 %
        /// of the baseline's operations keep, and a quarter more.
        pub deadline: Option<Nanos>,
    }
}

spec_table! {
    /// A fault: what breaks, when, and for how long.
    pub struct FaultSpec {
        /// Its name in reports. Default: what it does.
        pub name: Option<String>,
        /// What it does: latency, bandwidth, slow-open, slow-close, reset, black-hole, half-open, refused, slice,
        /// cut, answer or hook.
        pub what: Option<FaultName>,
        /// Start, counted from the end of the baseline. Default: 0s.
        pub at: Option<Nanos>,
        /// How long it lasts.
        pub r#for: Option<Nanos>,
        /// From one start to the next, for a fault that comes back; needs `times`.
        pub every: Option<Nanos>,
        /// How often it comes. Default: 1.
        pub times: Option<u32>,
        /// Over which time the share that it strikes grows from 0. Default: 0s.
        pub ramp: Option<Nanos>,
        /// Share of the connections that it strikes (answer: of the requests). Default: 100%.
        pub share: Option<Share>,
        /// The bytes that it strikes: "up" from the client, "down" to it, or "both". Default: "both", and "down"
        /// for latency and half-open.
        pub direction: Option<DirectionName>,
        /// The endpoints that it strikes, as the target names them. Default: all.
        pub endpoints: Option<Vec<String>>,
        /// latency, slow-open, slow-close: the law of delays.
        pub delay: Option<ThinkSpec>,
        /// bandwidth: what a connection carries in each direction, such as "1MiB/s".
        pub rate: Option<ByteRate>,
        /// reset, cut: bytes that a connection still carries. reset: default 0, no limit.
        pub after_bytes: Option<ByteSize>,
        /// reset: time that a connection still has. Default: 0s, it is reset at once unless `after-bytes` is set.
        pub after: Option<Nanos>,
        /// slice: largest piece.
        pub bytes: Option<ByteSize>,
        /// slice: pause after each piece. Default: 0s.
        pub pause: Option<Nanos>,
        /// answer: the status, 400 to 599.
        pub status: Option<u32>,
        /// answer: the body. Default: an error of S3 that fits the status.
        pub body: Option<String>,
        /// answer: seconds in the header Retry-After. Default: no such header.
        pub retry_after: Option<u32>,
        /// hook: the command that breaks.
        pub r#break: Option<String>,
        /// hook: the command that mends. It runs whatever happens.
        pub mend: Option<String>,
        /// hook: a command that succeeds once the store is well. Default: none.
        pub check: Option<String>,
        /// hook: time limit of each command. Default: 30s.
        pub limit: Option<Nanos>,
    }
}

/// What a fault does.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, JsonSchema, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FaultName {
    /// Bytes arrive later.
    Latency,
    /// A connection carries at most so much.
    Bandwidth,
    /// A new connection carries nothing for a while.
    SlowOpen,
    /// The end of a connection is passed on later.
    SlowClose,
    /// Connections are reset.
    Reset,
    /// Connections are accepted and carry nothing until the fault ends.
    BlackHole,
    /// One direction carries nothing until the fault ends.
    HalfOpen,
    /// New connections are refused.
    Refused,
    /// Bytes arrive in small pieces.
    Slice,
    /// Connections are closed after so many bytes.
    Cut,
    /// Requests over plain HTTP are answered without reaching the store.
    Answer,
    /// Commands break and mend the store.
    Hook,
}

/// A direction of bytes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, JsonSchema, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum DirectionName {
    /// From the client.
    Up,
    /// To the client.
    Down,
    /// Both.
    Both,
}

decode_variants!(FaultName, DirectionName);

/// Bytes per second, at least 1, written `"1MiB/s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRate(pub u64);

impl Decode for ByteRate {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        const REMEDY: &str = "write it such as \"1MiB/s\"";
        let Value::Str(text) = &node.value else {
            cx.mismatch(node, "bytes per second", REMEDY);
            return None;
        };
        let Some(size) = text.trim().strip_suffix("/s") else {
            cx.error(&node.origin, "the rate lacks its unit of time", REMEDY);
            return None;
        };
        match cx.valid(&node.origin, units::parse_size(size))? {
            0 => {
                cx.error(
                    &node.origin,
                    "a rate of 0 carries nothing",
                    "use what = \"black-hole\" for that",
                );
                None
            }
            rate => Some(Self(rate)),
        }
    }
}

json_schema_of!(ByteRate, "ByteRate", {
    json_schema!({ "type": "string", "description": "Bytes per second, such as \"1MiB/s\"" })
});
