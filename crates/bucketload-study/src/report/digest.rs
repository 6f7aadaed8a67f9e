//! The data that the report keeps of a run: a few figures per phase and class.
//!
//! A study may have thousands of cells. Each is read once, reduced to a [`Run`] of a few hundred bytes per class,
//! and dropped; histograms live only while the repetitions of their cell are merged.

use std::collections::BTreeMap;
use std::path::Path;

use bucketload_core::ai::AiFigures;
use bucketload_core::histogram::Histogram;
use bucketload_core::tally::Tally;
use bucketload_core::verdict::Word;
use bucketload_results::analyze::examine;
pub use bucketload_results::result::metric::Figures;
use bucketload_results::result::{PhaseResult, RunResult};
use bucketload_results::rundir::Manifest;
use bucketload_results::units;

use crate::model::Metric;

/// Figures with their phase and class.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// Name of the phase; empty for the only measuring phase.
    pub phase: String,
    /// Operation class; empty for all.
    pub class: String,
    /// The figures.
    pub figures: Figures,
}

/// A run of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Identifier of the cell.
    pub cell: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Its verdict.
    pub word: Word,
    /// Rules with findings.
    pub rules: Vec<String>,
    /// Its figures, in the order of phases and classes.
    pub slots: Vec<Slot>,
    /// Its figures of training, checkpoints or a cache that no two phases have.
    pub ai: AiFigures,
}

impl Run {
    /// The figures of a class (empty: all) in a phase (empty: the only measuring one).
    #[must_use]
    pub fn figures(&self, phase: &str, class: &str) -> Option<&Figures> {
        let slot = |s: &&Slot| s.phase == phase && s.class == class;
        self.slots.iter().find(slot).map(|s| &s.figures)
    }

    /// A metric of a class (empty: all) in a phase. Without a phase, figures of training, checkpoints and caches are those
    /// of the whole run.
    #[must_use]
    pub fn value(&self, metric: Metric, phase: &str, class: &str) -> Option<f64> {
        match metric.ai().filter(|_| phase.is_empty()) {
            Some(figure) => self.ai.get(&figure).copied(),
            None => metric.value(self.figures(phase, class)?),
        }
    }
}

/// Facts of a run for the methods.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Facts {
    /// Version of the program.
    pub version: String,
    /// Driver and engine.
    pub client: String,
    /// Description of the machine.
    pub machine: String,
    /// Its kernel.
    pub kernel: String,
    /// Load threads.
    pub threads: u32,
    /// Content of objects.
    pub payload: String,
    /// Whether data read is verified.
    pub verified: bool,
    /// How load was generated, as text, by phase.
    pub load: Vec<String>,
    /// Length of the measured windows, seconds, rounded.
    pub window_s: Vec<u64>,
    /// Warm-up cut off, seconds, rounded.
    pub warmup_s: Vec<u64>,
    /// Whether operations were due independently of the store.
    pub open_loop: bool,
    /// Name of another benchmark whose procedure was reproduced; empty for none.
    pub compat: String,
    /// Factor applied to the number of objects, and to sizes, as texts.
    pub scale: String,
}

/// Distributions of a run, to be merged over repetitions: response times by phase and class.
pub type Histograms = BTreeMap<(String, String), Histogram>;

/// The content of a run directory.
pub struct RunData {
    /// The analysis.
    pub result: RunResult,
    /// Facts for the methods.
    pub facts: Facts,
    /// Its figures.
    pub slots: Vec<Slot>,
    /// Its distributions.
    pub histograms: Histograms,
    /// Workers of the phase called `upload` or the first phase with workers.
    pub workers: u32,
}

/// Reads and analyses the run directory `dir`.
///
/// # Errors
/// Says what is wrong with the directory.
pub fn read(dir: &Path) -> Result<RunData, String> {
    let (result, tallies) = examine(dir).map_err(|e| e.to_string())?;
    let manifest = Manifest::read(dir).map_err(|e| e.to_string())?;
    let mut slots = Vec::new();
    let mut histograms = Histograms::new();
    let measured: Vec<&PhaseResult> = result.measured().collect();
    let ai = result.ai_by_phase();
    for phase in &measured {
        let tally = tallies.get(&phase.index);
        let own = ai.iter().filter(|(name, _)| *name == phase.name);
        let own = own.flat_map(|(_, figures)| figures.clone()).collect();
        phase_slots(phase, tally, own, &mut slots, &mut histograms);
    }
    if let [only] = measured[..] {
        let same = slots.iter().filter(|s| s.phase == only.name).cloned();
        let unnamed: Vec<Slot> = same
            .map(|s| Slot {
                phase: String::new(),
                ..s
            })
            .collect();
        slots.extend(unnamed);
    }
    Ok(RunData {
        facts: facts(&result),
        workers: workers(&manifest),
        slots,
        histograms,
        result,
    })
}

fn phase_slots(
    phase: &PhaseResult,
    tally: Option<&Tally>,
    ai: AiFigures,
    slots: &mut Vec<Slot>,
    histograms: &mut Histograms,
) {
    let mut all = Histogram::new();
    let mut first = Histogram::new();
    let cpu = phase.client.cpu_us_per_op;
    let mut classes: BTreeMap<&str, (Figures, Histogram, Histogram)> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for class in &phase.classes {
        let name = class.class.name();
        if !order.contains(&name) {
            order.push(name);
        }
        let (figures, _, _) = classes.entry(name).or_default();
        figures.ok += class.ok;
        figures.failed += class.failed;
        figures.ops_per_s += class.ops_per_s.mean;
        figures.bytes_per_s += class.bytes_per_s.mean;
    }
    for cell in tally.iter().flat_map(|tally| &tally.cells) {
        if let Some((_, response, ttfb)) = classes.get_mut(cell.class.name()) {
            response.merge(&cell.response);
            ttfb.merge(&cell.ttfb);
        }
        all.merge(&cell.response);
        first.merge(&cell.ttfb);
    }
    let totals = Figures {
        ok: phase.classes.iter().map(|c| c.ok).sum(),
        failed: phase.classes.iter().map(|c| c.failed).sum(),
        ai,
        ..Figures::of_phase(phase)
    };
    let mut put = |class: &str, figures: Figures, response: Histogram, ttfb: &Histogram| {
        slots.push(Slot {
            phase: phase.name.clone(),
            class: class.to_owned(),
            figures: timed(figures, &response, ttfb),
        });
        histograms.insert((phase.name.clone(), class.to_owned()), response);
    };
    put("", totals, all, &first);
    for name in order {
        if let Some((mut figures, response, ttfb)) = classes.remove(name) {
            figures.cpu_us_per_op = cpu;
            put(name, figures, response, &ttfb);
        }
    }
}

/// The figures with the times of `response`.
fn timed(figures: Figures, response: &Histogram, ttfb: &Histogram) -> Figures {
    use bucketload_core::stats::quantile::{Print, print_rule};
    let n = response.count();
    let quantile = |q: f64| {
        // The median is the best available figure even for a handful of operations.
        let shown = n > 0 && (q == 0.5 || print_rule(n, q) != Print::Omit);
        shown.then(|| response.quantile_ns(q) as f64)
    };
    let has = n > 0;
    Figures {
        mean_ns: if has { response.mean_ns() } else { 0.0 },
        min_ns: if has { response.min_ns() as f64 } else { 0.0 },
        max_ns: if has { response.max_ns() as f64 } else { 0.0 },
        quantiles_ns: [0.5, 0.95, 0.99, 0.999].map(quantile),
        first_byte_ns: (!ttfb.is_empty()).then(|| ttfb.mean_ns()),
        ..figures
    }
}

fn workers(manifest: &Manifest) -> u32 {
    let phases = &manifest.plan.phases;
    let named = phases.iter().find(|phase| phase.name == "upload");
    let models = named
        .into_iter()
        .chain(phases)
        .flat_map(|phase| &phase.works);
    models
        .into_iter()
        .find_map(|work| Some(work.model.closed()?.workers))
        .unwrap_or(0)
}

fn facts(result: &RunResult) -> Facts {
    let run = &result.run;
    let host = &run.host;
    let memory_gib = host.memory_bytes as f64 / f64::from(1 << 30);
    let whole = |seconds: f64| seconds.round().max(0.0) as u64;
    let seconds = |figure: fn(&PhaseResult) -> f64| -> Vec<u64> {
        result
            .measured()
            .map(|phase| whole(figure(phase)))
            .collect()
    };
    let scale = |name: &str, factor: f64| {
        (factor != 1.0).then(|| format!("{name} × {}", units::factor(factor)))
    };
    let scales: Vec<String> = [scale("objects", run.scale), scale("sizes", run.size_scale)]
        .into_iter()
        .flatten()
        .collect();
    Facts {
        version: run.version.clone(),
        client: format!("{} driver, {} engine", run.driver.driver, run.driver.engine),
        machine: format!(
            "{}, {} cores, {memory_gib:.0} GiB of memory",
            host.cpu_model, host.cores
        ),
        kernel: format!("{} {}", host.platform, host.kernel),
        threads: run.client.threads,
        payload: run.payload.clone(),
        verified: run.verify,
        load: result
            .measured()
            .map(|phase| format!("{}: {}", phase.name, phase.load.join("; ")))
            .collect(),
        window_s: seconds(|phase| phase.window.seconds()),
        warmup_s: seconds(|phase| phase.window.warmup_ns as f64 / 1e9),
        open_loop: result.measured().any(|phase| phase.open_loop),
        compat: run.compat.clone(),
        scale: scales.join(", "),
    }
}
