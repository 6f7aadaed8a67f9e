//! Values that apply when a workload leaves them open.

use bucketload_core::op::OpClass;
use bucketload_core::plan::{ArrivalLaw, KeyLaw};

/// Bytes of objects that the embedded memory store is given by default.
pub const EMBEDDED_MEMORY_BUDGET: u64 = 512 << 20;

/// Seed of every random stream: runs are comparable unless the user asks for another schedule.
pub(super) const SEED: u64 = 1;

const SECOND: u64 = 1_000_000_000;

/// Longest duration of an attempt: above any healthy latency, below common server limits of 60 s.
pub(super) const TIMEOUT_NS: u64 = 30 * SECOND;

/// First and longest pause of a retry policy.
pub(super) const BACKOFF_NS: u64 = SECOND / 10;
pub(super) const MAX_BACKOFF_NS: u64 = 10 * SECOND;

/// Concurrency of preparation: enough to keep a remote store busy.
pub(super) const PREPARE_WORKERS: u32 = 32;

/// Stopping rule of docs/spec/statistics.md section 3.
pub(super) const STOP_WINDOW_NS: u64 = 300 * SECOND;
pub(super) const STOP_HALF_WIDTH: f64 = 0.02;
pub(super) const STOP_QUANTILE: f64 = 0.99;

/// Jobs of docs/spec/scenarios.md section 4.1: arrivals per second, results kept, operations per second within
/// a stage (a stage of 14.5 operations lasts about as long as the embedded server needs for them).
pub(super) const JOB_RATE: f64 = 6.0 / 60.0;
pub(super) const RETAIN_JOBS: u32 = 20;
pub(super) const STAGE_RATE: f64 = 10.0;
/// Caps of jobs and of their operations in flight: bounds of memory, far from what is meant to run.
pub(super) const MAX_JOBS: u32 = 1000;
pub(super) const JOBS_IN_FLIGHT: u32 = 1024;
/// Jobs that have begun are finished: a job of the default scenario lasts some ten seconds.
pub(super) const JOBS_DRAIN_NS: u64 = 300 * SECOND;

/// Part size of multipart operations, bytes.
pub(super) const PART_SIZE: u64 = 8 << 20;
/// Keys per page of a list: the most that S3 gives.
pub(super) const PAGE_SIZE: u64 = 1000;

/// Limits of S3.
pub(super) const MIN_PART_SIZE: u64 = 5 << 20;
pub(super) const MAX_PART_SIZE: u64 = 5 << 30;
pub(super) const MAX_PARTS: u64 = 10_000;
pub(super) const MAX_SINGLE_PUT: u64 = 5 << 30;
pub(super) const MAX_BATCH: u64 = 1000;
/// `Days` of RestoreObject is an `xs:int` (Amazon S3 API Reference).
pub(super) const MAX_RESTORE_DAYS: u64 = i32::MAX as u64;

/// Which objects an operation works on unless the workload says so: reads, appends and touches go everywhere,
/// writes make new objects, deletes and renames go through the objects once, lists through the shards in turn.
pub(super) const fn keys(class: OpClass) -> KeyLaw {
    match class {
        OpClass::Put
        | OpClass::MultipartPut
        | OpClass::MultipartAbort
        | OpClass::List
        | OpClass::ListV1
        | OpClass::ListUploads
        | OpClass::MakeBucket
        | OpClass::HeadBucket
        | OpClass::DeleteBucket
        | OpClass::ListBuckets
        | OpClass::RangePut
        | OpClass::Sync
        | OpClass::LocalWrite => KeyLaw::Fresh,
        OpClass::Delete | OpClass::DeleteMany | OpClass::Rename => KeyLaw::Sequential,
        OpClass::Get
        | OpClass::RangeGet
        | OpClass::Head
        | OpClass::Append
        | OpClass::Touch
        | OpClass::Copy
        | OpClass::MultipartCopy
        | OpClass::PutTagging
        | OpClass::GetTagging
        | OpClass::Restore
        // Fresh keys never meet another writer.
        | OpClass::PutIfAbsent
        | OpClass::DeleteTagging => KeyLaw::Uniform,
    }
}

/// The same for operations on buckets that the workload makes: through the buckets in turn.
pub(super) fn bucket_keys(class: OpClass, own: bool) -> KeyLaw {
    match own && class.on_bucket() {
        true => KeyLaw::Sequential,
        false => keys(class),
    }
}

/// Cap on operations in flight: what arrives in 10 s, so that a store may stall that long before
/// the run stops being open, within what sockets and memory allow.
pub(super) fn max_in_flight(arrival: &ArrivalLaw) -> u32 {
    const SECONDS: f64 = 10.0;
    let arrivals = match arrival {
        ArrivalLaw::Constant { rate }
        | ArrivalLaw::Poisson { rate }
        | ArrivalLaw::LognormalGaps { rate, .. }
        | ArrivalLaw::LognormalRate { rate, .. } => rate * SECONDS,
        ArrivalLaw::Ramp { from, to, .. } => from.max(*to) * SECONDS,
        ArrivalLaw::Steps { rates, .. } => rates.iter().copied().fold(0.0, f64::max) * SECONDS,
        // Three batches, since a tick never waits for the previous one.
        ArrivalLaw::PeriodicBatch { clients, max, .. } => {
            f64::from(*clients) * f64::from(*max) * 3.0
        }
    };
    arrivals.clamp(256.0, 16_384.0) as u32
}
