//! The types of a study that its parts share: what is asked for ([`Study`]), what is to be done ([`Plan`] of
//! [`Cell`]s), what was done ([`JournalLine`]) and on what ([`TargetFacts`]). All of them are files of the
//! study's directory (see [`crate::layout`]); whoever reads the directory needs nothing else.

mod view;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use view::{Figure, FigureKind, Metric, Table, TableKind};

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
    /// A headline.
    pub title: String,
    /// What it shows, in a sentence or two.
    #[serde(default)]
    pub description: String,
    /// The work that it repeats: authors, title, where; empty for none.
    #[serde(default)]
    pub source: String,
    /// Name of the set of published values that the report shows beside ours; empty for none.
    #[serde(default)]
    pub published: String,
    /// Whether the values of `[quick]` were applied.
    #[serde(default)]
    pub quick: bool,
    /// Seed of the order and of the runs' random choices.
    pub seed: u64,
    /// How cells are ordered inside a block.
    pub order: Order,
    /// Repetitions of each cell, unless the experiment says otherwise.
    pub repetitions: u32,
    /// Pause before each cell, nanoseconds.
    pub recovery_ns: u64,
    /// Longest further wait for the machine to become idle before a cell, nanoseconds; 0 for none.
    pub settle_ns: u64,
    /// Name of the target that multiples are of; empty for the first.
    #[serde(default)]
    pub baseline: String,
    /// Script of `servers/` that installs the programs of engines (`cli:mc`) that are not on the PATH; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub programs: String,
    /// Where the load goes.
    #[serde(rename = "target")]
    pub targets: Vec<Target>,
    /// What is measured.
    #[serde(rename = "experiment")]
    pub experiments: Vec<Experiment>,
}

/// How cells are ordered inside a block. A block is one repetition of everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Randomised complete blocks: targets in random order, each with its cells in random order.
    #[default]
    Random,
    /// One random order, forwards and backwards in turn (A B B A).
    Abba,
}

/// A store, and how it is reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Target {
    /// Its name in tables, figures and files.
    pub name: String,
    /// A name for people; empty for `name`.
    #[serde(default)]
    pub title: String,
    /// What `--target` gets; `{dir}` is a directory of the study's own. Empty with `server`.
    #[serde(default)]
    pub url: String,
    /// What `--endpoint-url` gets; empty for none.
    #[serde(default)]
    pub endpoint: String,
    /// Script of `servers/` that starts the store, or one of our own servers; empty for none.
    #[serde(default)]
    pub server: String,
    /// API by which a server is used (`s3`, `swift`); empty for S3.
    #[serde(default)]
    pub api: String,
    /// A proxy in front of the server: `nginx`; empty for none.
    #[serde(default)]
    pub proxy: String,
    /// Whether the proxy keeps answers.
    #[serde(default)]
    pub proxy_cache: bool,
    /// A program without which the server is not started but skipped with a reason.
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
    /// The name for people.
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

/// A command of the program that a cell is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// `run WORKLOAD`: the cell is a run directory.
    #[default]
    Run,
    /// `capacity WORKLOAD --slo …`: a capacity search.
    Capacity,
    /// `io500`: a run directory with IO500's files.
    Io500,
    /// `md-workbench`: a run directory with an operation log.
    MdWorkbench,
    /// `study-grid`: a grid of files, sizes and processes.
    StudyGrid,
    /// `s3-hpc`: the ways to the objects of a directory.
    S3Hpc,
}

impl Command {
    /// Every command.
    pub const ALL: [Self; 6] = [
        Self::Run,
        Self::Capacity,
        Self::Io500,
        Self::MdWorkbench,
        Self::StudyGrid,
        Self::S3Hpc,
    ];

    /// As typed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Capacity => "capacity",
            Self::Io500 => "io500",
            Self::MdWorkbench => "md-workbench",
            Self::StudyGrid => "study-grid",
            Self::S3Hpc => "s3-hpc",
        }
    }

    /// Whether it takes a workload.
    #[must_use]
    pub const fn takes_workload(self) -> bool {
        matches!(self, Self::Run | Self::Capacity)
    }

    /// Whether it takes the options of a target.
    #[must_use]
    pub const fn takes_target(self) -> bool {
        !matches!(self, Self::S3Hpc)
    }
}

/// A matrix: targets x values of one field x repetitions, and what the report shows of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Experiment {
    /// Its name, of letters, digits and dashes.
    pub name: String,
    /// A headline; empty for `name`.
    #[serde(default)]
    pub title: String,
    /// What it asks, and how.
    #[serde(default)]
    pub description: String,
    /// What each cell is.
    #[serde(default)]
    pub command: Command,
    /// Built-in workload or file; empty where the command takes none.
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
    /// Expected duration of one cell, nanoseconds; 0 for what its workload says.
    #[serde(default)]
    pub estimate_ns: u64,
    /// Further options of the command.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: Options,
    /// Options of single values of the field, which replace the others one by one.
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

    /// Whether the report shows how its load was spread over the data nodes, for which each run has to log its
    /// operations and the store to be asked where the objects lie.
    #[must_use]
    pub fn shows_balance(&self) -> bool {
        let figure = |figure: &Figure| figure.kind == FigureKind::LoadBalance;
        let table = |table: &Table| table.kind == TableKind::LoadBalance;
        self.command == Command::Run
            && (self.figures.iter().any(figure) || self.tables.iter().any(table))
    }
}

/// What is to be done, in order. `plan.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of the form, [`SCHEMA`].
    pub schema: u32,
    /// Name of the study.
    pub study: String,
    /// Version of the program that planned it.
    pub version: String,
    /// Seed of the order.
    pub seed: u64,
    /// How cells are ordered.
    pub order: Order,
    /// Time budget, nanoseconds; `None` without one.
    pub budget_ns: Option<u64>,
    /// Expected duration of everything, pauses included, nanoseconds.
    pub estimate_ns: u64,
    /// What planning decided and why, in sentences for the methods.
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
    /// What it is.
    pub command: Command,
    /// Workload; empty where the command takes none.
    pub workload: String,
    /// The swept field; empty for none.
    pub field: String,
    /// Its value; empty for none.
    pub value: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Block, from 1: the repetition of everything that it belongs to.
    pub block: u32,
    /// Arguments behind the command's name, without those of the target and without `--out`.
    pub args: Vec<String>,
    /// Expected duration without pauses, nanoseconds.
    pub estimate_ns: u64,
}

/// A line of `journal.jsonl`. Instants are nanoseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum JournalLine {
    /// The program began or went on with the study.
    Session {
        /// When.
        at_unix_ns: u64,
        /// Version of the program.
        version: String,
        /// Its command line, without secrets.
        command_line: Vec<String>,
    },
    /// A target can be used.
    Ready {
        /// When.
        at_unix_ns: u64,
        /// Its name.
        target: String,
        /// How long its start took, nanoseconds; 0 where nothing was started.
        took_ns: u64,
    },
    /// A cell begins.
    Started {
        /// When.
        at_unix_ns: u64,
        /// The cell.
        cell: String,
        /// Its directory below the study's.
        dir: String,
        /// Pause before it, nanoseconds.
        pause_ns: u64,
        /// Share of the machine's processors that was busy at the end of the pause.
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
        /// Exit code: 0, 1 where a gate failed, or 5 where its clean-up left something.
        exit: i32,
        /// Verdict of the run (`VALID`, …); empty for what has none.
        verdict: String,
        /// From its start to its end, nanoseconds.
        took_ns: u64,
    },
    /// A cell could not be measured. Its directory holds what there is.
    Failed {
        /// When.
        at_unix_ns: u64,
        /// The cell.
        cell: String,
        /// Its directory below the study's.
        dir: String,
        /// Exit code; `None` where a signal ended it.
        exit: Option<i32>,
        /// Why.
        reason: String,
    },
    /// A cell was measured, but the store could not say where its objects lie.
    Unplaced {
        /// When.
        at_unix_ns: u64,
        /// The cell.
        cell: String,
        /// Why.
        reason: String,
    },
    /// A cell was not begun.
    Skipped {
        /// When.
        at_unix_ns: u64,
        /// The cell.
        cell: String,
        /// Why.
        reason: String,
    },
    /// The study ended, was interrupted or gave up.
    Ended {
        /// When.
        at_unix_ns: u64,
        /// Why, such as `complete` or `interrupted`.
        reason: String,
    },
}

/// What a target is. `targets/NAME.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetFacts {
    /// Version of the form, [`SCHEMA`].
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// What `--target` got.
    pub url: String,
    /// Where it was reached, without secrets; empty where it has no address of its own.
    pub endpoint: String,
    /// Script or program that started it; empty where it ran before.
    pub server: String,
    /// Versions by program, such as `minio` and `bucketload`.
    pub versions: BTreeMap<String, String>,
    /// Settings it was started with, without secrets.
    pub settings: BTreeMap<String, String>,
    /// The machine: `kernel`, `cpu`, `cores`, `memory_bytes`, `os`.
    pub machine: BTreeMap<String, String>,
    /// What can be known of where its objects lie.
    #[serde(default)]
    pub placement: Placement,
    /// The cores of the server that the study started, such as `4, 5`; empty where it shared those of the client.
    #[serde(default)]
    pub cores: String,
    /// Why it was left out; empty where it was used.
    pub skipped: String,
}

/// What can be known of the data nodes on which a target's objects lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Nothing, unless the directory of a cell says it.
    #[default]
    Unknown,
    /// There is one node: nothing to balance.
    OneNode,
    /// The store is asked after each cell whose load balance is shown.
    Asked,
}
