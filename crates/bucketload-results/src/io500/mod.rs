//! IO500: its phases, scores and result files (docs/spec/io500-mdworkbench.md, part A).
//!
//! ```text
//!  run directory ─ measure ─► PhaseScore per phase ─ score ─► Scores ─ text ─► result.txt, result_summary.txt
//!  result.txt (ours or IO500's) ─ parse ─► Recorded ─ verify ─► recomputed scores and hashes
//! ```

pub mod csv;
pub mod hash;
pub mod ini;
pub mod measure;
pub mod options;
pub mod parse;
pub mod score;
pub mod table;
pub mod text;
pub mod verify;
mod workbench;

pub use measure::{Report, measure};
pub use score::{PhaseScore, Scores};
pub use table::ScoreTable;

/// The version of IO500 that defines these phases, sizes and orders.
pub const IO500_VERSION: &str = "io500-isc26_v2-26";

/// The mean to which a phase contributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The mean of bandwidths, GiB/s.
    Bandwidth,
    /// The mean of metadata rates, 1000 operations/s.
    Metadata,
    /// None: reported only.
    None,
}

/// The tool of a phase, which determines how its score is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Bytes of all ranks over the time from the first start to the last end (IOR).
    Ior,
    /// Items of all ranks over the same time (mdtest).
    Mdtest,
    /// Names seen over the same time (pfind).
    Find,
    /// Operations on the objects of all data sets over the longest rank's time (MD-Workbench).
    Workbench,
    /// Records an instant, nothing else.
    Timestamp,
}

/// A phase.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Its name, also the name of its section.
    pub name: &'static str,
    /// Its tool.
    pub tool: Tool,
    /// The mean to which it contributes.
    pub group: Group,
    /// The mean of the extended score to which it contributes.
    pub extended: Group,
    /// Whether it runs in the extended mode only.
    pub optional: bool,
    /// Whether it writes; then it must last as long as the stonewall.
    pub writes: bool,
}

const fn phase(name: &'static str, tool: Tool, group: Group, writes: bool) -> Phase {
    Phase {
        name,
        tool,
        group,
        extended: group,
        optional: false,
        writes,
    }
}

/// A phase of the extended mode.
const fn optional(name: &'static str, tool: Tool, extended: Group) -> Phase {
    Phase {
        name,
        tool,
        group: Group::None,
        extended,
        optional: true,
        writes: false,
    }
}

/// The phases of the standard mode in order of execution (section A.1).
pub const PHASES: [Phase; 14] = [
    phase("ior-easy-write", Tool::Ior, Group::Bandwidth, true),
    phase("mdtest-easy-write", Tool::Mdtest, Group::Metadata, true),
    phase("timestamp", Tool::Timestamp, Group::None, false),
    phase("ior-hard-write", Tool::Ior, Group::Bandwidth, true),
    phase("mdtest-hard-write", Tool::Mdtest, Group::Metadata, true),
    phase("find", Tool::Find, Group::Metadata, false),
    phase("ior-easy-read", Tool::Ior, Group::Bandwidth, false),
    phase("mdtest-easy-stat", Tool::Mdtest, Group::Metadata, false),
    phase("ior-hard-read", Tool::Ior, Group::Bandwidth, false),
    phase("mdtest-hard-stat", Tool::Mdtest, Group::Metadata, false),
    phase("mdtest-easy-delete", Tool::Mdtest, Group::Metadata, false),
    phase("mdtest-hard-read", Tool::Mdtest, Group::Metadata, false),
    phase("mdtest-hard-delete", Tool::Mdtest, Group::Metadata, false),
    phase("ior-rnd4K-easy-read", Tool::Ior, Group::None, false),
];

/// The phases of the extended mode in order of execution (section A.1).
pub const EXTENDED: [Phase; 19] = [
    PHASES[0],
    PHASES[1],
    optional("mdworkbench-create", Tool::Workbench, Group::None),
    PHASES[2],
    optional("find-easy", Tool::Find, Group::Metadata),
    PHASES[3],
    PHASES[4],
    PHASES[5],
    optional("find-hard", Tool::Find, Group::Metadata),
    optional("mdworkbench-bench", Tool::Workbench, Group::Metadata),
    PHASES[6],
    PHASES[7],
    PHASES[8],
    PHASES[9],
    optional("mdworkbench-delete", Tool::Workbench, Group::None),
    PHASES[10],
    PHASES[11],
    PHASES[12],
    PHASES[13],
];

/// The phases of a mode in order of execution.
#[must_use]
pub const fn phases(extended: bool) -> &'static [Phase] {
    match extended {
        true => &EXTENDED,
        false => &PHASES,
    }
}

/// The phase called `name`.
#[must_use]
pub fn phase_named(name: &str) -> Option<&'static Phase> {
    EXTENDED.iter().find(|phase| phase.name == name)
}
