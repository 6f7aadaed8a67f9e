//! Why a run could not be carried out. Each variant says what to do about it.

use bucketload_core::error::OpError;

/// A run that could not begin or go on. Operations that fail are no error of the run: they are
/// recorded.
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
        /// Operation classes or features that are missing.
        what: String,
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
        /// What was tried.
        step: &'static str,
        /// What the store said.
        error: OpError,
    },
    /// A bucket exists that the workload is to make.
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
        /// What was found there, with an example.
        found: String,
    },
    /// A worker could not open its session before the phase began.
    #[error(
        "a worker could not open its session ({open} others are open on its thread): {error}; \
         use fewer workers, or raise the limits on connections and open files"
    )]
    Session {
        /// Sessions that the same load thread has open.
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
        /// Which thread, in words.
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
    /// Something exists already under the names that the workload states.
    #[error("bucket `{bucket}` {found}")]
    InUse {
        /// Bucket name.
        bucket: String,
        /// What stands in the way.
        found: String,
    },
    /// What was to be done before a measured phase could not be done.
    #[error("{0}")]
    Before(String),
    /// A trace could not be read (further).
    #[error("the trace cannot be replayed: {0}")]
    Trace(#[from] bucketload_core::trace::TraceError),
    /// An object is absent that the trace found, and the replay was to end then.
    #[error(
        "a {class} found no object where the trace found one; the first failures are listed above \
         (on-absent preload creates what must exist, on-absent expect goes on)"
    )]
    Absent {
        /// Class of the operation.
        class: bucketload_core::op::OpClass,
    },
    /// Agents were lost or could not do their part; what they sent is kept.
    #[error("{0}")]
    Agents(String),
    /// Some objects of the run could not be deleted.
    #[error("clean-up of `{bucket}/{prefix}` failed: {error}; what is left there is this run's")]
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
    /// The program's exit code for this error: 2 usage or configuration, 3 target not usable, 4 run
    /// aborted.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Options(_) | Self::Unsupported { .. } | Self::InUse { .. } => 2,
            Self::Unreachable(_)
            | Self::NoBucket { .. }
            | Self::Bucket { .. }
            | Self::BucketExists { .. }
            | Self::Foreign { .. } => 3,
            Self::Session { .. }
            | Self::Thread(_)
            | Self::Panicked { .. }
            | Self::Prepare { .. }
            | Self::Before(_)
            | Self::Trace(_)
            | Self::Absent { .. }
            | Self::Agents(_)
            | Self::Cleanup { .. } => 4,
        }
    }
}
