//! Operations of jobs as functions of (job, stage, position).
//!
//! ```text
//!  slot = (job · stages + stage) · widest + position      one per object and per operation
//!    │
//!    ├─ stream StageLength at (job, stage) ──> operations of the stage, U{min..max}
//!    ├─ stream StageGap at slot ────────────> gap before the operation
//!    ├─ write: object `slot`, size from stream Size at slot
//!    └─ read:  position in the latest write stage from stream Key at slot ──> that stage's object
//! ```
//!
//! The index of an object is the slot of the operation that wrote it. Names, sizes and choices therefore need
//! no state, whichever thread runs the job. Sequence numbers are `2 · slot`, plus one for the operation that
//! deletes the slot's object.

use super::LawError;
use super::elementary::ln;
use super::ops::FRESH_STRIDE;
use super::rng::{Draws, Purpose, Stream};
use super::sizes::SizeSampler;
use crate::op::{Op, OpClass};
use crate::plan::jobs::{MULTIPART_ABOVE, part_size};
use crate::plan::{JobsPlan, KeyLaw, KeysetPlan, MixEntry, Plan, StageKind, StagePace};

/// Maximum number of stages per job and of operations per stage.
const MOST_STAGES: usize = 64;
const MOST_OPS: u32 = 100_000;

/// A stage with the data that its operations need.
#[derive(Clone, Copy, Debug)]
struct Stage {
    kind: StageKind,
    min: u32,
    max: u32,
    /// The write stage that a read stage reads.
    reads: usize,
    /// The write stage whose objects are deleted when this one begins.
    deletes: Option<usize>,
    /// Whether the objects written are results.
    results: bool,
}

/// Indices of the mix entries by class; one set for temporary objects, one for results.
#[derive(Clone, Copy, Debug, Default)]
struct Entries {
    put: u16,
    multipart: u16,
    get: u16,
    delete: u16,
}

/// The operations of a work that consists of jobs. Immutable: share it between threads or clone it.
#[derive(Clone, Debug)]
pub struct JobGen {
    seed: u64,
    length: Stream,
    gap: Stream,
    key: Stream,
    size: Stream,
    stages: Box<[Stage]>,
    /// Slots per stage.
    width: u64,
    keysets: [u16; 2],
    sizes: [SizeSampler; 2],
    entries: [Entries; 2],
    /// Mean gap between operations, nanoseconds; 0 without gaps.
    mean_gap_ns: f64,
    /// Index of the object of slot 0.
    first_key: u64,
}

impl JobGen {
    /// The operations of work number `work` of phase number `phase`, whose model must be jobs.
    ///
    /// # Errors
    /// If the model is another one, a stage reads objects that were never written, a law cannot be generated,
    /// or the mix lacks a class that occurs.
    ///
    /// # Panics
    /// If `phase` is not below [`Stream::MAX_PHASES`].
    pub fn new(plan: &Plan, phase: u16, work: u16) -> Result<Self, LawError> {
        let field = format!("phases[{phase}].works[{work}]");
        let work_plan = plan.phases.get(usize::from(phase));
        let work_plan = work_plan.and_then(|p| p.works.get(usize::from(work)));
        let Some((work_plan, jobs)) = work_plan.and_then(|work| Some((work, work.model.jobs()?)))
        else {
            return Err(LawError::new(field, "does not consist of jobs"));
        };
        let within = |e: LawError| e.within(&field);
        let stages = stages(jobs).map_err(within)?;
        let keysets = [jobs.temp, jobs.results];
        let sampler = |set: u16| match plan.keysets.get(usize::from(set)) {
            Some(set) if set.count > 0 => Err(LawError::new(
                "keyset",
                format!(
                    "{} has initial objects, but jobs create their own",
                    set.name
                ),
            )),
            Some(set) => SizeSampler::new(&set.size).map_err(|e| e.within("keyset.size")),
            None => Err(LawError::new("keyset", "does not exist")),
        };
        let sizes = [
            sampler(keysets[0]).map_err(within)?,
            sampler(keysets[1]).map_err(within)?,
        ];
        let of = |class: OpClass, keyset: u16| {
            let found = work_plan
                .mix
                .iter()
                .position(|entry| entry.class == class && entry.keyset == keyset);
            found.unwrap_or(0) as u16
        };
        let entries = keysets.map(|set| Entries {
            put: of(OpClass::Put, set),
            multipart: of(OpClass::MultipartPut, set),
            get: of(OpClass::Get, set),
            delete: of(OpClass::Delete, set),
        });
        let largest = [sizes[0].support().1, sizes[1].support().1];
        for (class, results, _) in counts(jobs, largest) {
            let keyset = keysets[usize::from(results)];
            let has = |entry: &MixEntry| (entry.class, entry.keyset) == (class, keyset);
            if !work_plan.mix.iter().any(has) {
                let reason = format!("lacks {class}, which the jobs perform");
                return Err(within(LawError::new("mix", reason)));
            }
        }
        let stream = |purpose| Stream::new(purpose, phase, work);
        Ok(Self {
            seed: plan.seed,
            length: stream(Purpose::StageLength),
            gap: stream(Purpose::StageGap),
            key: stream(Purpose::Key),
            size: stream(Purpose::Size),
            stages,
            width: u64::from(jobs.widest()),
            keysets,
            sizes,
            entries,
            mean_gap_ns: match jobs.pace {
                StagePace::Poisson { rate } => 1e9 / rate,
                StagePace::Burst | StagePace::Sequential => 0.0,
            },
            first_key: 0,
        })
    }

    /// The same operations on the objects of another measurement on the same data set.
    #[must_use]
    pub fn of_generation(mut self, generation: u32) -> Self {
        self.first_key = u64::from(generation) * FRESH_STRIDE;
        self
    }

    /// Number of stages of a job.
    #[must_use]
    pub fn stages(&self) -> usize {
        self.stages.len()
    }

    /// Number of operations in stage `stage` of job `job`.
    ///
    /// # Panics
    /// If there is no such stage.
    #[must_use]
    pub fn ops_in(&self, job: u64, stage: usize) -> u32 {
        let counted = match self.stages[stage].kind {
            StageKind::ReadAll => self.stages[stage].reads,
            StageKind::Write | StageKind::Read => stage,
        };
        let Stage { min, max, .. } = self.stages[counted];
        let index = job
            .wrapping_mul(self.stages.len() as u64)
            .wrapping_add(counted as u64);
        let mut draws = Draws::new(self.seed, self.length, index);
        min + draws.below(u64::from(max - min) + 1) as u32
    }

    /// Expected object bytes that a job writes and reads.
    #[must_use]
    pub fn mean_bytes(&self, jobs: &JobsPlan) -> (f64, f64) {
        let (mut written, mut read) = (0.0, 0.0);
        for (i, stage) in self.stages.iter().enumerate() {
            let results = self.stages[stage.reads].results;
            let bytes = jobs.mean_ops(i) * self.sizes[usize::from(results)].mean();
            match stage.kind {
                StageKind::Write => written += bytes,
                StageKind::Read | StageKind::ReadAll => read += bytes,
            }
        }
        (written, read)
    }

    fn slot(&self, job: u64, stage: usize, position: u32) -> u64 {
        job.wrapping_mul(self.stages.len() as u64)
            .wrapping_add(stage as u64)
            .wrapping_mul(self.width)
            .wrapping_add(u64::from(position))
    }

    /// Time from the previous operation (for the first: from the start of the stage) to operation `position`
    /// of a stage, nanoseconds; 0 if all are due at once or follow one another.
    #[must_use]
    pub fn gap_ns(&self, job: u64, stage: usize, position: u32) -> u64 {
        if self.mean_gap_ns == 0.0 {
            return 0;
        }
        let slot = self.slot(job, stage, position);
        let u = Draws::new(self.seed, self.gap, slot).next_open();
        (-ln(u) * self.mean_gap_ns).round() as u64
    }

    /// Size of the object written by operation `position` of write stage `stage`, bytes.
    #[must_use]
    pub fn object_size(&self, job: u64, stage: usize, position: u32) -> u64 {
        let slot = self.slot(job, stage, position);
        let sizes = &self.sizes[usize::from(self.stages[stage].results)];
        sizes.sample(&mut Draws::new(self.seed, self.size, slot))
    }

    /// The write stage whose objects are deleted when `stage` begins.
    #[must_use]
    pub fn deletes(&self, stage: usize) -> Option<usize> {
        self.stages[stage].deletes
    }

    /// The last write stage, whose objects are results.
    #[must_use]
    pub fn result_stage(&self) -> usize {
        self.stages
            .iter()
            .position(|stage| stage.results)
            .unwrap_or(0)
    }

    /// Operation `position` of stage `stage` of job `job`.
    ///
    /// # Panics
    /// If there is no such stage.
    #[must_use]
    pub fn op(&self, job: u64, stage: usize, position: u32) -> Op {
        let slot = self.slot(job, stage, position);
        let current = &self.stages[stage];
        if current.kind == StageKind::Write {
            let size = self.object_size(job, stage, position);
            let class = match size > MULTIPART_ABOVE {
                true => OpClass::MultipartPut,
                false => OpClass::Put,
            };
            return self.build(current.results, class, 2 * slot, slot, size);
        }
        let source = current.reads;
        let position = match current.kind {
            StageKind::ReadAll => position,
            StageKind::Write | StageKind::Read => {
                let n = u64::from(self.ops_in(job, source));
                Draws::new(self.seed, self.key, slot).below(n) as u32
            }
        };
        let key = self.slot(job, source, position);
        let size = self.object_size(job, source, position);
        let results = self.stages[source].results;
        self.build(results, OpClass::Get, 2 * slot, key, size)
    }

    /// The operation that deletes the object of operation `position` of write stage `stage`.
    ///
    /// # Panics
    /// If there is no such stage.
    #[must_use]
    pub fn delete(&self, job: u64, stage: usize, position: u32) -> Op {
        let key = self.slot(job, stage, position);
        let results = self.stages[stage].results;
        self.build(results, OpClass::Delete, 2 * key + 1, key, 0)
    }

    fn build(&self, results: bool, class: OpClass, seq: u64, key: u64, size: u64) -> Op {
        let entries = &self.entries[usize::from(results)];
        let keyset = self.keysets[usize::from(results)];
        Op {
            seq,
            class,
            entry: match class {
                OpClass::MultipartPut => entries.multipart,
                OpClass::Get => entries.get,
                OpClass::Delete => entries.delete,
                _ => entries.put,
            },
            keyset,
            key: self.first_key + key,
            source_key: 0,
            source_keyset: keyset,
            version: 0,
            size,
            range: None,
            count: match class {
                OpClass::MultipartPut => part_size(size),
                _ => 0,
            },
            pages: 0,
        }
    }
}

/// Determines what each stage reads and deletes.
fn stages(jobs: &JobsPlan) -> Result<Box<[Stage]>, LawError> {
    let bad = |i: usize, reason: String| LawError::new(format!("stages[{i}]"), reason);
    if jobs.stages.is_empty() || jobs.stages.len() > MOST_STAGES {
        let reason = format!("has {} stages, must have 1 to 64", jobs.stages.len());
        return Err(LawError::new("stages", reason));
    }
    if let StagePace::Poisson { rate } = jobs.pace {
        super::positive("pace.rate", rate)?;
    }
    let last = jobs.result_stage();
    let mut written = None;
    let mut out = Vec::with_capacity(jobs.stages.len());
    for (i, stage) in jobs.stages.iter().enumerate() {
        if stage.min == 0 || stage.min > stage.max || stage.max > MOST_OPS {
            let reason = format!(
                "has {} to {} operations, must be 1 to {MOST_OPS} in ascending order",
                stage.min, stage.max
            );
            return Err(bad(i, reason));
        }
        let latest = written;
        out.push(match stage.kind {
            StageKind::Write => {
                if i > 0 && jobs.stages[i - 1].kind == StageKind::Write {
                    let reason = "writes right after another write stage, whose objects nothing \
                                  would read or delete";
                    return Err(bad(i, reason.to_owned()));
                }
                written = Some(i);
                Stage {
                    kind: stage.kind,
                    min: stage.min,
                    max: stage.max,
                    reads: i,
                    deletes: latest,
                    results: Some(i) == last,
                }
            }
            StageKind::Read | StageKind::ReadAll => {
                let Some(reads) = latest else {
                    let reason = "reads, but no earlier stage writes".to_owned();
                    return Err(bad(i, reason));
                };
                Stage {
                    kind: stage.kind,
                    min: stage.min,
                    max: stage.max,
                    reads,
                    deletes: None,
                    results: false,
                }
            }
        });
    }
    Ok(out.into_boxed_slice())
}

/// The operations of jobs, one item per class and kind of object: class, whether it works on results,
/// expected number of operations per job.
fn counts(jobs: &JobsPlan, largest: [u64; 2]) -> Vec<(OpClass, bool, f64)> {
    let last = jobs.result_stage();
    let mut latest = 0;
    let mut out: Vec<(OpClass, bool, f64)> = Vec::new();
    let mut add = |class, results, n| match out
        .iter_mut()
        .find(|known| (known.0, known.1) == (class, results))
    {
        Some(known) => known.2 += n,
        None => out.push((class, results, n)),
    };
    for (i, stage) in jobs.stages.iter().enumerate() {
        let n = jobs.mean_ops(i);
        match stage.kind {
            StageKind::Write => {
                latest = i;
                let results = Some(i) == last;
                add(OpClass::Put, results, n);
                if largest[usize::from(results)] > MULTIPART_ABOVE {
                    add(OpClass::MultipartPut, results, 0.0);
                }
                if !results || jobs.retain > 0 {
                    add(OpClass::Delete, results, n);
                }
            }
            StageKind::Read | StageKind::ReadAll => add(OpClass::Get, Some(latest) == last, n),
        }
    }
    out
}

/// The mix of a work that consists of jobs: one entry per class and key set, weighted by the expected number
/// of operations per job.
///
/// # Errors
/// If the stages or the size laws are invalid.
pub fn mix(jobs: &JobsPlan, keysets: &[KeysetPlan]) -> Result<Vec<MixEntry>, LawError> {
    stages(jobs)?;
    let sets = [jobs.temp, jobs.results];
    let sampler = |set: u16| match keysets.get(usize::from(set)) {
        Some(set) => SizeSampler::new(&set.size).map_err(|e| e.within("keyset.size")),
        None => Err(LawError::new("keyset", "does not exist")),
    };
    let sizes = [sampler(sets[0])?, sampler(sets[1])?];
    let largest = [sizes[0].support().1, sizes[1].support().1];
    // Puts above the limit are multipart uploads.
    let above = |results: bool| 1.0 - sizes[usize::from(results)].cdf(MULTIPART_ABOVE);
    let counts = counts(jobs, largest);
    let puts = |results: bool| {
        let of = |c: &&(OpClass, bool, f64)| (c.0, c.1) == (OpClass::Put, results);
        counts.iter().find(of).map_or(0.0, |c| c.2)
    };
    Ok(counts
        .iter()
        .map(|&(class, results, n)| {
            let keys = match class {
                OpClass::Get => KeyLaw::Uniform,
                OpClass::Delete => KeyLaw::Sequential,
                _ => KeyLaw::Fresh,
            };
            MixEntry {
                weight: match class {
                    OpClass::Put => n * (1.0 - above(results)),
                    OpClass::MultipartPut => puts(results) * above(results),
                    _ => n,
                },
                ..MixEntry::new(class, sets[usize::from(results)], keys)
            }
        })
        .collect())
}
