//! The resolved plan: everything a run needs, with all options and defaults applied.
//!
//! A plan is the same for every agent. Its [`Plan::scenario_hash`] identifies what is measured (but not the
//! target), so that only comparable results are compared.

pub mod buckets;
pub mod crews;
#[path = "../../../models/list.rs"]
mod list;
pub mod model;
pub mod sizes;
pub mod stop;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use self::buckets::{BucketService, BucketsPlan, NameCase};
pub use self::closed::GapLaw;
pub use self::jobs::{JobStart, StageKind, StagePace, StagePlan};
pub use self::kvcache::{KV_QUANTILES, KvClass, KvKind, KvLookup, KvSpan, KvUsers};
pub use self::list::*;
pub use self::model::Model;
pub use self::open::ArrivalLaw;
pub use self::replay::{LatePolicy, OnAbsent, ReplayPart, ReplayTiming};
pub use self::sizes::{SizeKind, SizeLaw};
pub use self::stop::{StopFigure, StopRule};
use crate::generate::fingerprint::short_hex;
use crate::op::{BucketNeeds, OpClass};
use crate::payload::PayloadKind;

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Plan {
    /// Name of the workload.
    pub workload: String,
    /// Profile of the workload (`literal`, `acloud`, …); empty if it has none.
    pub profile: String,
    /// Name of another benchmark whose published procedure the plan reproduces, such as `ostorebench`; empty
    /// for none. Results of such a plan are labelled and never share a table with others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub compat: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Factor applied to the object counts of scaled key sets (1 = as stated in the workload).
    pub scale: f64,
    /// Factor applied to every size law (1 = as stated in the workload). Results with different factors are
    /// not comparable.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub size_scale: f64,
    /// Content of objects.
    pub payload: PayloadKind,
    /// Whether to compare every byte read with the bytes written.
    pub verify: bool,
    /// Longest duration of one attempt, nanoseconds.
    pub timeout_ns: u64,
    /// How to retry failures.
    pub retry: RetryPlan,
    /// Whether a failed read of an absent object counts as a failure.
    pub not_found_is_failure: bool,
    /// Populations of objects.
    pub keysets: Vec<KeysetPlan>,
    /// Steps, in order, with a barrier between them.
    pub phases: Vec<PhasePlan>,
}

crate::serde_once!(Plan);

/// The factor in plans written before the field existed.
const fn one() -> f64 {
    1.0
}

/// Whether a factor changes nothing and is therefore left out of the scenario's identity.
#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands in references"
)]
fn is_one(factor: &f64) -> bool {
    *factor == 1.0
}

impl Plan {
    /// Whether the consistency oracle judges the run.
    #[must_use]
    pub fn has_oracle(&self) -> bool {
        self.phases.iter().any(|p| p.kind == PhaseKind::Audit)
    }

    /// What the operations need of the bucket.
    #[must_use]
    pub fn bucket_needs(&self) -> BucketNeeds {
        let mut needs = BucketNeeds::default();
        let mut prepared = Vec::new();
        for phase in &self.phases {
            let entries = || phase.works.iter().flat_map(|work| &work.mix);
            for entry in entries() {
                needs = needs.and(entry.class.bucket_needs());
            }
            if phase.kind == PhaseKind::Prepare {
                // A second phase that prepares a key set gives its objects another version.
                needs.versions |= entries().any(|entry| prepared.contains(&entry.keyset));
                prepared.extend(entries().map(|entry| entry.keyset));
            }
        }
        needs
    }

    /// Whether the plan works on buckets and objects that the user names. Such a plan has no objects created
    /// for this run.
    #[must_use]
    pub fn is_named(&self) -> bool {
        let mut works = self.phases.iter().flat_map(|phase| &phase.works);
        works.any(|work| work.model.named().is_some())
    }

    /// Whether it consists of ranks.
    #[must_use]
    pub fn has_ranks(&self) -> bool {
        let mut works = self.phases.iter().flat_map(|phase| &phase.works);
        works.any(|work| work.model.ranks().is_some())
    }

    /// Whether it trains.
    #[must_use]
    pub fn trains(&self) -> bool {
        let mut works = self.phases.iter().flat_map(|phase| &phase.works);
        works.any(|work| work.model.train().is_some())
    }

    /// SHA-256 over the canonical JSON of everything that identifies what is measured, truncated to 16
    /// hexadecimal digits.
    #[must_use]
    pub fn scenario_hash(&self) -> String {
        // Fields appear in declaration order and floats in shortest round-trip form, so equal plans give
        // equal text.
        let text = serde_json::to_vec(self).unwrap_or_default();
        short_hex(Sha256::new_with_prefix(text))
    }
}

/// For fields that are only written if they differ from their default, so that plans without them keep their hash.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Retries of one operation; every attempt is counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryPlan {
    /// Maximum number of attempts per operation, at least 1 (1 = no retry).
    pub max_attempts: u32,
    /// Pause before the first retry, nanoseconds; doubles with each further retry.
    pub backoff_ns: u64,
    /// Longest pause, nanoseconds.
    pub max_backoff_ns: u64,
}

impl RetryPlan {
    /// A single attempt per operation.
    pub const NONE: Self = Self {
        max_attempts: 1,
        backoff_ns: 0,
        max_backoff_ns: 0,
    };
}

/// A population of objects whose names and sizes are functions of an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeysetPlan {
    /// Name used in the workload.
    pub name: String,
    /// Key prefix below the run's prefix, such as `r/`.
    pub prefix: String,
    /// Number of key prefixes (`00/`, `01/`, …) that keys are spread over; 1 = none.
    pub shards: u32,
    /// Objects that exist after preparation.
    pub count: u64,
    /// Size law of the objects.
    pub size: SizeLaw,
    /// How sizes are assigned to objects.
    pub assign: SizeAssign,
    /// Whether the run overwrites existing objects, so that their size and version cannot be known in
    /// advance.
    pub overwritten: bool,
    /// How keys are derived from object indices.
    #[serde(default, skip_serializing_if = "is_default")]
    pub naming: KeyNaming,
    /// Whether the objects belong to an earlier run, named when the run starts. They are only read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub existing: bool,
    /// Buckets that the workload creates for these objects and deletes again; `None` if the objects live in
    /// the target's bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<BucketsPlan>,
}

/// How keys are derived from object indices.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum KeyNaming {
    /// The decimal index: objects written one after another are neighbours in key order.
    #[default]
    Index,
    /// Ten hexadecimal digits of a hash of the index, then the index: keys are spread evenly over the whole
    /// key range.
    Hashed,
    /// As DLIO names files (docs/spec/ai-training.md section 3): `img_0007_of_1024.npz`.
    DlioNpz,
    /// The same with the ending `.tfrecord`.
    DlioTfrecord,
    /// The same with the ending `.jpeg`.
    DlioJpeg,
    /// The same with the ending `.parquet`.
    DlioParquet,
}

impl KeyNaming {
    /// The ending of file names that count up to the number of objects; `None` for other names.
    #[must_use]
    pub const fn file_ending(self) -> Option<&'static str> {
        match self {
            Self::Index | Self::Hashed => None,
            Self::DlioNpz => Some("npz"),
            Self::DlioTfrecord => Some("tfrecord"),
            Self::DlioJpeg => Some("jpeg"),
            Self::DlioParquet => Some("parquet"),
        }
    }
}

/// How sizes are assigned to the objects of a key set.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SizeAssign {
    /// Independent draws.
    Random,
    /// The golden-ratio sequence over popularity rank, `u_r = frac(0.5 + r · 0.6180339887)` for
    /// rank `r` from 0, so that the popularity-weighted law is close to the size law
    /// (docs/spec/scenarios.md section 3.3).
    LowDiscrepancy,
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhasePlan {
    /// Name.
    pub name: String,
    /// What the phase is for.
    pub kind: PhaseKind,
    /// Concurrent streams of operations.
    pub works: Vec<WorkPlan>,
    /// When the phase ends.
    pub limits: Limits,
    /// Whether to detect the steady state and discard the warm-up.
    pub steady_state: bool,
    /// Stops before the time limit once the result is precise enough.
    pub stop: Option<StopRule>,
    /// Additional figures to record, and requirements that the phase must meet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub accounting: Accounting,
}

impl PhasePlan {
    /// A phase that ends with its limits and records the usual figures.
    #[must_use]
    pub fn new(name: &str, kind: PhaseKind, works: Vec<WorkPlan>, limits: Limits) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            works,
            limits,
            steady_state: false,
            stop: None,
            accounting: Accounting::default(),
        }
    }
}

/// Figures that a phase records beyond those of every phase, and requirements that it must meet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Accounting {
    /// Whether to total each closed-loop worker separately, for throughput per stream (docs/spec/scenarios.md
    /// section 10).
    pub streams: bool,
    /// Lower bounds of the size classes after the first, ascending, bytes. Latencies are also recorded per
    /// size class. Empty for no classes.
    pub size_classes: Vec<u64>,
    /// Largest share of failed operations with which the phase still passes; `None` for any.
    pub max_failed: Option<f64>,
    /// Time before the measured window, nanoseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rampup_ns: u64,
    /// Length of the measured window, nanoseconds; 0 = to the end of the phase.
    #[serde(default, skip_serializing_if = "is_default")]
    pub measured_ns: u64,
    /// Whether the measured window is a baseline: no figure takes in operations that ended after it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub baseline: bool,
}

/// What a phase is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseKind {
    /// Create the bucket or prefix and mark it as owned by the run. Has no works.
    Init,
    /// Write the initial objects of key sets.
    Prepare,
    /// Measure.
    Run,
    /// Read and compare every object whose history the consistency oracle kept. Has no works. The presence of
    /// this phase turns the oracle on.
    Audit,
    /// Delete what the run created. Has no works.
    Cleanup,
    /// Wait until its time limit. Has no works.
    Pause,
}

/// When a phase ends: at the first limit reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How long operations are offered, nanoseconds; 0 = no time limit.
    pub duration_ns: u64,
    /// Operations offered, over all works; 0 = no limit.
    pub ops: u64,
    /// Object bytes transferred, over all works; 0 = no limit.
    pub bytes: u64,
    /// How long to wait for in-flight operations after the end, nanoseconds.
    pub drain_ns: u64,
}

/// One stream of operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkPlan {
    /// Name.
    pub name: String,
    /// When operations are due.
    pub model: ModelPlan,
    /// The operations, chosen independently for each sequence number with these weights.
    pub mix: Vec<MixEntry>,
}

/// One kind of operation in a mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixEntry {
    /// What to do.
    pub class: OpClass,
    /// Relative weight among the entries of the mix.
    pub weight: f64,
    /// Index of the key set.
    pub keyset: u16,
    /// Which objects.
    pub keys: KeyLaw,
    /// Sizes written by this entry; `None` for those of the key set.
    pub size: Option<SizeLaw>,
    /// Ranges read, for range-get.
    pub range: Option<RangePlan>,
    /// Delete-many: keys per request. Lists: keys per page. Multipart: part size in bytes. Copy and others:
    /// 0.
    pub count: u64,
    /// Lists: maximum number of pages per operation, 0 = all. Multipart puts: parts to send at the same time, 0 = 1.
    pub pages: u32,
    /// Lists: delimiter, empty for none.
    pub delimiter: String,
}

impl MixEntry {
    /// An entry of weight 1 without options, which writes the sizes of its key set.
    #[must_use]
    pub const fn new(class: OpClass, keyset: u16, keys: KeyLaw) -> Self {
        Self {
            class,
            weight: 1.0,
            keyset,
            keys,
            size: None,
            range: None,
            count: 0,
            pages: 0,
            delimiter: String::new(),
        }
    }
}

/// Ranges of range-get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangePlan {
    /// Law of the length in bytes; ranges are cut at the object's end.
    pub len: SizeLaw,
    /// Offsets are multiples of this many bytes, at least 1.
    pub align: u64,
}

/// Which objects an entry works on. `count` is the key set's number of initial objects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[strum(serialize_all = "kebab-case")]
pub enum KeyLaw {
    /// The object numbered `seq` modulo `count`, regardless of the mix's other entries (delete-many: `seq`
    /// times its keys per request).
    Sequential,
    /// A new object per operation: index `count + seq` (higher if several works write new objects into the
    /// same key set, see [`crate::generate::ops`]).
    Fresh,
    /// Each worker of a closed loop performs the entries of the mix one after another on one object, then
    /// moves on to its next object (see [`crate::generate::ops`]). Either all entries of a mix have this law
    /// or none.
    Chained,
    /// Every object with equal probability.
    Uniform,
    /// P(rank i) ~ i^-theta, ranks mapped to objects by a fixed permutation.
    Zipf {
        /// Exponent, any value > 0.
        theta: f64,
        /// Whether ranks are permuted (else rank 1 is object 0).
        scramble: bool,
    },
    /// P(rank k) ~ (v + k)^-s, k from 0.
    ZipfMandelbrot {
        /// Exponent.
        s: f64,
        /// Shift.
        v: f64,
        /// Whether ranks are permuted.
        scramble: bool,
    },
    /// The newest objects are the most popular: Zipf over age. The newest object is the one with the highest
    /// index written so far by the work's schedule.
    Latest {
        /// Exponent.
        theta: f64,
        /// Number of newest objects to leave out, since they may still be in flight.
        #[serde(default, skip_serializing_if = "is_default")]
        lag: u64,
    },
    /// A share of the objects receives a share of the operations, uniformly within each part.
    Hotspot {
        /// Share of the objects that is hot.
        data: f64,
        /// Share of the operations that goes to hot objects.
        ops: f64,
        /// Whether hot objects are spread by a permutation.
        scramble: bool,
    },
    /// `percentile` of the operations go to a `fraction` of the objects, exponentially.
    Exponential {
        /// Share of operations, such as 0.95.
        percentile: f64,
        /// Share of objects, such as 0.857.
        fraction: f64,
        /// Whether ranks are permuted.
        scramble: bool,
    },
}
