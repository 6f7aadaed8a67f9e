//! The manifest `run.json`: what ran, on which target, and how it ended.

use std::fs;
use std::path::Path;

use bucketload_core::capacity::Slo;
use bucketload_core::driver::DriverFacts;
use bucketload_core::generate::fingerprint::schedule_hash;
use bucketload_core::plan::Plan;
use bucketload_core::verdict::{Verdict, Word};
use serde::{Deserialize, Serialize};

use super::host::HostFacts;
use super::{FORMAT, MANIFEST, redact};
use crate::error::ResultsError;
use crate::oplog::OpLogFacts;

/// How far a run got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// In progress, or killed: the manifest was not completed.
    #[default]
    Running,
    /// All phases ended by their own limits.
    Finished,
    /// The user stopped it.
    Interrupted,
    /// An error stopped it.
    Aborted,
}

/// Settings of the load generator that the analysis must know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientFacts {
    /// Load threads.
    pub threads: u32,
    /// Whether load threads spin on request; their CPU share is then meaningless.
    pub spinning: bool,
    /// Length of an interval, nanoseconds.
    pub interval_ns: u64,
}

/// Summary of the verdict, so listing runs needs no analysis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictSummary {
    /// The verdict word.
    pub word: Word,
    /// The rules with findings, worst first.
    pub rules: Vec<String>,
}

impl From<&Verdict> for VerdictSummary {
    fn from(verdict: &Verdict) -> Self {
        Self {
            word: verdict.word,
            rules: verdict.reasons.iter().map(|r| r.rule.clone()).collect(),
        }
    }
}

/// A setting of the target and where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingOrigin {
    /// Name of the setting.
    pub name: String,
    /// Its value; secrets are masked.
    pub value: String,
    /// Flag, variable, place in a file or dialect, or `default`.
    pub source: String,
}

/// The trace that a replay reads, for readers and for programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceInput {
    /// Facts about the trace and its use: name and text of each.
    pub facts: Vec<(String, String)>,
    /// The summary of its preparation.
    pub summary: serde_json::Value,
}

/// Everything about a run that is not measured. It never holds secrets: [`Manifest::redact`] is
/// applied before anything is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Manifest {
    /// Format of the directory, [`FORMAT`].
    pub format: u32,
    /// Version of the tool.
    pub version: String,
    /// Identifier of the run; also the ownership tag in the target.
    pub run_id: String,
    /// How far the run got.
    pub status: Status,
    /// The verdict, once known.
    pub verdict: Option<VerdictSummary>,
    /// The error of an aborted run.
    pub error: Option<String>,
    /// Wall-clock start, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Wall-clock end, nanoseconds since 1970; 0 during the run.
    pub ended_unix_ns: u64,
    /// Hash of the scenario that is measured ([`Plan::scenario_hash`]).
    pub scenario_hash: String,
    /// Fingerprint of the first operations offered ([`schedule_hash`]); empty in directories of versions that did
    /// not record it.
    #[serde(default)]
    pub schedule_hash: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Why the size of the data set differs from the workload, for readers; empty if it does not.
    pub scale_note: String,
    /// Facts about the target that only the user knows, as name and value: durability, deployment, version.
    #[serde(default)]
    pub facts: Vec<(String, String)>,
    /// The earlier run whose objects were read; empty for runs on their own objects.
    #[serde(default)]
    pub data_note: String,
    /// Whether the run only prepared its objects, so none of its measuring phases was to be carried out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prepare_only: bool,
    /// The target, as URL or path.
    pub target: String,
    /// The driver and its settings.
    pub driver: DriverFacts,
    /// The target's settings and where each came from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<SettingOrigin>,
    /// The load generator.
    pub client: ClientFacts,
    /// The machine it ran on.
    pub host: HostFacts,
    /// The operation log; `None` if none was requested.
    #[serde(default)]
    pub op_log: Option<OpLogFacts>,
    /// The command line.
    pub command_line: Vec<String>,
    /// The workload as the user wrote it (TOML).
    pub workload_source: String,
    /// The trace, for a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceInput>,
    /// The objectives that the run has to meet; `None` if the user named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo: Option<Slo>,
    /// The resolved plan.
    pub plan: Plan,
}

bucketload_core::serde_once!(Manifest);

impl Manifest {
    /// A manifest of a run of `plan`; the caller fills in the remaining fields.
    #[must_use]
    pub fn new(run_id: impl Into<String>, version: impl Into<String>, plan: Plan) -> Self {
        Self {
            format: FORMAT,
            version: version.into(),
            run_id: run_id.into(),
            status: Status::Running,
            verdict: None,
            error: None,
            started_unix_ns: 0,
            ended_unix_ns: 0,
            scenario_hash: plan.scenario_hash(),
            // A plan that cannot generate operations is refused before it runs.
            schedule_hash: schedule_hash(&plan).unwrap_or_default(),
            seed: plan.seed,
            scale_note: String::new(),
            facts: Vec::new(),
            data_note: String::new(),
            prepare_only: false,
            target: String::new(),
            driver: DriverFacts::default(),
            settings: Vec::new(),
            client: ClientFacts {
                threads: 0,
                spinning: false,
                interval_ns: 1_000_000_000,
            },
            host: HostFacts::default(),
            op_log: None,
            command_line: Vec::new(),
            workload_source: String::new(),
            trace: None,
            slo: None,
            plan,
        }
    }

    /// Removes credentials from every text that may contain them.
    pub fn redact(&mut self) {
        self.target = redact::text(&self.target);
        self.workload_source = redact::config(&self.workload_source);
        self.command_line = redact::args(&self.command_line);
        self.error = self.error.as_deref().map(redact::text);
        for endpoint in &mut self.driver.endpoints {
            *endpoint = redact::text(endpoint);
        }
        for setting in &mut self.settings {
            setting.value = redact::text(&setting.value);
        }
        for (name, value) in self.driver.settings.iter_mut().chain(&mut self.facts) {
            *value = if redact::is_secret_name(name) {
                redact::MASK.to_owned()
            } else {
                redact::text(value)
            };
        }
    }

    /// Reads the manifest of the run directory `dir`.
    ///
    /// # Errors
    /// When the manifest is missing, damaged or too new.
    pub fn read(dir: &Path) -> Result<Self, ResultsError> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
            version: String,
        }

        let path = dir.join(MANIFEST);
        let text = match fs::read_to_string(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(ResultsError::NoRun(dir.to_owned()));
            }
            other => other.map_err(ResultsError::io(&path, "read"))?,
        };
        let damaged = |e: serde_json::Error| ResultsError::Manifest {
            path: path.clone(),
            line: e.line(),
            column: e.column(),
            message: e.to_string(),
        };
        // The format is checked first: a newer one may lack or rename any other field.
        let head: Head = serde_json::from_str(&text).map_err(damaged)?;
        if head.format > FORMAT {
            return Err(ResultsError::TooNew {
                path,
                found: head.format,
                supported: FORMAT,
                version: head.version,
            });
        }
        serde_json::from_str(&text).map_err(damaged)
    }

    /// Writes the manifest into `dir`, replacing an existing one atomically.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), ResultsError> {
        let path = dir.join(MANIFEST);
        let temporary = dir.join(format!("{MANIFEST}.new"));
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(std::io::Error::from)
            .map_err(ResultsError::io(&path, "encode"))?;
        text.push(b'\n');
        fs::write(&temporary, text).map_err(ResultsError::io(&temporary, "write"))?;
        fs::rename(&temporary, &path).map_err(ResultsError::io(&path, "replace"))
    }
}
