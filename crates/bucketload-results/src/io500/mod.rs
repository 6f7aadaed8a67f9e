//! IO500: its phases, scores and result files (io500-mdworkbench.md, part A).
//!
//! ```text
//!  run directory ─ measure ─► PhaseScore per phase ─ score ─► Scores ─ text ─► result.txt, result_summary.txt
//!  result.txt (ours or IO500's) ─ parse ─► Recorded ─ verify ─► formula and hashes again
//! ```

pub mod csv;
pub mod hash;
pub mod ini;
pub mod measure;
pub mod parse;
pub mod score;
pub mod text;
pub mod verify;

pub use measure::{Report, measure};
pub use score::{PhaseScore, Scores};

/// The version of IO500 whose phases, sizes and orders these are.
pub const IO500_VERSION: &str = "io500-isc26_v2-26";

/// Which mean a phase belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// That of bandwidths, GiB/s.
    Bandwidth,
    /// That of metadata rates, 1000 operations/s.
    Metadata,
    /// None: reported only.
    None,
}

/// What a phase does, and how its score is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Bytes of all ranks over the time from the first start to the last end (IOR).
    Ior,
    /// Items of all ranks over the same time (mdtest).
    Mdtest,
    /// Names seen over the same time (pfind).
    Find,
    /// Nothing: an instant is noted.
    Timestamp,
}

/// A phase.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Its name, which is also that of its section.
    pub name: &'static str,
    /// What it does.
    pub tool: Tool,
    /// Which mean it belongs to.
    pub group: Group,
    /// Whether it writes, and so has to last as long as the stonewall.
    pub writes: bool,
}

const fn phase(name: &'static str, tool: Tool, group: Group, writes: bool) -> Phase {
    Phase {
        name,
        tool,
        group,
        writes,
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

/// The phase called `name`.
#[must_use]
pub fn phase_named(name: &str) -> Option<&'static Phase> {
    PHASES.iter().find(|phase| phase.name == name)
}
