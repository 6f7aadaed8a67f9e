//! A workload as COSBench interprets it: settings inherited, defaults filled in, and special works with their
//! single operation.

use crate::adapter::Adapter;
use crate::config::Config;
use crate::error::Location;
use crate::operation::{OperationKind, Target};

/// A workload file, expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Name.
    pub name: String,
    /// Description; may be empty.
    pub description: String,
    /// Script to run on every driver before and after the workload.
    pub trigger: Option<String>,
    /// Config string of the workload.
    pub config: String,
    /// Config string of the workflow.
    pub workflow_config: String,
    /// Stages, which run one after another.
    pub stages: Vec<Stage>,
}

/// A stage: works that run concurrently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Name.
    pub name: String,
    /// Seconds to wait after the stage; a stage called `delay` only waits.
    pub closure_delay_s: u32,
    /// Script to run before and after the stage.
    pub trigger: Option<String>,
    /// Config string.
    pub config: String,
    /// Works; none for a delay.
    pub works: Vec<Work>,
}

impl Stage {
    /// Whether the stage only waits.
    #[must_use]
    pub fn is_delay(&self) -> bool {
        self.name == "delay" && self.closure_delay_s > 0
    }
}

/// The kind of a work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum WorkKind {
    /// Operations by ratio.
    Normal,
    /// Creates containers.
    Init,
    /// Writes objects.
    Prepare,
    /// Writes objects in parts.
    #[strum(serialize = "mprepare")]
    MultipartPrepare,
    /// Deletes objects.
    Cleanup,
    /// Deletes containers.
    Dispose,
    /// Waits.
    Delay,
}

impl WorkKind {
    /// The kind for the attribute `type`; unknown types are normal.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        name.parse().unwrap_or(Self::Normal)
    }

    /// The value of the attribute `type`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The operation of a special work.
    pub(crate) const fn operation(self) -> Option<OperationKind> {
        match self {
            Self::Normal => None,
            Self::Init => Some(OperationKind::Init),
            Self::Prepare => Some(OperationKind::Prepare),
            Self::MultipartPrepare => Some(OperationKind::MultipartPrepare),
            Self::Cleanup => Some(OperationKind::Cleanup),
            Self::Dispose => Some(OperationKind::Dispose),
            Self::Delay => Some(OperationKind::Delay),
        }
    }
}

/// How workers divide containers and objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Division {
    /// Not at all: every worker uses all containers and objects.
    None,
    /// Each worker has its own containers.
    Container,
    /// Each worker has its own objects.
    Object,
}

impl Division {
    /// The name in workload files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A work: closed-loop workers that draw from the same operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: WorkKind,
    /// Number of workers over all drivers.
    pub workers: u32,
    /// Seconds between snapshots.
    pub interval_s: u32,
    /// How workers divide their range.
    pub division: Division,
    /// Measured seconds; 0 for none.
    pub runtime_s: u32,
    /// Seconds before the measurement; 0 without runtime.
    pub rampup_s: u32,
    /// Seconds after the measurement; 0 without runtime.
    pub rampdown_s: u32,
    /// Operations of all workers; 0 for no limit.
    pub total_ops: u32,
    /// Bytes of all workers; 0 for no limit.
    pub total_bytes: u64,
    /// Acceptable failures per million samples.
    pub afr: u32,
    /// Maximum operations per second; 0 for no limit.
    pub max_iops: u32,
    /// Maximum bytes per second; 0 for no limit.
    pub max_bytes_per_s: u64,
    /// Driver that the work is pinned to.
    pub driver: Option<String>,
    /// Config string of this level.
    pub config: String,
    /// How the work logs in.
    pub auth: ConfiguredAdapter,
    /// The storage that the work uses.
    pub storage: ConfiguredAdapter,
    /// Operations; their ratios add up to 100.
    pub operations: Vec<Operation>,
    /// Location in the file.
    pub location: Location,
}

/// An operation of a work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// `op1`, `op2`, … over all works of a stage.
    pub id: String,
    /// What it does.
    pub kind: OperationKind,
    /// Percentage of the work's operations.
    pub ratio: u32,
    /// How workers divide their range.
    pub division: Division,
    /// The config of all levels, outermost first.
    pub config: Config,
    /// The settings read from the config.
    pub target: Target,
    /// Name in reports.
    pub display_name: String,
    /// Location in the file; for a special work's operation, that of the work.
    pub location: Location,
}

/// A storage or login that a work uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredAdapter {
    /// The adapter.
    pub adapter: &'static Adapter,
    /// Config string.
    pub config: Config,
    /// Location in the file; the default if the element is absent.
    pub location: Location,
}
