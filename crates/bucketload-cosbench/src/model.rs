//! A workload as COSBench understands it: everything inherited, every default filled in, special works
//! with their one operation.

use crate::adapter::Adapter;
use crate::config::Config;
use crate::error::Place;
use crate::operation::{OperationKind, Target};

/// A workload file, expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Its description; may be empty.
    pub description: String,
    /// Script to run on every driver before and after it.
    pub trigger: Option<String>,
    /// Config string of the workload.
    pub config: String,
    /// Config string of the workflow.
    pub workflow_config: String,
    /// Its stages, which run one after the other.
    pub stages: Vec<Stage>,
}

/// A stage: works that run at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Seconds to wait after it; for a stage called `delay` all that it does.
    pub closure_delay_s: u32,
    /// Script to run before and after it.
    pub trigger: Option<String>,
    /// Config string.
    pub config: String,
    /// Its works; none for a delay.
    pub works: Vec<Work>,
}

impl Stage {
    /// Whether the stage only waits.
    #[must_use]
    pub fn is_delay(&self) -> bool {
        self.name == "delay" && self.closure_delay_s > 0
    }
}

/// What kind of work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Operations by ratio.
    Normal,
    /// Creates containers.
    Init,
    /// Writes objects.
    Prepare,
    /// Writes objects in parts.
    MultipartPrepare,
    /// Deletes objects.
    Cleanup,
    /// Deletes containers.
    Dispose,
    /// Waits.
    Delay,
}

impl WorkKind {
    /// The kind of the attribute `type`; what is unknown is normal.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "init" => Self::Init,
            "prepare" => Self::Prepare,
            "mprepare" => Self::MultipartPrepare,
            "cleanup" => Self::Cleanup,
            "dispose" => Self::Dispose,
            "delay" => Self::Delay,
            _ => Self::Normal,
        }
    }

    /// Its name in the attribute `type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Init => "init",
            Self::Prepare => "prepare",
            Self::MultipartPrepare => "mprepare",
            Self::Cleanup => "cleanup",
            Self::Dispose => "dispose",
            Self::Delay => "delay",
        }
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

/// How workers divide what they work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// Not at all: every worker uses all containers and objects.
    None,
    /// Each worker has containers of its own.
    Container,
    /// Each worker has objects of its own.
    Object,
}

impl Division {
    /// The division called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::None, Self::Container, Self::Object]
            .into_iter()
            .find(|division| division.name() == name)
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Container => "container",
            Self::Object => "object",
        }
    }
}

/// A work: closed-loop workers that draw from the same operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Its name.
    pub name: String,
    /// What kind it is.
    pub kind: WorkKind,
    /// Number of workers over all drivers.
    pub workers: u32,
    /// Seconds between snapshots.
    pub interval_s: u32,
    /// How workers divide their range.
    pub division: Division,
    /// Measured seconds; 0 for none.
    pub runtime_s: u32,
    /// Seconds before; 0 without runtime.
    pub rampup_s: u32,
    /// Seconds after; 0 without runtime.
    pub rampdown_s: u32,
    /// Operations of all workers; 0 for no limit.
    pub total_ops: u32,
    /// Bytes of all workers; 0 for no limit.
    pub total_bytes: u64,
    /// Acceptable failures per million samples.
    pub afr: u32,
    /// Most operations per second; 0 for no limit.
    pub max_iops: u32,
    /// Most bytes per second; 0 for no limit.
    pub max_bytes_per_s: u64,
    /// Driver that it is pinned to.
    pub driver: Option<String>,
    /// Config string of this level.
    pub config: String,
    /// How it logs in.
    pub auth: Auth,
    /// Where it works.
    pub storage: Storage,
    /// Its operations; ratios sum to 100.
    pub operations: Vec<Operation>,
    /// Where it stands in the file.
    pub place: Place,
}

/// An operation of a work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// `op1`, `op2`, … over all works of a stage.
    pub id: String,
    /// What it does.
    pub kind: OperationKind,
    /// Per cent of the work's operations.
    pub ratio: u32,
    /// How workers divide their range.
    pub division: Division,
    /// The config of all levels, inherited first.
    pub config: Config,
    /// What the config says.
    pub target: Target,
    /// Name in reports.
    pub display_name: String,
    /// Where it stands in the file; that of its work for the operation of a special work.
    pub place: Place,
}

/// Where a work's requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The adapter.
    pub adapter: &'static Adapter,
    /// Its config string.
    pub config: Config,
    /// Where it stands in the file; nowhere when it is not written.
    pub place: Place,
}

/// How a work logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// The adapter.
    pub adapter: &'static Adapter,
    /// Its config string.
    pub config: Config,
    /// Where it stands in the file; nowhere when it is not written.
    pub place: Place,
}
