//! A validated mix entry with everything precomputed for its operations.

use super::FRESH_STRIDE;
use super::check::{check_count, empty, error, role};
use super::latest::Latest;
use crate::divisor::Divisor;
use crate::generate::LawError;
use crate::generate::objects::{Population, Ranking};
use crate::generate::popularity::Popularity;
use crate::generate::sizes::SizeSampler;
use crate::op::OpClass;
use crate::plan::{KeyLaw, MixEntry, PhaseKind, PhasePlan, Plan, SizeLaw};

/// How an entry chooses the object.
#[derive(Clone, Debug)]
pub(super) enum Keys {
    /// `seq · stride` modulo `count`.
    Sequential { count: Divisor, stride: u64 },
    /// By the position in the worker's chain; see [`super::Chain`].
    Chained { count: u64 },
    /// A new object per operation.
    Fresh,
    /// By popularity rank.
    Ranked {
        popularity: Popularity,
        ranking: Ranking,
        /// Whether `ranking` also determines sizes.
        ranks_sizes: bool,
    },
    /// By age.
    Latest(Box<Latest>),
}

/// The operation's effect on the object's size and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Neither size nor version matters.
    Plain,
    /// Reads the object or its metadata.
    Read,
    /// Reads a range of the object.
    ReadRange,
    /// Reads a part of the object or its metadata.
    ReadPart,
    /// Reads a version of the object, which may have any size.
    ReadVersion,
    /// Writes the initial content of an initial object.
    WriteInitial,
    /// Writes a new object.
    WriteFresh,
    /// Writes a new version of an existing object.
    Overwrite,
    /// Copies the object to a new one.
    Copy,
}

/// The ranges of a range-get entry.
#[derive(Clone, Debug)]
pub(super) struct RangeLaw {
    pub(super) len: SizeSampler,
    pub(super) align: Divisor,
    /// Smallest size that any object of the key set can have: the part that can certainly be read if the size
    /// is unknown.
    pub(super) least_size: u64,
}

/// A mix entry.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) class: OpClass,
    pub(super) role: Role,
    pub(super) keyset: u16,
    /// Index of the key set's population in the generator.
    pub(super) set: usize,
    pub(super) keys: Keys,
    /// Whether a copy with a fresh key law draws its source from a separate stream.
    pub(super) from_source_stream: bool,
    /// Sizes to write, if the entry has its own law.
    pub(super) sizes: Option<SizeSampler>,
    pub(super) range: Option<RangeLaw>,
    pub(super) count: u64,
    pub(super) pages: u32,
    /// Index of the fresh object of operation 0.
    pub(super) fresh_base: u64,
    pub(super) probability: f64,
}

/// Whether the entry creates objects beyond the initial ones.
fn creates_fresh(entry: &MixEntry) -> bool {
    let class = entry.class;
    let creates = class.creates_object() || class == OpClass::Touch;
    class.has_source() || creates && entry.keys == KeyLaw::Fresh
}

/// Whether phase `phase` prepares the initial content of a key set. Later preparations of the same key set write
/// further versions.
fn writes_initial(plan: &Plan, phase: usize, keyset: u16) -> bool {
    let prepares = |plan: &PhasePlan| {
        let mut entries = plan.works.iter().flat_map(|work| &work.mix);
        plan.kind == PhaseKind::Prepare && entries.any(|entry| entry.keyset == keyset)
    };
    prepares(&plan.phases[phase]) && !plan.phases[..phase].iter().any(prepares)
}

/// Index of the first fresh object of a work in a key set.
fn fresh_base(plan: &Plan, (phase, work): (usize, usize), keyset: u16, count: u64) -> u64 {
    let writes = |mix: &[MixEntry]| {
        mix.iter()
            .any(|entry| entry.keyset == keyset && creates_fresh(entry))
    };
    let earlier = plan.phases[..=phase]
        .iter()
        .enumerate()
        .flat_map(|(p, plan)| {
            plan.works
                .iter()
                .enumerate()
                .map(move |(w, work)| (p, w, work))
        })
        .take_while(|&(p, w, _)| (p, w) != (phase, work))
        .filter(|(_, _, work)| writes(&work.mix))
        .count() as u64;
    count.saturating_add(earlier * FRESH_STRIDE)
}

/// Number of works in the whole plan that create fresh objects in a key set.
pub(super) fn writers(plan: &Plan, keyset: u16) -> u64 {
    let creates = |entry: &MixEntry| entry.keyset == keyset && creates_fresh(entry);
    let works = plan.phases.iter().flat_map(|phase| &phase.works);
    works.filter(|work| work.mix.iter().any(creates)).count() as u64
}

/// Smallest object that any write of the plan can put into the key set.
fn least_size(plan: &Plan, keyset: u16, initial: &SizeSampler) -> u64 {
    plan.phases
        .iter()
        .flat_map(|phase| &phase.works)
        .flat_map(|work| &work.mix)
        .filter(|entry| entry.keyset == keyset && entry.class.writes_body())
        .filter_map(|entry| SizeSampler::new(entry.size.as_ref()?).ok())
        .map(|sizes| sizes.support().0)
        .fold(initial.support().0, u64::min)
}

fn sampler(field: &str, law: &SizeLaw) -> Result<SizeSampler, LawError> {
    SizeSampler::new(law).map_err(|e| e.within(field))
}

impl Entry {
    /// Moves the fresh objects up by `strides` times [`FRESH_STRIDE`].
    pub(super) fn shift_fresh(&mut self, strides: u64) {
        let by = strides.saturating_mul(FRESH_STRIDE);
        self.fresh_base = self.fresh_base.saturating_add(by);
        if let Keys::Latest(latest) = &mut self.keys {
            latest.shift_fresh(by);
        }
    }

    /// Builds entry `i` of the mix of a work; `sets` are the populations that the work uses.
    pub(super) fn new(
        plan: &Plan,
        (phase, work, i): (usize, usize, usize),
        sets: &[(u16, Population)],
    ) -> Result<Self, LawError> {
        let mix = &plan.phases[phase].works[work].mix;
        let entry = &mix[i];
        let Some(set) = sets.iter().position(|set| set.0 == entry.keyset) else {
            return Err(error("keyset", "does not exist"));
        };
        let population = &sets[set].1;
        let buckets = &plan.keysets[usize::from(entry.keyset)].buckets;
        let count = match buckets {
            Some(buckets) if entry.class.on_bucket() => buckets.count,
            _ => population.count(),
        };
        let base = fresh_base(plan, (phase, work), entry.keyset, count);
        let prepare = writes_initial(plan, phase, entry.keyset);
        let role = role(entry, population, prepare)?;
        let total: f64 = mix.iter().map(|entry| entry.weight).sum();
        let batch = check_count(entry, count)?;
        let keys = match entry.keys {
            KeyLaw::Fresh if !entry.class.has_source() => Keys::Fresh,
            KeyLaw::Sequential => {
                // Rejects a key set without objects.
                Popularity::new(&entry.keys, count).map_err(|e| empty(e, entry))?;
                Keys::Sequential {
                    count: Divisor::new(count),
                    stride: if entry.class == OpClass::DeleteMany {
                        batch
                    } else {
                        1
                    },
                }
            }
            KeyLaw::Chained => {
                Popularity::new(&entry.keys, count).map_err(|e| empty(e, entry))?;
                Keys::Chained { count }
            }
            KeyLaw::Latest { theta, lag } => {
                let writers = mix.iter().map(|other| {
                    other.keyset == entry.keyset
                        && other.class.writes_body()
                        && other.keys == KeyLaw::Fresh
                });
                let writers: Box<[bool]> = writers.collect();
                let weights = mix.iter().zip(&writers).filter(|(_, writes)| **writes);
                let share = weights.map(|(other, _)| other.weight).sum::<f64>() / total;
                let latest = Latest::new((theta, lag), count, base, writers, share);
                Keys::Latest(Box::new(latest.map_err(|e| empty(e, entry))?))
            }
            _ => {
                let ranking = Ranking::new(&entry.keys, plan.seed, entry.keyset, count);
                Keys::Ranked {
                    popularity: Popularity::new(&entry.keys, count).map_err(|e| empty(e, entry))?,
                    ranks_sizes: ranking.same(population.ranking()),
                    ranking,
                }
            }
        };
        let range = match &entry.range {
            None => None,
            Some(range) => {
                if range.align == 0 {
                    return Err(error("range.align", "is 0, must be at least 1"));
                }
                let least_size = least_size(plan, entry.keyset, population.sizes());
                if population.overwritten() && least_size == 0 {
                    let reason = "cannot be read from a key set whose objects may be overwritten \
                                  by empty ones; raise the smallest size to at least 1 byte";
                    return Err(error("range", reason));
                }
                Some(RangeLaw {
                    len: sampler("range.len", &range.len)?,
                    align: Divisor::new(range.align),
                    least_size,
                })
            }
        };
        Ok(Self {
            class: entry.class,
            role,
            keyset: entry.keyset,
            set,
            keys,
            from_source_stream: entry.class.has_source() && entry.keys == KeyLaw::Fresh,
            sizes: match &entry.size {
                None => None,
                Some(law) => Some(sampler("size", law)?),
            },
            range,
            count: batch,
            pages: entry.pages,
            fresh_base: base,
            probability: entry.weight / total,
        })
    }
}
