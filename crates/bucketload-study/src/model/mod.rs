//! The types that the parts of a study share: the request ([`Study`]), the work to do ([`Plan`] of [`Cell`]s), the
//! events ([`JournalLine`]) and the targets ([`TargetFacts`]). All of them are files in the study's directory (see
//! [`crate::layout`]); readers of the directory need nothing else.

mod view;

use std::collections::BTreeMap;

use bucketload_core::ai::{AiApplication, AiFigure};
use bucketload_workload::spec::BUILTIN_WORKLOADS;
use serde::{Deserialize, Serialize};

pub use bucketload_results::result::metric::Metric;
pub use view::{Figure, FigureKind, Table, TableKind, View};

/// Declares an enumeration with the names that studies use for its variants.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident => $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name as written in a study.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}
use named;

/// Version of the files.
pub const SCHEMA: u32 = 1;

/// Repetitions below which no confidence interval is computed.
pub const MIN_FOR_INTERVAL: u32 = 3;

/// A study as resolved: `[quick]` is applied, targets are chosen. `study.toml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Study {
    /// Its name, of letters, digits and dashes.
    pub name: String,
    /// Headline.
    pub title: String,
    /// Its purpose, in a sentence or two.
    #[serde(default)]
    pub description: String,
    /// The work that it repeats: authors, title, publication; empty for none.
    #[serde(default)]
    pub source: String,
    /// Name of the set of published values that the report shows next to ours; empty for none.
    #[serde(default)]
    pub published: String,
    /// Whether the values of `[quick]` were applied.
    #[serde(default)]
    pub quick: bool,
    /// Seed of the order and of the runs.
    pub seed: u64,
    /// Order of the cells inside a block.
    pub order: Order,
    /// Repetitions of each cell, unless the experiment says otherwise.
    pub repetitions: u32,
    /// Pause before each cell, nanoseconds.
    pub recovery_ns: u64,
    /// Longest further wait for the machine to become idle before a cell, nanoseconds; 0 for none.
    pub settle_ns: u64,
    /// Name of the target that multiples refer to; empty for the first.
    #[serde(default)]
    pub baseline: String,
    /// Script in `servers/` that installs engine programs (`cli:mc`) missing on the PATH; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub programs: String,
    /// The targets of the load.
    #[serde(rename = "target")]
    pub targets: Vec<Target>,
    /// The measurements.
    #[serde(rename = "experiment")]
    pub experiments: Vec<Experiment>,
}

/// Order of the cells inside a block. A block is one repetition of everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Randomised complete blocks: targets in random order, each with its cells in random order.
    #[default]
    Random,
    /// One random order, alternating forwards and backwards (A B B A).
    Abba,
}

/// A store and its address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Target {
    /// Its name in tables, figures and files.
    pub name: String,
    /// Display name; empty for `name`.
    #[serde(default)]
    pub title: String,
    /// Value of `--target`; `{dir}` stands for a directory of the study. Empty with `server`.
    #[serde(default)]
    pub url: String,
    /// Value of `--endpoint-url`; empty for none.
    #[serde(default)]
    pub endpoint: String,
    /// Script in `servers/` that starts the store, or a server of this program; empty for none.
    #[serde(default)]
    pub server: String,
    /// API through which a server is used (`s3`, `swift`); empty for S3.
    #[serde(default)]
    pub api: String,
    /// A proxy in front of the server: `nginx`; empty for none.
    #[serde(default)]
    pub proxy: String,
    /// Whether the proxy caches responses.
    #[serde(default)]
    pub proxy_cache: bool,
    /// A required program; without it the target is skipped with a reason.
    #[serde(default)]
    pub requires: String,
    /// Settings of the server: environment variables of its script.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Further options of each command on this target, without dashes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: Options,
}

impl Target {
    /// The display name.
    #[must_use]
    pub fn label(&self) -> &str {
        if self.title.is_empty() {
            &self.name
        } else {
            &self.title
        }
    }
}

/// Options of a command: name without dashes, and value.
pub type Options = BTreeMap<String, OptionValue>;

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OptionValue {
    /// A switch: given (`true`) or not.
    Switch(bool),
    /// A whole number.
    Number(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// The option is given several times.
    Several(Vec<String>),
}

named! {
    /// The command that a cell runs.
    #[derive(Default)]
    Command {
        /// `run WORKLOAD`: the cell is a run directory.
        #[default]
        Run => "run",
        /// `capacity WORKLOAD --slo …`: a capacity search.
        Capacity => "capacity",
        /// `io500`: a run directory with IO500's files.
        Io500 => "io500",
        /// `md-workbench`: a run directory with an operation log.
        MdWorkbench => "md-workbench",
        /// `study-grid`: a grid of files, sizes and processes.
        StudyGrid => "study-grid",
        /// `s3-hpc`: the access paths to the objects of a directory.
        S3Hpc => "s3-hpc",
        /// `train`: a run directory with the steps of accelerators.
        Train => "train",
        /// `checkpoint`: a run directory with the ranks of checkpoints.
        Checkpoint => "checkpoint",
        /// `kvcache`: a run directory with the requests of a cache; the workload is a trace.
        Kvcache => "kvcache",
    }
}

impl Command {
    /// True if it takes a workload.
    #[must_use]
    pub const fn takes_workload(self) -> bool {
        matches!(self, Self::Run | Self::Capacity | Self::Kvcache)
    }

    /// True if it is a run whose answer has a verdict.
    #[must_use]
    pub const fn is_run(self) -> bool {
        self.is_ai() || matches!(self, Self::Run)
    }

    /// True if it has a table of MLPerf's.
    #[must_use]
    pub const fn is_ai(self) -> bool {
        matches!(self, Self::Train | Self::Checkpoint | Self::Kvcache)
    }

    /// Whether its runs of `workload` can have a figure of training, checkpoints or a cache.
    #[must_use]
    pub fn may_have(self, figure: AiFigure, workload: &str) -> bool {
        let is_builtin = BUILTIN_WORKLOADS.iter().any(|(name, _)| *name == workload);
        match figure.application() {
            _ if self == Self::Run => !is_builtin,
            AiApplication::Training => self == Self::Train,
            AiApplication::Writing | AiApplication::Reading => self == Self::Checkpoint,
            AiApplication::Cache => self == Self::Kvcache,
        }
    }

    /// True if it takes the options of a target.
    #[must_use]
    pub const fn takes_target(self) -> bool {
        !matches!(self, Self::S3Hpc)
    }
}

/// A matrix: targets x values of one field x repetitions, and the figures and tables of its report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Experiment {
    /// Its name, of letters, digits and dashes.
    pub name: String,
    /// Headline; empty for `name`.
    #[serde(default)]
    pub title: String,
    /// Its question and method.
    #[serde(default)]
    pub description: String,
    /// The command of each cell.
    #[serde(default)]
    pub command: Command,
    /// Built-in workload or file; empty if the command takes none.
    #[serde(default)]
    pub workload: String,
    /// Names of the targets; empty for all.
    #[serde(default)]
    pub targets: Vec<String>,
    /// The field that is swept: an option of the command without dashes, or a path of the workload;
    /// empty for none.
    #[serde(default)]
    pub field: String,
    /// Its values.
    #[serde(default)]
    pub values: Vec<String>,
    /// Repetitions of each cell; 0 for the study's.
    #[serde(default)]
    pub repetitions: u32,
    /// Expected duration of one cell, nanoseconds; 0 to derive it from the workload.
    #[serde(default)]
    pub estimate_ns: u64,
    /// Further options of the command.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: Options,
    /// Options for single values of the field; they override the others one by one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub value_options: BTreeMap<String, Options>,
    /// Figures of the report.
    #[serde(default, rename = "figure", skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// Tables of the report.
    #[serde(default, rename = "table", skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Table>,
}

impl Experiment {
    /// The headline.
    #[must_use]
    pub fn label(&self) -> &str {
        if self.title.is_empty() {
            &self.name
        } else {
            &self.title
        }
    }

    /// True if the report shows how the load was spread over the data nodes. Each run must then log its operations,
    /// and the store must be asked for the placement of its objects.
    #[must_use]
    pub fn shows_balance(&self) -> bool {
        let figure = |figure: &Figure| figure.kind == FigureKind::LoadBalance;
        let table = |table: &Table| table.kind == TableKind::LoadBalance;
        self.command == Command::Run
            && (self.figures.iter().any(figure) || self.tables.iter().any(table))
    }
}

/// The work to do, in order. `plan.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of the format, [`SCHEMA`].
    pub schema: u32,
    /// Name of the study.
    pub study: String,
    /// Version of the program that planned it.
    pub version: String,
    /// Seed of the order.
    pub seed: u64,
    /// Order of the cells.
    pub order: Order,
    /// Time budget, nanoseconds; `None` without one.
    pub budget_ns: Option<u64>,
    /// Expected duration of everything, pauses included, nanoseconds.
    pub estimate_ns: u64,
    /// Decisions of the planning with reasons, as sentences for the methods.
    pub notes: Vec<String>,
    /// The cells in the order of execution.
    pub cells: Vec<Cell>,
}

/// One measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Identifier and name of its directory: position, experiment, target, value, repetition.
    pub id: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the target.
    pub target: String,
    /// Its command.
    pub command: Command,
    /// Workload; empty if the command takes none.
    pub workload: String,
    /// The swept field; empty for none.
    pub field: String,
    /// Its value; empty for none.
    pub value: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Number of its block, from 1. A block is one repetition of everything.
    pub block: u32,
    /// Arguments after the command's name, without those of the target and without `--out`.
    pub args: Vec<String>,
    /// Expected duration without pauses, nanoseconds.
    pub estimate_ns: u64,
}

/// A line of `journal.jsonl`. Instants are nanoseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum JournalLine {
    /// The program started or resumed the study.
    Session {
        /// When.
        at_unix_ns: u64,
        /// Version of the program.
        version: String,
        /// Its command line, without secrets.
        command_line: Vec<String>,
    },
    /// A target is ready.
    Ready {
        /// When.
        at_unix_ns: u64,
        /// Its name.
        target: String,
        /// Duration of its start, nanoseconds; 0 if nothing was started.
        took_ns: u64,
    },
    /// A cell starts.
    Started {
        /// When.
        at_unix_ns: u64,
        /// The cell.
        cell: String,
        /// Its directory below the study's.
        dir: String,
        /// Pause before it, nanoseconds.
        pause_ns: u64,
        /// Share of the machine's processors that were busy at the end of the pause.
        busy: Option<f64>,
    },
    /// A cell was measured.
    Finished {
        /// When.
        at_unix_ns: u64,
        /// The cell.
        cell: String,
        /// Its directory below the study's.
        dir: String,
        /// Exit code: 0; 1 if a gate failed; 5 if its clean-up left something.
        exit: i32,
        /// Verdict of the run (`VALID`, …); empty if it has none.
        verdict: String,
        /// Its duration, nanoseconds.
        took_ns: u64,
    },
    /// A cell could not be measured. Its directory has the partial results.
    Failed {
        /// When.
        at_unix_ns: u64,
        /// The cell.
        cell: String,
        /// Its directory below the study's.
        dir: String,
        /// Exit code; `None` if a signal ended it.
        exit: Option<i32>,
        /// The reason.
        reason: String,
    },
    /// A cell was measured, but the placement of its objects could not be determined.
    Unplaced {
        /// When.
        at_unix_ns: u64,
        /// The cell.
        cell: String,
        /// The reason.
        reason: String,
    },
    /// A cell was skipped.
    Skipped {
        /// When.
        at_unix_ns: u64,
        /// The cell.
        cell: String,
        /// The reason.
        reason: String,
    },
    /// The study ended, was interrupted or was given up.
    Ended {
        /// When.
        at_unix_ns: u64,
        /// The reason, such as `complete` or `interrupted`.
        reason: String,
    },
}

/// Facts about a target. `targets/NAME.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetFacts {
    /// Version of the format, [`SCHEMA`].
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// The display name.
    pub title: String,
    /// Value of `--target`.
    pub url: String,
    /// Its address, without secrets; empty if it has none.
    pub endpoint: String,
    /// Script or program that started it; empty if it was already running.
    pub server: String,
    /// Versions by program, such as `minio` and `bucketload`.
    pub versions: BTreeMap<String, String>,
    /// Settings with which it was started, without secrets.
    pub settings: BTreeMap<String, String>,
    /// The machine: `kernel`, `cpu`, `cores`, `memory_bytes`, `os`.
    pub machine: BTreeMap<String, String>,
    /// How the placement of its objects can be determined.
    #[serde(default)]
    pub placement: Placement,
    /// The cores of the server that the study started, such as `4, 5`; empty if it shared those of the client.
    #[serde(default)]
    pub cores: String,
    /// Why it was skipped; empty if it was used.
    pub skipped: String,
}

/// How the placement of a target's objects on data nodes can be determined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Unknown, unless a file in a cell's directory states it.
    #[default]
    Unknown,
    /// There is a single node, so there is nothing to balance.
    OneNode,
    /// The store is asked after each cell whose load balance is shown.
    Asked,
}
