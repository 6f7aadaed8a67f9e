//! Errors of a run. Each message says what to do about it.

use bucketload_core::error::{ErrorKind, OpError};

/// Why a run could not begin or go on. Failed operations are recorded and are no error of the run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The options contradict each other or the plan.
    #[error("{0}")]
    Options(String),
    /// The driver cannot do what the plan asks for.
    #[error("the {driver} driver cannot perform {what}; choose another driver or workload")]
    Unsupported {
        /// Driver name.
        driver: String,
        /// The missing operation classes or features.
        what: String,
    },
    /// The store is known not to perform an operation of the plan.
    #[error("the workload needs {class}, which the store does not perform: {why}")]
    Refused {
        /// Class of the operation.
        class: bucketload_core::op::OpClass,
        /// Where that is written, and what the store said.
        why: String,
    },
    /// The store does not obey the conditions of writes.
    #[error("the workload writes on conditions, which the store does not obey: {why}")]
    Unconditional {
        /// What the store did.
        why: String,
    },
    /// No session could be opened to check the target.
    #[error("cannot reach the target: {0}")]
    Unreachable(OpError),
    /// The bucket does not exist and the run may not create it.
    #[error("bucket `{bucket}` does not exist; create it, or allow the run to create it")]
    NoBucket {
        /// Bucket name.
        bucket: String,
    },
    /// The bucket exists but cannot be used.
    #[error("bucket `{bucket}` is not usable ({step}): {error}")]
    Bucket {
        /// Bucket name.
        bucket: String,
        /// The step that failed.
        step: &'static str,
        /// What the store said.
        error: OpError,
    },
    /// A bucket that the workload would make exists already.
    #[error(
        "bucket `{bucket}` exists already, so this run cannot make it; choose another name for the \
         workload's buckets, or remove that one"
    )]
    BucketExists {
        /// Bucket name.
        bucket: String,
    },
    /// The prefix holds objects that this run did not write.
    #[error("`{bucket}/{prefix}` already holds {found}; choose another prefix or remove them")]
    Foreign {
        /// Bucket name.
        bucket: String,
        /// The run's prefix.
        prefix: String,
        /// What is there, with an example.
        found: String,
    },
    /// A worker could not open its session before the phase began.
    #[error(
        "a worker could not open its session ({open} others are open on its thread): {error}; \
         use fewer workers, or raise the limits on connections and open files"
    )]
    Session {
        /// Open sessions of the same load thread.
        open: u64,
        /// What the driver said.
        error: OpError,
    },
    /// A load thread could not be set up.
    #[error("cannot set up a load thread: {0}")]
    Thread(#[source] std::io::Error),
    /// A thread panicked: a defect in this program or in a driver.
    #[error("{thread} panicked: {message}")]
    Panicked {
        /// Name of the thread.
        thread: String,
        /// The panic's message.
        message: String,
    },
    /// Too many of the initial objects could not be written.
    #[error(
        "preparation failed: {failed} of {all} objects could not be written (at most 1 % may \
         fail); the first failures are listed above"
    )]
    Prepare {
        /// Writes that failed.
        failed: u64,
        /// Writes that ended.
        all: u64,
    },
    /// Objects of a kept data set are missing or differ from what was prepared.
    #[error(
        "{wrong} of {read} objects that were read are not as they were prepared ({named}); \
         prepare a new data set, or find out what changed this one"
    )]
    Altered {
        /// Objects that are missing, differ or could not be read.
        wrong: u64,
        /// Objects that were read.
        read: u64,
        /// The first of them, with the reasons.
        named: String,
    },
    /// Another session took the data set over that this one prepared.
    #[error(
        "{holder} prepares the data set now, because the journal showed no sign of life of this session for a while; what \
         this session had entered stays in the journal"
    )]
    TakenOver {
        /// The other session.
        holder: String,
    },
    /// Something exists already under the names that the workload uses.
    #[error("bucket `{bucket}` {found}")]
    InUse {
        /// Bucket name.
        bucket: String,
        /// Why the bucket may not be changed.
        found: String,
    },
    /// The hook before a measured phase failed.
    #[error("{0}")]
    Before(String),
    /// A trace could not be read.
    #[error("the trace cannot be replayed: {0}")]
    Trace(#[from] bucketload_core::trace::TraceError),
    /// An object that existed when the trace was recorded is missing, and the replay is to end in that case.
    #[error(
        "a {class} found no object where the trace found one; the first failures are listed above \
         (on-absent preload creates what must exist, on-absent expect goes on)"
    )]
    Absent {
        /// Class of the operation.
        class: bucketload_core::op::OpClass,
    },
    /// Agents were lost or could not do their part. The results that they sent are kept.
    #[error("{0}")]
    Agents(String),
    /// Some objects of the run could not be deleted.
    #[error(
        "clean-up of `{bucket}/{prefix}` failed: {error}; the objects left there belong to this run"
    )]
    Cleanup {
        /// Bucket name.
        bucket: String,
        /// The run's prefix.
        prefix: String,
        /// What the store said.
        error: OpError,
    },
}

impl RunError {
    /// The error when `step` failed on bucket `bucket`: the target is unreachable, or the bucket not usable.
    pub(crate) fn of_bucket(bucket: &str, step: &'static str, error: OpError) -> Self {
        match error.kind {
            ErrorKind::Connect | ErrorKind::Tls | ErrorKind::Timeout => Self::Unreachable(error),
            _ => Self::Bucket {
                bucket: bucket.to_owned(),
                step,
                error,
            },
        }
    }

    /// The program's exit code for this error: 2 usage or configuration, 3 target not usable, 4 run
    /// aborted.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Options(_)
            | Self::Unsupported { .. }
            | Self::Refused { .. }
            | Self::InUse { .. } => 2,
            Self::Unreachable(_)
            | Self::Unconditional { .. }
            | Self::NoBucket { .. }
            | Self::Bucket { .. }
            | Self::BucketExists { .. }
            | Self::Foreign { .. } => 3,
            Self::Session { .. }
            | Self::Thread(_)
            | Self::Panicked { .. }
            | Self::Prepare { .. }
            | Self::Altered { .. }
            | Self::TakenOver { .. }
            | Self::Before(_)
            | Self::Trace(_)
            | Self::Absent { .. }
            | Self::Agents(_)
            | Self::Cleanup { .. } => 4,
        }
    }
}
