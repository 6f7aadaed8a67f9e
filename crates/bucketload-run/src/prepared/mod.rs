//! Data sets that outlive the run that prepares them.
//!
//! ```text
//!  first run     claim the prefix ─ write the journal ─ prepare ──────────────┐ killed
//!  later runs    read the journal ─ take the data set ─ prepare the rest ─────┤
//!  measurements  read the journal ─ refuse what is incomplete ─ measure       │
//!                                                                             ▼
//!                  load threads: count per block ─────────────► a thread: the journal, beside the objects
//!                  agents: the same, and report ─► coordinator ──────▲
//! ```
//!
//! The journal is a small object beside the ownership marker. It says which objects of which key set are there, as
//! ranges, and which session prepares them now. It never says more than was acknowledged, so a killed run costs the
//! work since the last entry: the objects are written once more, under the same names with the same content. Every
//! entry adds to what the journal in the store says, so no entry makes it forget; where the store has conditional
//! writes, an entry replaces only the journal that it was made from.

mod check;
mod filling;
mod holder;
mod journal;
mod keeper;
mod lease;
mod progress;
mod ranges;
mod sample;

use std::sync::Arc;
use std::time::Duration;

use bucketload_core::driver::AnyDriver;
use bucketload_core::plan::{ModelPlan, PhaseKind, PhasePlan, Plan};

use crate::closed::crew;
use crate::error::RunError;
use crate::options::RunOptions;
use crate::ownership::{open_control, read_marker, timed};
use crate::phase::RunContext;
use holder::{held, read, unheld};
use journal::{Journal, Place};
use keeper::Keeper;
use lease::Lease;

pub(crate) use check::check;
pub use filling::Filling;
pub use journal::JOURNAL;
pub use progress::Part;
pub(crate) use progress::{Known, Progress};
pub use ranges::Range;

/// How long a session that prepares a data set may be silent before another one takes its place. Six times the longest
/// pause between two entries.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How often the journal is looked at in that time.
const LOOKS: u32 = 60;

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
    /// How long to wait for a sign of life of another session that holds the data set: [`PATIENCE`], but in tests.
    pub patience: Duration,
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
    place: Place,
    set: DataSet,
    /// Number of this measurement on the data set.
    generation: u32,
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

impl Prepared {
    /// Reads the journal and decides whether the run may begin; waits if another session seems to prepare the data
    /// set, and tells `say` so. Writes nothing.
    pub(crate) async fn open(
        driver: &AnyDriver,
        plan: &Plan,
        options: &RunOptions,
        set: &DataSet,
        say: &mut dyn FnMut(String),
    ) -> Result<Self, RunError> {
        let empty = Journal::new(plan, &set.identity);
        let place = Place::new(driver, plan, options);
        let journal = match set.purpose {
            Purpose::Begin => empty,
            Purpose::GoOn | Purpose::Measure { .. } => {
                let mut session = open_control(driver, plan)
                    .await
                    .map_err(RunError::Unreachable)?;
                let marker = read_marker(&mut session, &options.bucket, &options.prefix);
                let marker = timed(plan.timeout_ns, marker)
                    .await
                    .map_err(read(options))?;
                let ours = marker.is_some_and(|marker| marker.run_id == options.run_id);
                let stored = place.read().await.map_err(read(options))?;
                let (mut journal, _) = stored.filter(|_| ours).ok_or_else(|| {
                    RunError::Options(format!(
                        "`{}/{}` holds no data set of run {}: name the target that it was prepared in, and a run \
                         with --prepare-only",
                        options.bucket, options.prefix, options.run_id
                    ))
                })?;
                journal.check(&empty, &options.run_id)?;
                if set.purpose == Purpose::GoOn && journal.incomplete().is_some() {
                    journal = unheld(&place, journal, set.patience, options, say).await?;
                }
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
                place,
                set: set.clone(),
                generation: 0,
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
        self.generation
    }

    fn measures(&self) -> bool {
        matches!(self.set.purpose, Purpose::Measure { .. })
    }

    /// Writes the journal before the first object, and before each measurement. A session that prepares holds the data
    /// set from now on.
    pub(crate) async fn note(&mut self, options: &RunOptions) -> Result<(), RunError> {
        let failed =
            |error| RunError::of_bucket(&options.bucket, "writing the data set's journal", error);
        if self.measures() {
            let counted = self.place.change(|journal| {
                journal.runs += 1;
                Ok::<(), RunError>(())
            });
            let counted = counted.await.map_err(failed)??;
            self.generation = counted.runs - 1;
            return Ok(());
        }
        let mine = Lease::new();
        if self.set.purpose == Purpose::Begin {
            self.journal.lease = Some(mine.clone());
            self.place.create(&self.journal).await.map_err(failed)?;
        } else if self.incomplete().is_some() {
            // Given up by its holder, whose lease this is.
            let seen = self.journal.lease.clone();
            let taken = self.place.change(|journal| match &journal.lease {
                Some(other) if journal.lease != seen => Err(held(other, options)),
                _ => {
                    journal.lease = Some(mine.clone());
                    Ok(())
                }
            });
            let taken = taken.await.map_err(failed)??;
            // A store without conditional writes lets two sessions take it at the same moment. The later entry stays,
            // and both see whose it is.
            tokio::time::sleep(self.set.patience / LOOKS).await;
            match self.place.read().await.map_err(read(options))? {
                Some((
                    Journal {
                        lease: Some(other), ..
                    },
                    _,
                )) if !other.is_of(&mine) => {
                    return Err(held(&other, options));
                }
                _ => self.journal = taken,
            }
        } else {
            return Ok(());
        }
        let keeper = Keeper::start(self.place.clone(), self.journal.clone(), mine)?;
        self.keeper = Some(keeper);
        Ok(())
    }

    /// Makes phase number `index` of the context's plan prepare what is missing. Returns whether anything is to be
    /// done.
    pub(crate) fn begin(
        &mut self,
        context: &mut RunContext<'_>,
        index: usize,
    ) -> Result<bool, RunError> {
        let phase = &context.plan.phases[index];
        let set = keyset(phase);
        let part = self.journal.of(set).part();
        let (Some(keeper), false) = (&self.keeper, part.missing.is_empty()) else {
            return Ok(false);
        };
        let options = context.options;
        if options.remote.is_none() {
            let progress = Arc::new(Progress::new(&part));
            keeper.begin(set, Arc::clone(&progress) as Arc<dyn Known>)?;
            context.progress = Some(progress);
        } else {
            let workers = match &phase.works[0].model {
                ModelPlan::Closed(closed) => closed.workers,
                _ => 0,
            };
            let agents = options.share.of;
            let each = (0..agents).map(|agent| crew(workers, (agent, agents)).count() as u32);
            let filling = Arc::new(Filling::new(&part, &each.collect::<Vec<_>>()));
            keeper.begin(set, Arc::clone(&filling) as Arc<dyn Known>)?;
            context.filling = Some(filling);
        }
        Ok(true)
    }

    /// The phase has ended.
    ///
    /// # Errors
    /// When another session holds the data set.
    pub(crate) fn phase_ended(&mut self, context: &mut RunContext<'_>) -> Result<(), RunError> {
        if let Some(progress) = context.progress.take() {
            progress.settle();
        }
        context.filling = None;
        let Some(keeper) = &self.keeper else {
            return Ok(());
        };
        let (journal, held) = keeper.phase_ended();
        self.journal = journal;
        held
    }

    /// The session has ended: writes the last entry of the journal. Returns a warning if that failed.
    pub(crate) fn end(&mut self) -> Option<String> {
        let error = self.keeper.take()?.end()?;
        Some(format!(
            "the journal of the data set could not be written ({error}); going on will write some objects once more, \
             and waits first to see whether this session has ended"
        ))
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
