//! Models of training as data, MLPerf's rule for the size of their data sets, and the workload that a model becomes
//! (docs/spec/ai-training.md sections 1 and 2).
//!
//! ```text
//! models.toml ── TrainingModels ── model, accelerator ── Training ─┬─ data_size: objects by steps and by memory
//!                                                                  └─ workload: a workload file in TOML
//! ```

pub mod models;

use std::fmt::Write as _;

use bucketload_core::plan::KeyNaming;
use bucketload_core::units::{format_duration, format_size};

pub use models::TrainingModels;

use crate::spec::{ReadMode, SpecError};

/// Steps that an epoch must have at least, by MLPerf's rule.
const LEAST_STEPS: u64 = 500;
/// How often the data set must fill the memory of the hosts, by the same rule.
const MEMORY_FACTOR: u128 = 5;

/// A model on one kind of accelerator.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// Name of the model.
    pub model: String,
    /// Name of the accelerator.
    pub accelerator: String,
    /// How objects are named, from their format.
    pub naming: KeyNaming,
    /// Samples per object.
    pub samples: u64,
    /// Nominal bytes of a sample.
    pub record: f64,
    /// Their standard deviation; 0 for equal sizes.
    pub stdev: f64,
    /// Bytes that the format adds to an object.
    pub framing: u64,
    /// Samples per batch.
    pub batch: u64,
    /// Computation per batch, nanoseconds.
    pub computation_ns: u64,
    /// Readers per accelerator.
    pub readers: u32,
    /// Batches that the readers may be ahead.
    pub prefetch: u32,
    /// Passes over the data set.
    pub epochs: u32,
    /// Utilisation that passes, 0 to 1.
    pub mark: f64,
    /// How objects are read.
    pub read: ReadMode,
    /// Bytes per request, for ranges.
    pub range_size: Option<u64>,
    /// Bytes of the columns that are read, bytes of a row, rows of a row group; for columns.
    pub columns: Option<(Vec<u64>, u64, u64)>,
}

/// The data set that MLPerf's rule asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataSize {
    /// Objects for 500 steps per epoch.
    pub by_steps: u64,
    /// Objects that fill the hosts' memory five times.
    pub by_memory: u64,
    /// The larger of the two.
    pub objects: u64,
    /// Nominal bytes of these objects.
    pub bytes: f64,
}

/// What a workload is to be made with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingChoice {
    /// Accelerators.
    pub accelerators: u32,
    /// Objects of the data set.
    pub objects: u64,
    /// Most steps of an epoch; `None` for all.
    pub steps: Option<u64>,
}

impl Training {
    /// The data set for `accelerators` on hosts with `memory_bytes` of memory in total. The rule of version 2.0
    /// rounded down.
    #[must_use]
    pub fn data_size(&self, accelerators: u32, memory_bytes: u128) -> DataSize {
        let samples = LEAST_STEPS * self.batch * u64::from(accelerators);
        let by_steps = samples.div_ceil(self.samples);
        let object = self.object_bytes();
        // Whole numbers as far as possible: a quotient near a whole number must not be rounded up.
        let memory = MEMORY_FACTOR * memory_bytes;
        let by_memory = match object.fract() == 0.0 {
            true => memory.div_ceil(object as u128),
            false => (memory as f64 / object).ceil() as u128,
        };
        let by_memory = u64::try_from(by_memory).unwrap_or(u64::MAX);
        let objects = by_steps.max(by_memory);
        DataSize {
            by_steps,
            by_memory,
            objects,
            bytes: objects as f64 * object,
        }
    }

    /// Nominal bytes of an object.
    #[must_use]
    pub fn object_bytes(&self) -> f64 {
        self.record * self.samples as f64
    }

    /// Objects that give every accelerator `steps` batches.
    #[must_use]
    pub fn objects_for(&self, accelerators: u32, steps: u64) -> u64 {
        let samples = steps
            .saturating_mul(self.batch)
            .saturating_mul(u64::from(accelerators));
        samples.div_ceil(self.samples).max(1)
    }

    /// The training with records `factor` times as large. Where columns are read, rows stay as they are, and objects
    /// have `factor` times as many.
    ///
    /// # Errors
    /// If the factor is not above 0, or records or objects would become empty.
    pub fn scaled(mut self, factor: f64) -> Result<Self, SpecError> {
        let refused = |what: &str| {
            let remedy = "write a factor such as --scale 1/1000";
            SpecError::flag(format!("--scale {factor}"), what, remedy)
        };
        if !(factor > 0.0 && factor.is_finite()) {
            return Err(refused("the factor must be above 0"));
        }
        if self.columns.is_some() {
            self.samples = (self.samples as f64 * factor).round() as u64;
        } else {
            self.record *= factor;
            self.stdev *= factor;
        }
        match self.samples == 0 || self.record < 1.0 {
            true => Err(refused(
                "records would have less than a byte, or objects no row",
            )),
            false => Ok(self),
        }
    }

    /// Name of the workload.
    #[must_use]
    pub fn name(&self) -> String {
        format!("train-{}-{}", self.model, self.accelerator)
    }

    /// The training as a workload file in TOML.
    #[must_use]
    pub fn workload(&self, choice: &TrainingChoice) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out, choice);
        out
    }

    fn write(&self, out: &mut String, choice: &TrainingChoice) -> std::fmt::Result {
        let size = match self.stdev > 0.0 {
            true => format!(
                "sides({}, {}, offset={})",
                self.record, self.stdev, self.framing
            ),
            false => format!("{}", self.object_bytes().round() as u64 + self.framing),
        };
        writeln!(out, "name = \"{}\"", self.name())?;
        writeln!(
            out,
            "description = \"Training of {} on accelerators like {}, as MLPerf Storage emulates it\"\n",
            self.model, self.accelerator
        )?;
        writeln!(out, "[keysets.samples]\nprefix = \"train/\"")?;
        writeln!(out, "naming = \"{}\"", <&'static str>::from(self.naming))?;
        writeln!(out, "count = {}\nsize = \"{size}\"\n", choice.objects)?;
        writeln!(out, "[phases.train]\nsteady-state = false\n")?;
        writeln!(out, "[phases.train.train]")?;
        writeln!(out, "accelerators = {}", choice.accelerators)?;
        writeln!(out, "batch = {}", self.batch)?;
        let computation = format_duration(self.computation_ns);
        writeln!(out, "computation = \"{computation}\"")?;
        writeln!(out, "readers = {}", self.readers)?;
        writeln!(out, "prefetch = {}", self.prefetch)?;
        writeln!(out, "epochs = {}", self.epochs)?;
        if let Some(steps) = choice.steps {
            writeln!(out, "steps = {steps}")?;
        }
        writeln!(out, "samples-per-object = {}", self.samples)?;
        writeln!(out, "record = {}", self.record)?;
        writeln!(out, "read = \"{}\"", <&'static str>::from(self.read))?;
        if let (ReadMode::Ranges, Some(bytes)) = (self.read, self.range_size) {
            writeln!(out, "range-size = \"{}\"", format_size(bytes))?;
        }
        if let (ReadMode::Columns, Some((widths, row, group))) = (self.read, &self.columns) {
            writeln!(out, "columns = {widths:?}")?;
            writeln!(out, "row = {row}\nrow-group = {group}")?;
        }
        writeln!(out, "au = {}", self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::{Training, TrainingChoice, TrainingModels};
    use crate::resolve::{Overrides, ResolveContext, resolve};
    use crate::spec::WorkloadFile;

    const GIB: u128 = 1 << 30;

    fn training(model: &str, accelerator: &str) -> Training {
        let models = TrainingModels::builtin().unwrap();
        models.training(model, accelerator).unwrap()
    }

    /// The worked checks of docs/spec/ai-training.md section 2.
    #[test]
    fn the_data_set_follows_steps_or_memory() {
        let unet3d = training("unet3d", "h100");
        let eight = unet3d.data_size(8, 512 * GIB);
        assert_eq!(
            (eight.by_steps, eight.by_memory, eight.objects),
            (28_000, 18_751, 28_000)
        );
        assert!((eight.bytes / 1e12 - 4.10).abs() < 0.01);
        let two = unet3d.data_size(2, 512 * GIB);
        assert_eq!((two.by_steps, two.objects), (7_000, 18_751));
        // 500 steps of 400 samples on one accelerator: 159.9 files of 1251 samples.
        assert_eq!(training("resnet50", "a100").data_size(1, 0).objects, 160);
    }

    /// Storage demand of one accelerator, section 1.
    #[test]
    fn every_model_of_the_table_asks_for_its_share() {
        let table = [
            ("unet3d", "a100", 1.61e9),
            ("unet3d", "h100", 3.18e9),
            ("unet3d", "b200", 6.33e9),
            ("resnet50", "a100", 105e6),
            ("resnet50", "h100", 205e6),
            ("cosmoflow", "a100", 513e6),
            ("cosmoflow", "h100", 808e6),
            ("retinanet", "b200", 163e6),
            ("retinanet", "mi355", 163e6),
            ("retinanet", "h100", 13.7e6),
            ("flux", "b200", 77e6),
            ("flux", "mi355", 77e6),
            ("flux", "h100", 2.9e6),
            ("dlrm", "b200", 6.99e9),
            ("dlrm", "mi355", 4.66e9),
        ];
        for (model, accelerator, demand) in table {
            let training = training(model, accelerator);
            let choice = TrainingChoice {
                accelerators: 2,
                objects: training.objects_for(2, 20),
                steps: None,
            };
            let text = training.workload(&choice);
            let file = WorkloadFile::parse("train.toml", &text).unwrap();
            let plan = resolve(&file, &Overrides::default(), &ResolveContext::default())
                .unwrap_or_else(|e| panic!("{model} {accelerator}: {e}\n{text}"))
                .plan;
            let run = plan
                .phases
                .iter()
                .find(|phase| phase.name == "train")
                .unwrap();
            let train = run.works[0].model.train().unwrap();
            let ratio = train.demand() / demand;
            assert!(
                (ratio - 1.0).abs() < 0.02,
                "{model} {accelerator}: {}",
                train.demand()
            );
            assert!(train.steps() >= 20, "{model} {accelerator}");
            let ending = plan.keysets[0].naming.file_ending();
            assert!(ending.is_some());
        }
    }

    #[test]
    fn mistakes_name_file_line_and_remedy() {
        let models = TrainingModels::builtin().unwrap();
        let unknown = models.training("unet4d", "h100").unwrap_err().to_string();
        assert!(
            unknown.contains("unet4d") && unknown.contains("unet3d"),
            "{unknown}"
        );
        let text = "[mine]\nformat = \"npz\"\nrecord = 1e6\nbatch = 4\n[mine.accelerators]\nx1 = { computation = \"1s\" }\n";
        let mine = TrainingModels::parse("mine.toml", text).unwrap();
        assert_eq!(mine.training("mine", "x1").unwrap().readers, 4);
        let none = mine.training("mine", "h100").unwrap_err().to_string();
        assert!(
            none.contains("mine.toml:5") && none.contains("x1"),
            "{none}"
        );
        for (wrong, part) in [
            (text.replace("batch = 4", "batch = 0"), "mine.toml:4"),
            (text.replace("batch = 4\n", ""), "`batch` is missing"),
            (text.replace("npz", "zip"), "mine.toml:2"),
            (text.replace("batch", "batches"), "unknown field"),
            (text.replace("\"1s\"", "0"), "mine.toml:6"),
            (text.replace("record", "readers = 0\nrecord"), "mine.toml:3"),
        ] {
            let error = match TrainingModels::parse("mine.toml", &wrong) {
                Ok(models) => models.training("mine", "x1").unwrap_err(),
                Err(error) => error,
            };
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn scaled_records_are_smaller_and_columns_have_fewer_rows() {
        let small = training("unet3d", "h100").scaled(0.001).unwrap();
        assert!((small.record - 146_600.628).abs() < 1e-6);
        let rows = training("dlrm", "b200").scaled(0.01).unwrap();
        assert_eq!((rows.samples, rows.record), (47_186, 761.0));
        for bad in [0.0, -1.0, f64::NAN, 1e-9] {
            assert!(training("dlrm", "b200").scaled(bad).is_err());
        }
    }
}
