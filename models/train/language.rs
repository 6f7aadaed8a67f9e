//! Training: the fields of the table `train`, and their defaults.

use bucketload_core::generate::LawError;
use bucketload_core::generate::ops::OpGen;
use bucketload_core::generate::sizes::SizeSampler;
use bucketload_core::op::OpClass;
use bucketload_core::plan::train::TrainRead;
use bucketload_core::plan::{
    KeyLaw, Limits, MixEntry, Model, ModelPlan, Plan, RangePlan, SizeLaw, TrainPlan, WorkPlan,
};
use bucketload_core::units::format_duration;

use crate::resolve::builder::PlanBuilder;
use crate::resolve::dryrun::Rates;
use crate::resolve::keysets::Keyset;
use crate::resolve::models::DescribedModel;
use crate::resolve::phases::RunPhase;
use crate::spec::{ReadMode, TrainSpec, WorkSpec};

/// DLIO's defaults and those of its MLPerf files (docs/spec/ai-training.md sections 1 and 4).
const READERS: u32 = 4;
const PREFETCH: u32 = 2;
const EPOCHS: u32 = 5;
const MARK: f64 = 0.9;
const ROW_GROUP: u64 = 6144;
/// Batches that each reader is ahead if the prefetch is 0.
const AHEAD_WITHOUT_PREFETCH: u32 = 2;
const RANGE_SIZE: u64 = 8 << 20;

impl PlanBuilder<'_> {
    /// Model and mix (with the path of each entry) of a work that trains.
    pub(in crate::resolve) fn train(
        &mut self,
        path: &str,
        work: &WorkSpec,
        spec: &TrainSpec,
        keysets: &[Keyset],
    ) -> (ModelPlan, Vec<MixEntry>, Vec<String>) {
        let foreign = [
            ("model", work.model.is_some()),
            ("jobs", work.jobs.is_some()),
            ("rounds", work.rounds.is_some()),
            ("workers", work.workers.is_some()),
            ("think", work.think.is_some()),
            ("arrival", work.arrival.is_some()),
            ("rate", work.rate.is_some()),
            ("max-in-flight", work.max_in_flight.is_some()),
            ("mix", work.mix.is_some()),
            ("keys", work.keys.is_some()),
            ("size", work.size.is_some()),
        ];
        for (field, _) in foreign.into_iter().filter(|(_, given)| *given) {
            self.error(
                &format!("{path}.{field}"),
                format!("`train` defines who reads what and when, so `{field}` does not apply"),
                "remove it, or `train`",
            );
        }
        let Some(keyset) = self.only_keyset(path, work, keysets, "training needs") else {
            return (empty().into(), Vec::new(), Vec::new());
        };
        let set = &keysets[keyset].plan;
        let mean = SizeSampler::new(&set.size).map_or(0.0, |sizes| sizes.mean());
        let field = |name: &str| format!("{path}.train.{name}");
        let readers = spec.readers.unwrap_or(READERS);
        let ahead = match spec.prefetch.unwrap_or(PREFETCH) {
            0 => AHEAD_WITHOUT_PREFETCH,
            batches => batches.div_ceil(readers.max(1)),
        };
        let samples = spec.samples_per_object.unwrap_or(1);
        let record = spec.record.unwrap_or(mean / samples.max(1) as f64);
        let read = self.train_read(path, spec, record);
        let plan = TrainPlan {
            accelerators: spec.accelerators.unwrap_or(1),
            readers,
            ahead,
            batch: spec.batch.unwrap_or(0),
            computation_ns: spec.computation.map_or(0, |time| time.0),
            epochs: spec.epochs.unwrap_or(EPOCHS),
            steps: spec.steps.unwrap_or(0),
            objects: set.count,
            samples,
            record,
            read,
            mark: spec.au.map_or(MARK, |mark| mark.0),
        };
        for (name, given, remedy) in [
            (
                "batch",
                spec.batch.is_some(),
                "add the samples per batch, such as batch = 7",
            ),
            (
                "computation",
                spec.computation.is_some(),
                "add the time per batch, such as computation = \"323ms\"",
            ),
        ] {
            if !given {
                self.error(&field(name), format!("`{name}` is missing"), remedy);
            }
        }
        let bounds = [
            ("accelerators", u64::from(plan.accelerators), 10_000),
            ("readers", u64::from(plan.readers), 1024),
            ("prefetch", u64::from(plan.ahead), 1_000_000),
            ("batch", spec.batch.unwrap_or(1), 1 << 32),
            (
                "computation",
                spec.computation.map_or(1, |time| time.0),
                3_600_000_000_000,
            ),
            ("epochs", u64::from(plan.epochs), 1_000_000),
            ("steps", spec.steps.unwrap_or(1), u64::MAX),
            ("samples-per-object", plan.samples, 1 << 40),
        ];
        for (name, value, most) in bounds {
            if value == 0 || value > most {
                let message = format!("{value} lies outside 1 to {most}");
                self.error(&field(name), message, "");
            }
        }
        if plan.max_sessions() > 100_000 {
            let message = format!(
                "{} accelerators with {} readers each are more than 100000 connections",
                plan.accelerators, plan.readers
            );
            self.error(&field("readers"), message, "use fewer of either");
        }
        if !(record > 0.0 && record.is_finite()) {
            let message = "a sample must have some bytes";
            self.error(&field("record"), message, "write record = 146600628");
        }
        if !(plan.mark > 0.0 && plan.mark <= 1.0) {
            let message = "the utilisation to reach must be above 0 and at most 100%";
            self.error(&field("au"), message, "write it such as \"90%\"");
        }
        let entry = match &plan.read {
            TrainRead::Whole => MixEntry::new(OpClass::Get, keyset as u16, KeyLaw::Sequential),
            TrainRead::Ranges { bytes } => ranges(keyset, *bytes),
            TrainRead::Columns { group, widths, .. } => ranges(
                keyset,
                group * widths.iter().sum::<u64>() / widths.len().max(1) as u64,
            ),
        };
        (plan.into(), vec![entry], vec![format!("{path}.train")])
    }

    fn train_read(&mut self, path: &str, spec: &TrainSpec, record: f64) -> TrainRead {
        let field = |name: &str| format!("{path}.train.{name}");
        let mode = spec.read.unwrap_or(ReadMode::Whole);
        let of_others = [
            ("range-size", spec.range_size.is_some(), ReadMode::Ranges),
            ("columns", spec.columns.is_some(), ReadMode::Columns),
            ("row", spec.row.is_some(), ReadMode::Columns),
            ("row-group", spec.row_group.is_some(), ReadMode::Columns),
        ];
        for (name, given, of) in of_others {
            if given && mode != of {
                let of = <&'static str>::from(of);
                self.error(
                    &field(name),
                    format!("`{name}` is for read = \"{of}\""),
                    format!("remove it, or write read = \"{of}\""),
                );
            }
        }
        match mode {
            ReadMode::Whole => TrainRead::Whole,
            ReadMode::Ranges => {
                let bytes = spec.range_size.map_or(RANGE_SIZE, |size| size.0);
                if bytes == 0 {
                    let message = "a range must have at least 1 byte";
                    self.error(&field("range-size"), message, "write it such as \"8MiB\"");
                }
                TrainRead::Ranges {
                    bytes: bytes.max(1),
                }
            }
            ReadMode::Columns => {
                let widths: Vec<u64> = spec.columns.iter().flatten().map(|size| size.0).collect();
                let row = spec.row.map_or(record.round() as u64, |size| size.0);
                let group = spec.row_group.unwrap_or(ROW_GROUP);
                let sum = widths.iter().fold(0, |sum: u64, w| sum.saturating_add(*w));
                if widths.is_empty() || widths.contains(&0) {
                    let remedy = "write the bytes of each column that is read, such as [4, 4, 8]";
                    let message = "column chunks need columns of at least 1 byte";
                    self.error(&field("columns"), message, remedy);
                } else if sum > row {
                    let message = format!(
                        "the columns have {sum} bytes, but a row with all columns has {row}"
                    );
                    self.error(&field("row"), message, "give the bytes of the whole row");
                }
                if !(1..=1 << 30).contains(&group) {
                    let message = format!("{group} lies outside 1 to {}", 1 << 30);
                    self.error(&field("row-group"), message, "");
                }
                TrainRead::Columns {
                    row,
                    group: group.max(1),
                    widths,
                }
            }
        }
    }

    /// Tells trainings how many objects their data sets have, and checks that these fill a step.
    pub(in crate::resolve) fn fit_trainings(&mut self, runs: &mut [RunPhase], keysets: &[Keyset]) {
        for run in runs.iter_mut() {
            for number in 0..run.plan.works.len() {
                let work = &mut run.plan.works[number];
                let Some(keyset) = work.mix.first().map(|entry| usize::from(entry.keyset)) else {
                    continue;
                };
                let Some(train) = work.model.get_mut::<TrainPlan>() else {
                    continue;
                };
                let set = &keysets[keyset].plan;
                train.objects = set.count;
                if let TrainRead::Columns { row, .. } = &train.read
                    && set.size.min < train.samples.saturating_mul(*row)
                {
                    let message = format!(
                        "an object of {} rows of {row} bytes is larger than the objects of key set `{}`",
                        train.samples, set.name
                    );
                    let size = train.samples.saturating_mul(*row);
                    let path = format!("{}.train.samples-per-object", run.work_path(number));
                    self.error(&path, message, format!("make the objects {size} bytes"));
                    continue;
                }
                if train.batch == 0 || train.accelerators == 0 || train.samples == 0 {
                    continue;
                }
                if train.steps() == 0 {
                    let needed = train.batch.saturating_mul(u64::from(train.accelerators));
                    let message = format!(
                        "{} objects of key set `{}` do not give each of {} accelerators a batch of {} samples",
                        train.objects, set.name, train.accelerators, train.batch
                    );
                    let remedy = format!(
                        "a step needs {} objects: raise keysets.{}.count, or use a larger --scale or fewer accelerators",
                        needed.div_ceil(train.samples),
                        set.name
                    );
                    let path = format!("{}.train.accelerators", run.work_path(number));
                    self.error(&path, message, remedy);
                }
            }
        }
    }
}

/// An entry that reads ranges, of about `bytes` each.
fn ranges(keyset: usize, bytes: u64) -> MixEntry {
    MixEntry {
        range: Some(RangePlan {
            len: SizeLaw::constant(bytes.max(1)),
            align: 1,
        }),
        // Further ranges of an object follow, so a file stays open.
        count: 1,
        ..MixEntry::new(OpClass::RangeGet, keyset as u16, KeyLaw::Sequential)
    }
}

/// The plan in place of one that could not be read.
fn empty() -> TrainPlan {
    TrainPlan {
        accelerators: 1,
        readers: 1,
        ahead: 1,
        batch: 1,
        computation_ns: 1,
        epochs: 1,
        steps: 0,
        objects: 1,
        samples: 1,
        record: 1.0,
        read: TrainRead::Whole,
        mark: MARK,
    }
}

/// Bytes with a unit and three digits.
fn short(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let step = (bytes.max(1.0).log2() / 10.0).floor().min(4.0);
    let value = bytes / (step * 10.0).exp2();
    let digits = if value < 10.0 { 2 } else { 0 };
    format!("{value:.digits$} {}", units[step as usize])
}

impl DescribedModel for TrainPlan {
    fn in_outlook(&self) -> String {
        let plural = |n: u64, what: &str| match n {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        format!(
            "{} with {} each, {} of {} with batches of {} and {} of computation; one takes {}/s if it never waits",
            plural(u64::from(self.accelerators), "accelerator"),
            plural(u64::from(self.readers), "reader"),
            plural(u64::from(self.epochs), "epoch"),
            plural(self.steps(), "step"),
            self.batch,
            format_duration(self.computation_ns),
            short(self.demand()),
        )
    }

    fn rates(&self, plan: &Plan, phase: usize, work: usize) -> Result<Rates, LawError> {
        let ops = OpGen::new(plan, phase, work)?;
        let entry = &plan.phases[phase].works[work].mix[0];
        let size = &plan.keysets[usize::from(entry.keyset)].size;
        let size = SizeSampler::new(size)?.mean();
        let bytes = match &self.read {
            TrainRead::Whole | TrainRead::Columns { .. } => ops.mean_bytes(0),
            // The last range of an object is shorter.
            TrainRead::Ranges { bytes } => size / (size / *bytes as f64).ceil().max(1.0),
        };
        Ok(Rates {
            read: bytes,
            written: 0.0,
            mix: vec![(entry.class, 1.0)],
        })
    }

    fn ops(&self, _: &WorkPlan, limits: &Limits, rates: &Rates, _: bool) -> Option<f64> {
        // A limit may end it earlier.
        let size = self.record * self.samples as f64;
        let free = limits.duration_ns == 0 && limits.ops == 0 && limits.bytes == 0;
        free.then(|| self.requests(size.max(rates.read)))
    }
}
