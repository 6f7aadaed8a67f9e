//! Data sets that outlive the run that prepares them.
//!
//! ```text
//!  first run     claim the prefix ─ write the journal ─ prepare ──────────────┐ killed
//!  later runs    read the journal ─ prepare what is missing ──────────────────┤
//!  measurements  read the journal ─ refuse what is incomplete ─ measure       │
//!                                                                             ▼
//!                  load threads: count per block ─► a thread: the journal, beside the objects
//! ```
//!
//! The journal is a small object beside the ownership marker. It says which objects of which key set are there, as
//! ranges. It never says more than was acknowledged, so a killed run costs the work since the last entry: the objects
//! are written once more, under the same names with the same content.

mod journal;
mod keeper;
mod progress;
mod sample;

use std::sync::Arc;

use bucketload_core::driver::{AnyDriver, Capabilities};
use bucketload_core::op::OpClass;
use bucketload_core::plan::{KeyLaw, ModelPlan, PhaseKind, PhasePlan, Plan};

use crate::error::RunError;
use crate::options::RunOptions;
use crate::ownership::{open_control, read_marker, timed};
use crate::phase::RunContext;
use journal::Journal;
use keeper::Keeper;

pub use journal::JOURNAL;
pub(crate) use progress::Progress;

/// What a run does with a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSet {
    /// Everything that determines names and content of the objects, as a text of the caller. A run on a data set with
    /// another text is refused.
    pub identity: String,
    /// What the run does with it.
    pub purpose: Purpose,
    /// How many of the objects that are there to read and compare after the preparation, before anything is measured.
    pub check: u64,
}

/// What a run does with a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Begin it: nothing of it is there.
    Begin,
    /// Prepare what is missing.
    GoOn,
    /// Measure on it. It is refused if objects are missing, unless `incomplete` is set.
    Measure {
        /// Whether objects may be missing.
        incomplete: bool,
    },
}

/// The data set of a run in progress.
pub(crate) struct Prepared {
    journal: Journal,
    purpose: Purpose,
    keeper: Option<Keeper>,
}

/// The key set that a preparing phase writes.
fn keyset(phase: &PhasePlan) -> usize {
    usize::from(phase.works[0].mix[0].keyset)
}

fn preparing(plan: &Plan) -> impl Iterator<Item = &PhasePlan> {
    let phases = plan.phases.iter();
    phases.filter(|phase| phase.kind == PhaseKind::Prepare)
}

/// Refuses plans and options whose data sets cannot be kept.
pub(crate) fn check(
    plan: &Plan,
    options: &RunOptions,
    (capabilities, driver): (&Capabilities, &str),
) -> Result<(), RunError> {
    let Some(set) = &options.data_set else {
        return Ok(());
    };
    let reads = capabilities.verify && capabilities.classes.contains(&OpClass::Get);
    if set.check > 0 && !reads {
        return Err(RunError::Unsupported {
            driver: driver.to_owned(),
            what: "comparing objects with what was prepared (--check)".to_owned(),
        });
    }
    let refuse = |text: &str| Err(RunError::Options(text.to_owned()));
    let simple = |phase: &PhasePlan| match phase.works.as_slice() {
        [work] => match work.mix.as_slice() {
            [entry] => {
                matches!(work.model, ModelPlan::Closed(_)) && entry.keys == KeyLaw::Sequential
            }
            _ => false,
        },
        _ => false,
    };
    if preparing(plan).next().is_none() {
        return refuse("the workload prepares no objects, so there is no data set to keep");
    }
    if !preparing(plan).all(simple) {
        return refuse("the workload does not write its objects one by one before it measures");
    }
    if options.remote.is_some() || options.share.of > 1 {
        return refuse(
            "a data set that is kept is prepared and measured by one host; leave out --agents and \
             --launch",
        );
    }
    if plan.has_oracle() {
        return refuse(
            "the consistency oracle must see every write, so it cannot judge a data set of an \
             earlier run; leave out --oracle",
        );
    }
    if plan.phases.iter().any(|p| p.kind == PhaseKind::Cleanup) {
        return refuse("a data set that is kept must not be deleted at the end of the run");
    }
    Ok(())
}

impl Prepared {
    /// Reads the journal and decides whether the run may begin. Writes nothing.
    pub(crate) async fn open(
        driver: &AnyDriver,
        plan: &Plan,
        options: &RunOptions,
        set: &DataSet,
    ) -> Result<Self, RunError> {
        let empty = Journal::new(plan, &set.identity);
        let journal = match set.purpose {
            Purpose::Begin => empty,
            Purpose::GoOn | Purpose::Measure { .. } => {
                let mut session = open_control(driver, plan)
                    .await
                    .map_err(RunError::Unreachable)?;
                let failed = |error| {
                    RunError::of_bucket(&options.bucket, "reading the data set's journal", error)
                };
                let marker = read_marker(&mut session, &options.bucket, &options.prefix);
                let marker = timed(plan.timeout_ns, marker).await.map_err(failed)?;
                let ours = marker.is_some_and(|marker| marker.run_id == options.run_id);
                let read = Journal::read(&mut session, &options.bucket, &options.prefix);
                let read = timed(plan.timeout_ns, read).await.map_err(failed)?;
                let journal = read.filter(|_| ours).ok_or_else(|| {
                    RunError::Options(format!(
                        "`{}/{}` holds no data set of run {}: name the target that it was prepared in, and a run \
                         with --prepare-only",
                        options.bucket, options.prefix, options.run_id
                    ))
                })?;
                journal.check(&empty, &options.run_id)?;
                journal
            }
        };
        let incomplete = journal.incomplete();
        match (set.purpose, incomplete) {
            (Purpose::Measure { incomplete: false }, Some(missing)) => {
                Err(RunError::Options(format!(
                    "the data set of run {} is not complete: {missing}. Prepare the rest first (--prepare-only), or \
                     measure on what is there (--incomplete)",
                    options.run_id
                )))
            }
            _ => Ok(Self {
                journal,
                purpose: set.purpose,
                keeper: None,
            }),
        }
    }

    /// What is missing, in words; `None` if the data set is complete.
    pub(crate) fn incomplete(&self) -> Option<String> {
        self.journal.incomplete()
    }

    /// Number of this measurement on the data set, for the names of fresh objects.
    pub(crate) fn generation(&self) -> u32 {
        self.journal.runs
    }

    /// Writes the journal before the first object, and before each measurement.
    pub(crate) async fn note(
        &mut self,
        driver: &AnyDriver,
        plan: &Plan,
        options: &RunOptions,
    ) -> Result<(), RunError> {
        if matches!(self.purpose, Purpose::Measure { .. }) {
            self.journal.runs += 1;
        }
        let written = self
            .journal
            .write(driver, plan, (&options.bucket, &options.prefix))
            .await;
        written.map_err(|error| {
            RunError::of_bucket(&options.bucket, "writing the data set's journal", error)
        })
    }

    /// Turns phase number `index` of the context's plan into one that prepares what is missing. Returns whether
    /// anything is to be done.
    pub(crate) fn begin(
        &mut self,
        driver: &AnyDriver,
        context: &mut RunContext<'_>,
        index: usize,
    ) -> Result<bool, RunError> {
        if matches!(self.purpose, Purpose::Measure { .. }) {
            return Ok(false);
        }
        let set = keyset(&context.plan.phases[index]);
        let filled = self.journal.of(set);
        let progress = Arc::new(Progress::new(filled.count, &filled.done));
        if progress.missing() == 0 {
            return Ok(false);
        }
        let plan = Arc::make_mut(&mut context.plan);
        plan.phases[index].limits.ops = progress.missing();
        context.progress = Some(Arc::clone(&progress));
        self.keeper = Some(Keeper::start(
            driver.clone(),
            Arc::clone(&context.plan),
            context.options,
            (self.journal.clone(), set),
            progress,
        )?);
        Ok(true)
    }

    /// The phase has ended: writes the last entry of the journal. Returns a warning if that failed.
    pub(crate) fn end(&mut self, context: &mut RunContext<'_>) -> Option<String> {
        context.progress = None;
        let (journal, error) = self.keeper.take()?.end();
        self.journal = journal;
        error.map(|error| {
            format!(
                "the journal of the data set could not be written ({error}); going on will write some objects once \
                 more"
            )
        })
    }

    /// Reads a sample of the objects that are there. Returns how many.
    pub(crate) async fn check(
        &self,
        driver: &AnyDriver,
        context: &RunContext<'_>,
        count: u64,
    ) -> Result<u64, RunError> {
        sample::check(driver, context, &self.journal, count).await
    }
}
