//! What the user of a workload model came for: the figures that every view shows first.
//!
//! ```text
//!  result of a model ─ Headlined ─► RunResult::headline ─┬─ first line of the text
//!                                                        ├─ `summary.headline` of the JSON
//!                                                        ├─ head of the report and of the console's page
//!                                                        └─ the console's list of runs
//! ```
//!
//! A run whose model says nothing shows operations per second and response times.

use bucketload_core::ai::{AiFigure, AiKind};

use super::checkpoint::{CheckpointMean, CheckpointResult};
use super::{KvcacheResult, RunResult, TrainResult, ai};
use crate::drill::DrillResult;
use crate::io500::ScoreTable;
use crate::units;

/// One figure of a headline.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// What it is, such as `write throughput`.
    pub name: String,
    /// The figure for readers, with its unit.
    pub text: String,
    /// The figure in one line with others; empty if it stands in longer views only.
    pub brief: String,
    /// The figure for programs: its name, which ends in the unit, and its value.
    pub figure: Option<(String, f64)>,
}

impl Fact {
    fn new(name: &str, text: String) -> Self {
        Self {
            name: name.to_owned(),
            text,
            brief: String::new(),
            figure: None,
        }
    }

    fn brief(mut self, text: String) -> Self {
        self.brief = text;
        self
    }

    fn figure(mut self, name: &str, value: f64) -> Self {
        self.figure = Some((name.to_owned(), value));
        self
    }
}

/// A result of a workload model that says what its user came for.
pub(crate) trait Headlined {
    /// The figures, the most important one first.
    fn headline(&self) -> Vec<Fact>;
}

impl RunResult {
    /// What the user of the run's model came for; empty if that is operations per second and response times.
    #[must_use]
    pub fn headline(&self) -> Vec<Fact> {
        let several = self.train.len() > 1;
        let trained = self.train.iter().flat_map(|train| {
            let of_phase = move |mut fact: Fact| {
                if several {
                    let phase = &train.phase;
                    fact.name = format!("{phase}: {}", fact.name);
                    fact.figure = fact.figure.map(|(name, v)| (format!("{phase}.{name}"), v));
                    if !fact.brief.is_empty() {
                        fact.brief = format!("{phase} {}", fact.brief);
                    }
                }
                fact
            };
            train.headline().into_iter().map(of_phase)
        });
        let scores = self.io500.iter().flat_map(Headlined::headline);
        let checkpoints = self.checkpoint.iter().flat_map(Headlined::headline);
        let caches = self.measured().filter_map(|phase| phase.kvcache.as_ref());
        let caches = caches.flat_map(Headlined::headline);
        let drill = self.drill.iter().flat_map(Headlined::headline);
        let facts = scores.chain(checkpoints).chain(trained);
        facts.chain(caches).chain(drill).collect()
    }

    /// The headline in one line; empty without one.
    #[must_use]
    pub fn headline_text(&self) -> String {
        let briefs = self.headline().into_iter().map(|fact| fact.brief);
        let briefs: Vec<String> = briefs.filter(|brief| !brief.is_empty()).collect();
        briefs.join(", ")
    }
}

impl Headlined for ScoreTable {
    fn headline(&self) -> Vec<Fact> {
        let scores = self.scores;
        let mark = if scores.valid { "" } else { " [INVALID]" };
        let score = format!("{:.6}{mark}", scores.total);
        let (bandwidth, metadata) = (
            format!("{:.6} GiB/s", scores.bw),
            format!("{:.6} kIOPS", scores.md),
        );
        vec![
            Fact::new("score", score.clone()).brief(format!("score {score}")),
            Fact::new("bandwidth", bandwidth.clone()).brief(format!("bandwidth {bandwidth}")),
            Fact::new("metadata", metadata.clone()).brief(format!("metadata {metadata}")),
            Fact::new("ranks", self.ranks.to_string()),
            Fact::new("mapping", self.mapping.clone()),
        ]
    }
}

impl Headlined for CheckpointResult {
    fn headline(&self) -> Vec<Fact> {
        use bucketload_core::plan::checkpoint::CheckpointAction as Action;
        let directions = [
            ("write", Action::Write, self.write),
            ("read", Action::Read, self.read),
        ];
        let mut facts = Vec::new();
        for (name, action, mean) in directions {
            let begun = self.checkpoints.iter().filter(|one| one.action == action);
            match (mean, begun.count()) {
                (None, 0) => {}
                (None, n) => {
                    let text = format!("none of {n} checkpoints is complete");
                    let fact = Fact::new(name, text.clone());
                    facts.push(fact.brief(format!("{name}: {text}")));
                }
                (Some(mean), _) => facts.extend(direction(name, &mean)),
            }
        }
        if let races @ 1.. = self.races.len() {
            let text = format!("{races} lost to another writer");
            let fact = Fact::new("commits of `latest`", text);
            facts.push(
                fact.brief(format!("RACE on `latest`: {races} commits lost"))
                    .figure("races", races as f64),
            );
        }
        facts
    }
}

/// The figures of one direction: throughput by both definitions, and the time of a checkpoint.
fn direction(name: &str, mean: &CheckpointMean) -> [Fact; 3] {
    let gib = |rate: f64| format!("{rate:.3} GiB/s");
    let (rate, dlio, seconds) = (mean.gib_per_s.0, mean.dlio_gib_per_s.0, mean.seconds.0);
    let missing = match mean.begun - mean.complete {
        0 => String::new(),
        n => format!(" ({n} of {} incomplete)", mean.begun),
    };
    [
        Fact::new(&format!("{name} throughput"), gib(rate))
            .brief(format!("{name} {}", gib(rate)))
            .figure(&format!("{name}_gib_per_s"), rate),
        Fact::new(&format!("{name} throughput by DLIO"), gib(dlio))
            .brief(format!("DLIO {}", gib(dlio)))
            .figure(&format!("{name}_dlio_gib_per_s"), dlio),
        Fact::new(
            &format!("time to {name} a checkpoint"),
            format!("{seconds:.3} s{missing}"),
        )
        .brief(format!("{seconds:.3} s per checkpoint{missing}"))
        .figure(&format!("{name}_s"), seconds),
    ]
}

impl Headlined for TrainResult {
    fn headline(&self) -> Vec<Fact> {
        let mark = units::number(self.mark_percent);
        let passes = match self.passed {
            true => "passes",
            false => "does not pass",
        };
        let au = match self.au.mean {
            Some(au) => format!("{au:.2} %"),
            None => "no step counts".to_owned(),
        };
        let mut facts = vec![
            Fact::new("accelerator utilisation (AU)", au.clone()).brief(format!("AU {au}")),
            Fact::new(&format!("mark of {mark} %"), passes.to_owned())
                .brief(format!("{passes} (mark {mark} %)")),
        ];
        if let Some(au) = self.au.mean {
            let fact = facts[0].clone().figure("au_percent", au);
            facts[0] = fact;
        }
        if let Some(samples) = self.samples_per_s.mean {
            let text = units::number(samples);
            facts.push(
                Fact::new("samples per second", text.clone())
                    .brief(format!("{text} samples/s"))
                    .figure("samples_per_s", samples),
            );
        }
        if let Some(input) = self.io_mib_per_s.mean {
            facts.push(
                Fact::new(
                    "input by nominal records",
                    format!("{} MiB/s", units::number(input)),
                )
                .figure("io_mib_per_s", input),
            );
        }
        facts.push(Fact::new("accelerators", self.accelerators.to_string()));
        facts
    }
}

impl Headlined for KvcacheResult {
    fn headline(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        for (figure, value) in ai::of_cache(self) {
            let (name, text) = match figure {
                AiFigure::HitRatio => ("block hit ratio", units::percent(value)),
                AiFigure::LoadP50 => ("load p50", units::ns(value)),
                AiFigure::LoadP99 => ("load p99", units::ns(value)),
                AiFigure::Attainment => ("requests within target", units::percent(value)),
                _ => continue,
            };
            let id = figure.name().replace('-', "_");
            let id = match figure.kind() {
                AiKind::Time => format!("{id}_ns"),
                _ => id,
            };
            facts.push(
                Fact::new(name, text.clone())
                    .brief(format!("{name} {text}"))
                    .figure(&id, value),
            );
        }
        facts
    }
}

impl Headlined for DrillResult {
    /// Empty if nothing was broken.
    fn headline(&self) -> Vec<Fact> {
        if self.faults.is_empty() {
            return Vec::new();
        }
        let seconds = |name: &str, id: &str, s: f64| {
            let text = units::ns(s * 1e9);
            Fact::new(name, text.clone())
                .brief(format!("{name} {text}"))
                .figure(id, s)
        };
        let recovered = match (&self.recover, &self.detect) {
            (Some(time), _) => seconds("recovered after", "recover_s", time.s),
            (None, Some(_)) => {
                Fact::new("recovered", "no".to_owned()).brief("NOT RECOVERED".to_owned())
            }
            (None, None) => Fact::new("noticed", "no".to_owned()).brief("not noticed".to_owned()),
        };
        let share = self.available_since.share;
        let available = units::percent(share);
        vec![
            recovered,
            seconds("longest gap", "longest_gap_s", self.longest_gap.s),
            Fact::new("in time since the first break", available.clone())
                .brief(format!("{available} in time since the first break"))
                .figure("available_since_share", share),
        ]
    }
}
