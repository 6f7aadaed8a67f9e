//! Values that apply if a workload leaves them unset.

use bucketload_core::op::OpClass;
use bucketload_core::plan::{ArrivalLaw, KeyLaw};

/// Default limit on the bytes of objects in the embedded memory store.
pub const EMBEDDED_MEMORY_BUDGET: u64 = 512 << 20;

/// Seed of every random stream: runs are comparable unless the user requests another schedule.
pub(super) const SEED: u64 = 1;

const SECOND: u64 = 1_000_000_000;

/// Longest duration of an attempt: above any healthy latency, below the common server limit of 60 s.
pub(super) const TIMEOUT_NS: u64 = 30 * SECOND;

/// First and longest pause of the retry policy.
pub(super) const BACKOFF_NS: u64 = SECOND / 10;
pub(super) const MAX_BACKOFF_NS: u64 = 10 * SECOND;

/// Concurrency of preparation: enough to keep a remote store busy.
pub(super) const PREPARE_WORKERS: u32 = 32;

/// Stopping rule of docs/spec/statistics.md section 3.
pub(super) const STOP_WINDOW_NS: u64 = 300 * SECOND;
pub(super) const STOP_HALF_WIDTH: f64 = 0.02;
pub(super) const STOP_QUANTILE: f64 = 0.99;

/// Jobs of docs/spec/scenarios.md section 4.1: arrivals per second, number of jobs whose results are kept,
/// and operations per second within a stage (a stage of 14.5 operations lasts about as long as the embedded
/// server takes for them).
pub(super) const JOB_RATE: f64 = 6.0 / 60.0;
pub(super) const RETAIN_JOBS: u32 = 20;
pub(super) const STAGE_RATE: f64 = 10.0;
/// Limits on jobs and on their operations in flight. They bound memory and are far above intended loads.
pub(super) const MAX_JOBS: u32 = 1000;
pub(super) const JOBS_IN_FLIGHT: u32 = 1024;
/// Jobs that have started are completed: a job of the default scenario takes about ten seconds.
pub(super) const JOBS_DRAIN_NS: u64 = 300 * SECOND;

/// Part size of multipart operations, bytes.
pub(super) const PART_SIZE: u64 = 8 << 20;
/// Keys per page of a list: the maximum of S3.
pub(super) const PAGE_SIZE: u64 = 1000;

/// Limits of S3.
pub(super) const MIN_PART_SIZE: u64 = 5 << 20;
pub(super) const MAX_PART_SIZE: u64 = 5 << 30;
pub(super) const MAX_PARTS: u64 = 10_000;
pub(super) const MAX_SINGLE_PUT: u64 = 5 << 30;
pub(super) const MAX_BATCH: u64 = 1000;
/// `Days` of RestoreObject is an `xs:int` (Amazon S3 API Reference).
pub(super) const MAX_RESTORE_DAYS: u64 = i32::MAX as u64;
/// 100 years (Amazon S3 API Reference, DefaultRetention).
pub(super) const MAX_RETENTION_DAYS: u64 = 36_500;
/// Most versions that are prepared of an object.
pub(super) const MAX_VERSIONS: u32 = 1000;

/// The default key law of each class: reads, appends and touches use all objects, writes create new objects,
/// deletes and renames go through the objects once, lists go through the shards in turn.
pub(super) const fn keys(class: OpClass) -> KeyLaw {
    match class {
        OpClass::Put | OpClass::MultipartPut | OpClass::MultipartAbort => KeyLaw::Fresh,
        OpClass::RangePut | OpClass::Sync | OpClass::LocalWrite => KeyLaw::Fresh,
        class if class.lists() || class.on_bucket() => KeyLaw::Fresh,
        class if class.removes_objects() => KeyLaw::Sequential,
        // With fresh keys a conditional put would never meet another writer.
        _ => KeyLaw::Uniform,
    }
}

/// The same for operations on buckets created by the workload: they go through the buckets in turn.
pub(super) fn bucket_keys(class: OpClass, own_buckets: bool) -> KeyLaw {
    match own_buckets && class.on_bucket() {
        true => KeyLaw::Sequential,
        false => keys(class),
    }
}

/// Default cap on operations in flight: the arrivals of 10 s, so a store may stall that long before the run
/// stops being open, within the limits of sockets and memory.
pub(super) fn max_in_flight(arrival: &ArrivalLaw) -> u32 {
    const SECONDS: f64 = 10.0;
    let arrivals = match arrival {
        ArrivalLaw::Constant { rate }
        | ArrivalLaw::Poisson { rate }
        | ArrivalLaw::LognormalGaps { rate, .. }
        | ArrivalLaw::LognormalRate { rate, .. } => rate * SECONDS,
        ArrivalLaw::Ramp { from, to, .. } => from.max(*to) * SECONDS,
        ArrivalLaw::Steps { rates, .. } => rates.iter().copied().fold(0.0, f64::max) * SECONDS,
        // Three batches, because a tick never waits for the previous one.
        ArrivalLaw::PeriodicBatch { clients, max, .. } => {
            f64::from(*clients) * f64::from(*max) * 3.0
        }
    };
    arrivals.clamp(256.0, 16_384.0) as u32
}
