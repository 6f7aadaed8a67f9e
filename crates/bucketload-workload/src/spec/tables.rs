//! The tables of a workload file. All fields are optional; defaults and checks belong to
//! [`crate::resolve`].

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use super::decode::{Cx, Decode, Fields, spec_table};
use super::jobs::{FactorSpec, JobsSpec, ModelName};
use super::law::{ArrivalSpec, KeySpec, PayloadSpec, SizeSpec, ThinkSpec};
use super::named::Named;
use super::node::{Node, Value};
use super::quantity::{ByteSize, Nanos, PerSecond, Share, Weight};
use bucketload_core::op::OpClass;
use bucketload_core::plan::{BucketService, KeyNaming, SizeAssign};

spec_table! {
    /// A workload: what is done to a store, as a user writes it.
    pub struct WorkloadSpec {
        /// Name of the workload; that of the file unless given.
        pub name: Option<String>,
        /// What the workload is for, in a line or a few.
        pub description: Option<String>,
        /// The profile that applies unless another one is chosen on the command line.
        pub profile: Option<String>,
        /// Name of another benchmark whose published procedure the workload reproduces, such as
        /// "ostorebench". Results are labelled with it and never compared with others.
        pub compat: Option<String>,
        /// Named variants: each is merged into the workload when it is chosen.
        pub profiles: Option<Named<WorkloadSpec>>,
        /// Seed of every random stream; the same seed gives the same operations. 1 unless given.
        pub seed: Option<u64>,
        /// Factor on the object counts of key sets, or "auto" (the default): 1, or what fits into
        /// the memory of the embedded target.
        pub scale: Option<ScaleSpec>,
        /// Factor on all sizes, such as "2^-10"; 1 unless given. It is part of the scenario's
        /// identity: results with different factors are not comparable.
        pub size_scale: Option<FactorSpec>,
        /// Content of objects; "random" unless given.
        pub payload: Option<PayloadSpec>,
        /// Whether every byte read is compared with what was written; false unless given.
        pub verify: Option<bool>,
        /// Whether the consistency oracle judges every answer, and audits all objects at the end;
        /// false unless given. It takes the place of `verify`.
        pub oracle: Option<bool>,
        /// Longest duration of one attempt of an operation; 30s unless given.
        pub timeout: Option<Nanos>,
        /// What to do about failures that may be retried; nothing unless given.
        pub retry: Option<RetrySpec>,
        /// Whether reading an absent object is a failure (the default) or expected.
        pub not_found: Option<NotFound>,
        /// Whether what the run created is left in the store; false unless given.
        pub keep: Option<bool>,
        /// Where the workload runs unless the command line says otherwise.
        pub target: Option<TargetSpec>,
        /// Populations of objects, by name.
        pub keysets: Option<Named<KeysetSpec>>,
        /// Steps of the run, by name, in the order of the file. The names init, prepare and
        /// cleanup are reserved for the steps that Bucketload performs by itself.
        pub phases: Option<Named<PhaseSpec>>,
    }
}

spec_table! {
    /// Retries of one operation. Every attempt is counted.
    pub struct RetrySpec {
        /// Most attempts per operation; 1 means no retry.
        pub attempts: Option<u32>,
        /// Pause before the first retry; doubles with each further one. 100ms unless given.
        pub backoff: Option<Nanos>,
        /// Longest pause; 10s unless given.
        pub max_backoff: Option<Nanos>,
    }
}

spec_table! {
    /// Default target of a workload.
    pub struct TargetSpec {
        /// URL such as "s3://bucket/prefix", "mem:" or "null:".
        pub url: Option<String>,
        /// Endpoint URL of the service, such as "http://127.0.0.1:9000".
        pub endpoint_url: Option<String>,
        /// Client engine; "native" unless given.
        pub engine: Option<String>,
    }
}

spec_table! {
    /// A population of objects whose names and sizes are functions of an index.
    pub struct KeysetSpec {
        /// Key prefix inside the run's own prefix; the name and a slash unless given.
        pub prefix: Option<String>,
        /// Number of key prefixes that keys are spread over; 1 unless given.
        pub shards: Option<u32>,
        /// Objects that exist when the run begins; 0 unless given.
        pub count: Option<u64>,
        /// Law of object sizes.
        pub size: Option<SizeSpec>,
        /// How sizes are assigned to objects: "random" (the default) or "low-discrepancy".
        pub assign: Option<SizeAssign>,
        /// Whether `count` is multiplied by the workload's scale; true unless given.
        pub scaled: Option<bool>,
        /// Whether the objects are written before the run; true unless given. With false a phase
        /// of the workload has to write them.
        pub prepare: Option<bool>,
        /// Prepare objects as multipart uploads with parts of this size.
        pub part_size: Option<ByteSize>,
        /// Whether the objects are those of an earlier run, named on the command line with
        /// --objects-of; they are only read. False unless given.
        pub existing: Option<bool>,
        /// How keys are made: "index" (the default: neighbours in time are neighbours by name) or
        /// "hashed" (ten hexadecimal digits of a hash come first).
        pub naming: Option<KeyNaming>,
        /// The objects lie in buckets that phases of the workload make (make-bucket) and delete again
        /// (delete-bucket). Needs prepare = false.
        pub buckets: Option<BucketsSpec>,
    }
}

spec_table! {
    /// Buckets that the workload makes for a key set. Object i lies in bucket i modulo `count`.
    pub struct BucketsSpec {
        /// Number of buckets; 1 unless given.
        pub count: Option<u64>,
        /// What their names begin with; the run's identifier and a number follow. "bucketload" unless
        /// given.
        pub name: Option<String>,
        /// Whether `name` is the whole name of the one bucket; false unless given.
        pub exact: Option<bool>,
        /// The service whose rules names keep: any (the default), amazon-s3, google-cloud-storage,
        /// azure-blob, swift, minio, riak-cs, s3rver, scality, nimbus-cumulus, s3ninja or fake-s3.
        pub service: Option<BucketService>,
    }
}

spec_table! {
    /// A stream of operations: when they are due and what they do.
    pub struct WorkSpec {
        /// "jobs" for works made of jobs; the other models follow from the fields below.
        pub model: Option<ModelName>,
        /// What jobs consist of, for the model "jobs".
        pub jobs: Option<JobsSpec>,
        /// Closed loop: number of workers, each performing one operation after the other.
        pub workers: Option<u32>,
        /// Closed loop: pause of a worker between operations; none unless given.
        pub think: Option<ThinkSpec>,
        /// Open loop: the arrival process.
        pub arrival: Option<ArrivalSpec>,
        /// Open loop: operations per second; replaces the rate in `arrival`. Alone it means
        /// Poisson arrivals.
        pub rate: Option<PerSecond>,
        /// Open loop: most operations in flight; reaching it marks the run semi-open.
        pub max_in_flight: Option<u32>,
        /// Which operations, with their weights or percentages by request.
        pub mix: Option<Mix>,
        /// Key set of entries of the mix that name none.
        pub keyset: Option<String>,
        /// Law of keys of reading entries of the mix that have none.
        pub keys: Option<KeySpec>,
        /// Sizes of writing entries of the mix that have none; those of the key set unless given.
        pub size: Option<SizeSpec>,
        /// Rounds of writing, listing, deleting and listing again, instead of a mix.
        pub rounds: Option<RoundsSpec>,
    }
}

spec_table! {
    /// Rounds that find out how soon a listing shows what was written and deleted. `workers` write
    /// at the same time.
    pub struct RoundsSpec {
        /// Number of rounds; 200 unless given.
        pub iterations: Option<u32>,
        /// Objects that each worker writes in a round; 50 unless given.
        pub objects: Option<u32>,
        /// Share of the objects that is deleted in a round; 10% unless given.
        pub delete: Option<Share>,
        /// How long to list until the listing is right; 300s unless given.
        pub limit: Option<Nanos>,
    }
}

spec_table! {
    /// One kind of operation in a mix.
    pub struct MixSpec {
        /// The operation; the entry's name unless given.
        pub op: Option<OpClass>,
        /// Relative weight, or percentage, by request. 1 unless given.
        pub weight: Option<Weight>,
        /// Key set it works on.
        pub keyset: Option<String>,
        /// Which objects it works on.
        pub keys: Option<KeySpec>,
        /// Sizes it writes.
        pub size: Option<SizeSpec>,
        /// range-get: lengths of the ranges.
        pub range: Option<SizeSpec>,
        /// range-get: offsets are multiples of this; 1 unless given.
        pub range_align: Option<ByteSize>,
        /// delete-many: keys per request.
        pub batch: Option<u64>,
        /// list: keys per page; 1000 unless given.
        pub page_size: Option<u64>,
        /// list: most pages per operation; 0, the default, for all.
        pub pages: Option<u32>,
        /// list: delimiter; none unless given.
        pub delimiter: Option<String>,
        /// multipart operations: size of a part.
        pub part_size: Option<ByteSize>,
        /// restore: days that the restored copy is kept; 1 unless given.
        pub days: Option<u64>,
    }
}

spec_table! {
    /// When a phase may stop before its limits because its result is precise enough.
    pub struct StopSpec {
        /// Shortest measured window; 5m unless given.
        pub min_window: Option<Nanos>,
        /// Largest half-width of the 95 % confidence interval of the throughput; 2% unless given.
        pub half_width: Option<Share>,
        /// Highest percentile that must rest on at least 100 observations; 0.99 unless given.
        pub quantile: Option<Share>,
    }
}

spec_table! {
    /// When a phase ends and how it is evaluated.
    pub struct PhaseLimits {
        /// Duration of offering operations.
        pub duration: Option<Nanos>,
        /// Operations offered, over all works.
        pub ops: Option<u64>,
        /// Object bytes transferred, over all works.
        pub bytes: Option<ByteSize>,
        /// The phase goes through the objects (for operations on buckets: the buckets) of its key set
        /// once, in order, and ends with the last one. For a closed loop with one operation.
        pub once: Option<bool>,
        /// How long to wait for operations in flight after the end; the timeout unless given.
        pub drain: Option<Nanos>,
        /// Whether the warm-up is detected and cut off; true unless given.
        pub steady_state: Option<bool>,
        /// Stop early when the result is precise enough.
        pub stop: Option<StopSpec>,
        /// Closed loops: whether the work of each worker is summed separately, for throughput as
        /// streams see it; false unless given.
        pub streams: Option<bool>,
        /// Report latencies by size class too: the lower bounds of the classes after the first,
        /// ascending, such as ["1B", "10MiB"] for empty, small and large objects.
        pub size_classes: Option<Vec<ByteSize>>,
        /// Largest share of failed operations with which the phase passes; half of them unless given.
        pub max_failed: Option<Share>,
        /// Several concurrent streams of operations, by name. A phase with only one has its
        /// fields itself.
        pub works: Option<Named<WorkSpec>>,
    }
}

/// A step of the run: its limits and either `works` or the fields of a single work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct PhaseSpec {
    /// When the phase ends.
    #[serde(flatten)]
    pub limits: PhaseLimits,
    /// The single work of the phase.
    #[serde(flatten)]
    pub work: WorkSpec,
}

impl Decode for PhaseSpec {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let table = cx.table(node)?;
        cx.deny_unknown(table, &[PhaseLimits::FIELDS, WorkSpec::FIELDS]);
        Some(Self {
            limits: PhaseLimits::read(table, cx),
            work: WorkSpec::read(table, cx),
        })
    }
}

/// The entries of a mix by name. Short form: `{ get = 70, put = 30 }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mix(pub Named<MixSpec>);

impl Decode for Mix {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        if node.as_table().is_none() {
            cx.mismatch(node, "a mix", "write it such as { get = 70, put = 30 }");
            return None;
        }
        Named::<MixEntry>::decode(node, cx).map(|entries| {
            let entries = entries.0.into_iter().map(|(name, entry)| (name, entry.0));
            Self(Named(entries.collect()))
        })
    }
}

/// An entry of a mix: a weight, or a table.
struct MixEntry(MixSpec);

impl Decode for MixEntry {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        match node.value {
            Value::Table(_) => MixSpec::decode(node, cx).map(Self),
            _ => Weight::decode(node, cx).map(|weight| {
                Self(MixSpec {
                    weight: Some(weight),
                    ..MixSpec::default()
                })
            }),
        }
    }
}

impl Serialize for Mix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl JsonSchema for Mix {
    fn schema_name() -> Cow<'static, str> {
        "Mix".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (weight, entry) = (
            generator.subschema_for::<Weight>(),
            generator.subschema_for::<MixSpec>(),
        );
        schemars::json_schema!({
            "description": "Operations by name, each with a weight or a table",
            "type": "object",
            "propertyNames": { "pattern": "^[A-Za-z0-9_-]{1,64}$" },
            "additionalProperties": { "anyOf": [weight, entry] }
        })
    }
}

/// Factor on the object counts of key sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScaleSpec {
    /// 1, or what fits into the memory of the embedded target.
    Auto,
    /// This factor, above 0.
    Factor(f64),
}

impl Decode for ScaleSpec {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        if node.value == Value::Str("auto".to_owned()) {
            return Some(Self::Auto);
        }
        let factor = f64::decode(node, cx)?;
        if factor > 0.0 {
            Some(Self::Factor(factor))
        } else {
            cx.error(
                &node.origin,
                "the scale must be greater than 0",
                "write \"auto\", 1 for the workload as it stands, or 0.1 for a tenth of its objects",
            );
            None
        }
    }
}

impl Serialize for ScaleSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Factor(factor) => serializer.serialize_f64(*factor),
        }
    }
}

impl JsonSchema for ScaleSpec {
    fn schema_name() -> Cow<'static, str> {
        "Scale".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "anyOf": [{ "const": "auto" }, { "type": "number", "exclusiveMinimum": 0 }]
        })
    }
}

/// What reading an absent object counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotFound {
    /// A failure.
    Failure,
    /// Expected: neither a success nor a failure of the store.
    Expected,
}

impl Decode for NotFound {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        cx.choice(
            node,
            &[("failure", Self::Failure), ("expected", Self::Expected)],
        )
    }
}

impl Decode for SizeAssign {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        cx.choice(
            node,
            &[
                ("random", Self::Random),
                ("low-discrepancy", Self::LowDiscrepancy),
            ],
        )
    }
}

impl Decode for BucketService {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        cx.choice(node, &Self::ALL)
    }
}

impl Decode for KeyNaming {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        cx.choice(node, &[("index", Self::Index), ("hashed", Self::Hashed)])
    }
}

impl Decode for OpClass {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let offered = Self::ALL
            .into_iter()
            .filter(|class| class.is_for_workloads());
        let choices: Vec<_> = offered.map(|class| (class.name(), class)).collect();
        cx.choice(node, &choices)
    }
}
