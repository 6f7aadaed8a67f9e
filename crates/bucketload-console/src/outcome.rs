//! What lists and pages show of a run that has ended. The run's own process writes it into the run directory; for a run that
//! was killed, it is computed when somebody looks.

use std::path::Path;

use bucketload_core::stats::quantile::Print;
use bucketload_results::result::RunResult;
use bucketload_results::{analyze, report};
use serde::{Deserialize, Serialize};

/// Name of the file in the run directory.
const FILE: &str = "outcome.json";
/// Maximum number of reasons and of figures.
const MAX_REASONS: usize = 8;
const MAX_FACTS: usize = 24;

/// The figures of a run in lists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The target.
    pub target: String,
    /// What the user of the workload's model came for, in one line, such as the throughput of checkpoints; lists show it
    /// in place of rates. Empty for other models.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub headline: String,
    /// Smallest and largest rate of the measured phases, successful operations per second.
    pub ops_per_s: Option<(f64, f64)>,
    /// Smallest and largest p99 response time of their operation classes, nanoseconds.
    pub p99_ns: Option<(u64, u64)>,
}

/// The head of a run's result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The verdict.
    pub(crate) word: String,
    /// `good`, `warn` or `bad`.
    pub(crate) tone: String,
    /// What the verdict means.
    pub(crate) meaning: String,
    /// Its reasons.
    pub(crate) reasons: Vec<String>,
    /// Headline figures as name and value.
    pub(crate) facts: Vec<(String, String)>,
    /// The figures for lists.
    pub(crate) figures: Figures,
}

/// Writes what the console shows of `result` into its run directory.
///
/// # Errors
/// When the file cannot be written.
pub fn write(run: &Path, result: &RunResult) -> std::io::Result<()> {
    let text = serde_json::to_vec(&Outcome::new(result))?;
    std::fs::write(run.join(FILE), text)
}

impl Outcome {
    /// The outcome in a run directory; if there is none, it is computed from the whole directory and written there.
    ///
    /// # Errors
    /// When there is no result.
    pub(crate) fn of(run: &Path) -> Result<Self, String> {
        if let Some(stored) = Self::stored(run) {
            return Ok(stored);
        }
        let result = analyze(run).map_err(|e| format!("there is no result: {e}"))?;
        // If writing fails, it is computed again.
        let _ = write(run, &result);
        Ok(Self::new(&result))
    }

    /// The outcome in a run directory.
    pub(crate) fn stored(run: &Path) -> Option<Self> {
        let text = std::fs::read(run.join(FILE)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn new(result: &RunResult) -> Self {
        let page = report::page(result);
        let (mut reasons, mut facts) = (page.verdict.reasons, page.facts);
        reasons.truncate(MAX_REASONS);
        facts.truncate(MAX_FACTS);
        Self {
            word: page.verdict.word,
            tone: page.verdict.tone.to_owned(),
            meaning: page.verdict.meaning,
            reasons,
            facts,
            figures: Figures::new(result),
        }
    }
}

impl Figures {
    fn new(result: &RunResult) -> Self {
        let rates = result.measured().map(|phase| phase.rates.ops_per_s.mean);
        let p99 = result.measured().flat_map(|phase| &phase.classes);
        let p99 = p99
            .filter_map(|class| class.response.percentile(0.99))
            .filter(|percentile| percentile.print != Print::Omit)
            .map(|percentile| percentile.value_ns);
        Self {
            target: result.run.target.clone(),
            headline: result.headline_text(),
            ops_per_s: rates
                .map(|rate| (rate, rate))
                .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))),
            p99_ns: p99
                .map(|ns| (ns, ns))
                .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))),
        }
    }
}
