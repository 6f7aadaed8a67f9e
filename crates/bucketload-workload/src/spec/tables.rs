//! The tables of a workload file. All fields are optional; [`crate::resolve`] applies defaults and checks.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::checkpoint::CheckpointSpec;
use super::decode::{Cx, Decode, Fields, decode_variants, spec_table};
use super::drill::{DrillSpec, FaultSpec};
use super::jobs::{FactorSpec, JobsSpec, ModelName};
use super::kvcache::KvcacheSpec;
use super::law::{ArrivalSpec, KeySpec, PayloadSpec, SizeSpec, ThinkSpec};
use super::named::Named;
use super::node::{Node, Value};
use super::quantity::{ByteSize, Nanos, PerSecond, Share, Weight};
use super::train::TrainSpec;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{BucketService, KeyNaming, SizeAssign};

spec_table! {
    /// A workload: the operations to perform on a store, as written by a user.
    pub struct WorkloadSpec {
        /// Name of the workload. Default: the name of the file.
        pub name: Option<String>,
        /// The purpose of the workload, in one or a few lines.
        pub description: Option<String>,
        /// The profile to use unless the command line selects another one.
        pub profile: Option<String>,
        /// Name of another benchmark whose published procedure the workload reproduces, such as
        /// "ostorebench". Results carry this label and are never compared with others.
        pub compat: Option<String>,
        /// Named variants; the selected one is merged into the workload.
        pub profiles: Option<Named<WorkloadSpec>>,
        /// Seed of every random stream; the same seed gives the same operations. Default: 1.
        pub seed: Option<u64>,
        /// Factor on the object counts of key sets, or "auto" (the default): 1, or lower if the objects would
        /// not fit into the memory of the embedded target.
        pub scale: Option<ScaleSpec>,
        /// Factor on all sizes, such as "2^-10". Default: 1. The factor is part of the scenario's identity:
        /// results with different factors are not comparable.
        pub size_scale: Option<FactorSpec>,
        /// Content of objects. Default: "random".
        pub payload: Option<PayloadSpec>,
        /// Whether to compare every byte read with the bytes written. Default: false.
        pub verify: Option<bool>,
        /// Whether the consistency oracle checks every answer and audits all objects at the end. Default:
        /// false. Replaces `verify`.
        pub oracle: Option<bool>,
        /// Longest duration of one attempt of an operation. Default: 30s.
        pub timeout: Option<Nanos>,
        /// How to retry failed operations. Default: no retries.
        pub retry: Option<RetrySpec>,
        /// Whether reading an absent object is a failure (the default) or expected.
        pub not_found: Option<NotFound>,
        /// Whether to leave the objects created by the run in the store. Default: false.
        pub keep: Option<bool>,
        /// The target to use unless the command line names another one.
        pub target: Option<TargetSpec>,
        /// Populations of objects, by name.
        pub keysets: Option<Named<KeysetSpec>>,
        /// Steps of the run, by name, in file order. The names init, prepare and cleanup are reserved for
        /// steps that Bucketload itself performs.
        pub phases: Option<Named<PhaseSpec>>,
        /// The stages of a drill; only `bucketload drill` runs workloads with faults.
        pub drill: Option<DrillSpec>,
        /// What breaks during a drill.
        pub fault: Option<Vec<FaultSpec>>,
        /// Checkpoints of a language model, in place of key sets and phases.
        pub checkpoint: Option<CheckpointSpec>,
    }
}

spec_table! {
    /// Retries of one operation. Every attempt is counted.
    pub struct RetrySpec {
        /// Maximum number of attempts per operation; 1 means no retry.
        pub attempts: Option<u32>,
        /// Pause before the first retry; doubles with each further retry. Default: 100ms.
        pub backoff: Option<Nanos>,
        /// Longest pause. Default: 10s.
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
        /// Client engine. Default: "native".
        pub engine: Option<String>,
    }
}

spec_table! {
    /// A population of objects whose names and sizes are functions of an index.
    pub struct KeysetSpec {
        /// Key prefix below the run's prefix. Default: the name and a slash.
        pub prefix: Option<String>,
        /// Number of key prefixes that keys are spread over. Default: 1.
        pub shards: Option<u32>,
        /// Number of objects that exist when the run starts. Default: 0.
        pub count: Option<u64>,
        /// Size law of the objects.
        pub size: Option<SizeSpec>,
        /// How sizes are assigned to objects: "random" (the default) or "low-discrepancy".
        pub assign: Option<SizeAssign>,
        /// Whether the workload's scale multiplies `count`. Default: true.
        pub scaled: Option<bool>,
        /// Whether to write the objects before the run. Default: true. With false, a phase of the workload
        /// must write them.
        pub prepare: Option<bool>,
        /// Number of versions that preparation writes of each object, in a bucket that keeps versions; get-version and
        /// delete-version choose among the newest `versions` of an object. Default: 1.
        pub versions: Option<u32>,
        /// Prepare objects as multipart uploads with this part size.
        pub part_size: Option<ByteSize>,
        /// Whether the objects belong to an earlier run, named on the command line with --objects-of. They
        /// are only read. Default: false.
        pub existing: Option<bool>,
        /// How keys are built: "index" (the default: objects written one after another are neighbours in key
        /// order) or "hashed" (keys start with ten hexadecimal digits of a hash).
        pub naming: Option<KeyNaming>,
        /// The objects live in buckets that phases of the workload create (make-bucket) and delete
        /// (delete-bucket). Requires prepare = false.
        pub buckets: Option<BucketsSpec>,
    }
}

spec_table! {
    /// Buckets that the workload creates for a key set. Object i lives in bucket i modulo `count`.
    pub struct BucketsSpec {
        /// Number of buckets. Default: 1.
        pub count: Option<u64>,
        /// What bucket names begin with; the run's identifier and a number follow. Default: "bucketload".
        pub name: Option<String>,
        /// Whether `name` is the whole name of a single bucket. Default: false.
        pub exact: Option<bool>,
        /// The service whose naming rules apply: any (the default), amazon-s3, google-cloud-storage,
        /// azure-blob, swift, minio, riak-cs, s3rver, scality, nimbus-cumulus, s3ninja or fake-s3.
        pub service: Option<BucketService>,
    }
}

spec_table! {
    /// A stream of operations: when they are due and what they do.
    pub struct WorkSpec {
        /// "jobs" for works that consist of jobs; the other models follow from the fields below.
        pub model: Option<ModelName>,
        /// The structure of a job, for the model "jobs".
        pub jobs: Option<JobsSpec>,
        /// Closed loop: number of workers, each performing one operation after another.
        pub workers: Option<u32>,
        /// Closed loop: a worker's pause between operations. Default: none.
        pub think: Option<ThinkSpec>,
        /// Open loop: the arrival process.
        pub arrival: Option<ArrivalSpec>,
        /// Open loop: operations per second; replaces the rate in `arrival`. Without `arrival` it means
        /// Poisson arrivals.
        pub rate: Option<PerSecond>,
        /// Open loop: maximum number of operations in flight; reaching it marks the run semi-open.
        pub max_in_flight: Option<u32>,
        /// The operations, with weights or percentages by number of requests.
        pub mix: Option<Mix>,
        /// Key set of mix entries that name none.
        pub keyset: Option<String>,
        /// Key law of reading mix entries that have none.
        pub keys: Option<KeySpec>,
        /// Sizes for writing mix entries that have none. Default: the sizes of the key set.
        pub size: Option<SizeSpec>,
        /// Rounds of writing, listing, deleting and listing again, instead of a mix.
        pub rounds: Option<RoundsSpec>,
        /// Accelerators that train on the objects of a key set, instead of a mix.
        pub train: Option<TrainSpec>,
        /// Users of a language model whose cache is in the store, instead of a mix.
        pub kvcache: Option<KvcacheSpec>,
    }
}

spec_table! {
    /// Rounds that measure how soon a listing reflects writes and deletes. `workers` write concurrently.
    pub struct RoundsSpec {
        /// Number of rounds. Default: 200.
        pub iterations: Option<u32>,
        /// Number of objects that each worker writes per round. Default: 50.
        pub objects: Option<u32>,
        /// Share of the objects to delete in a round. Default: 10%.
        pub delete: Option<Share>,
        /// How long to list until the listing is correct. Default: 300s.
        pub limit: Option<Nanos>,
    }
}

spec_table! {
    /// One kind of operation in a mix.
    pub struct MixSpec {
        /// The operation. Default: the entry's name.
        pub op: Option<OpClass>,
        /// Relative weight, or percentage, by number of requests. Default: 1.
        pub weight: Option<Weight>,
        /// Key set that the operation uses.
        pub keyset: Option<String>,
        /// How the operation chooses objects.
        pub keys: Option<KeySpec>,
        /// Sizes to write.
        pub size: Option<SizeSpec>,
        /// range-get: lengths of the ranges.
        pub range: Option<SizeSpec>,
        /// range-get: offsets are multiples of this. Default: 1.
        pub range_align: Option<ByteSize>,
        /// delete-many: keys per request.
        pub batch: Option<u64>,
        /// list: keys per page. Default: 1000.
        pub page_size: Option<u64>,
        /// list: maximum number of pages per operation. Default: 0, for all; for list-versions 1.
        pub pages: Option<u32>,
        /// list: delimiter. Default: none.
        pub delimiter: Option<String>,
        /// multipart operations: size of a part.
        pub part_size: Option<ByteSize>,
        /// restore: days to keep the restored copy; put-retention: days to retain the object. Default: 1.
        pub days: Option<u64>,
    }
}

spec_table! {
    /// Lets a phase stop before its limits once its result is precise enough.
    pub struct StopSpec {
        /// Minimum length of the measured window. Default: 5m.
        pub min_window: Option<Nanos>,
        /// Largest half-width of the throughput's 95 % confidence interval. Default: 2%.
        pub half_width: Option<Share>,
        /// Highest percentile that needs at least 100 observations beyond it. Default: 0.99.
        pub quantile: Option<Share>,
    }
}

spec_table! {
    /// When a phase ends and how it is evaluated.
    pub struct PhaseLimits {
        /// How long operations are offered.
        pub duration: Option<Nanos>,
        /// Number of operations offered, over all works.
        pub ops: Option<u64>,
        /// Object bytes transferred, over all works.
        pub bytes: Option<ByteSize>,
        /// Go through the objects of the key set (for bucket operations: through its buckets) once, in order,
        /// and end with the last one. For a closed loop with one operation.
        pub once: Option<bool>,
        /// How long to wait for in-flight operations after the end. Default: the timeout.
        pub drain: Option<Nanos>,
        /// Whether to detect the warm-up and exclude it. Default: true.
        pub steady_state: Option<bool>,
        /// Stop early once the result is precise enough.
        pub stop: Option<StopSpec>,
        /// Closed loops: whether to total each worker separately, for throughput per stream. Default: false.
        pub streams: Option<bool>,
        /// Also report latencies by size class: the lower bounds of the classes after the first, ascending,
        /// such as ["1B", "10MiB"] for empty, small and large objects.
        pub size_classes: Option<Vec<ByteSize>>,
        /// Largest share of failed operations with which the phase still passes. Default: half.
        pub max_failed: Option<Share>,
        /// Several concurrent streams of operations, by name. A phase with a single stream has its fields
        /// directly.
        pub works: Option<Named<WorkSpec>>,
    }
}

/// A step of the run: its limits and either `works` or the fields of a single work.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
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
    /// 1, or lower if the objects would not fit into the memory of the embedded target.
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
                "write \"auto\", 1 for the workload as written, or 0.1 for a tenth of its objects",
            );
            None
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

/// How reading an absent object counts.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, JsonSchema, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum NotFound {
    /// A failure.
    Failure,
    /// Expected: neither a success nor a failure of the store.
    Expected,
}

decode_variants!(NotFound, SizeAssign, BucketService, KeyNaming);

impl Decode for OpClass {
    fn decode(node: &Node, cx: &mut Cx<'_>) -> Option<Self> {
        let offered = Self::ALL
            .into_iter()
            .filter(|class| class.is_for_workloads());
        let choices: Vec<_> = offered.map(|class| (class.name(), class)).collect();
        cx.choice(node, &choices)
    }
}
