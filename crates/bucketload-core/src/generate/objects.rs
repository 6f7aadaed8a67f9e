//! The initial objects of a key set: size and popularity rank as functions of the index.
//!
//! ```text
//!   popularity law ── rank ──Ranking──> object index ── names.rs ──> key
//!                       │                    │
//!     low-discrepancy: F⁻¹(u_rank)    random: F sampled in the stream of the index
//!                       └────────> size <────┘
//! ```
//!
//! The [`Ranking`] between ranks and objects is the identity, the key set's scrambling permutation (one per
//! key set and seed, shared by every scrambled law of every work) or newest first. Sizes assigned by low
//! discrepancy follow the ranking of the key set's *reader*: the first mix entry of the run phases, in plan
//! order, that reads bodies of the key set. Without such an entry it is the first one that uses the key set's
//! initial objects. Without either, the index itself is the rank.

use super::LawError;
use super::permute::Permutation;
use super::rng::{Draws, Purpose, Stream, open_unit};
use super::sizes::SizeSampler;
use crate::plan::{KeyLaw, KeysetPlan, MixEntry, PhaseKind, Plan, SizeAssign};

/// Maps popularity ranks to objects (rank 0 is the most popular).
#[derive(Clone, Debug)]
pub enum Ranking {
    /// Rank r is object r.
    Index,
    /// Rank r is object π(r).
    Scrambled(Permutation),
    /// Rank r is object n-1-r, for the given n.
    Newest(u64),
}

impl Ranking {
    /// The ranking that `keys` uses over the `count` initial objects of key set `keyset`.
    #[must_use]
    pub fn new(keys: &KeyLaw, seed: u64, keyset: u16, count: u64) -> Self {
        match *keys {
            KeyLaw::Zipf { scramble: true, .. }
            | KeyLaw::ZipfMandelbrot { scramble: true, .. }
            | KeyLaw::Hotspot { scramble: true, .. }
            | KeyLaw::Exponential { scramble: true, .. } => {
                Self::Scrambled(Permutation::new(seed, keyset, count))
            }
            KeyLaw::Latest { .. } => Self::Newest(count),
            _ => Self::Index,
        }
    }

    /// The object with rank `rank`, which must be below the number of objects.
    #[inline]
    #[must_use]
    pub fn object(&self, rank: u64) -> u64 {
        match self {
            Self::Index => rank,
            Self::Scrambled(permutation) => permutation.apply(rank),
            Self::Newest(n) => n - 1 - rank,
        }
    }

    /// The rank of object `key`, which must be below the number of objects.
    #[inline]
    #[must_use]
    pub fn rank(&self, key: u64) -> u64 {
        match self {
            Self::Index => key,
            Self::Scrambled(permutation) => permutation.invert(key),
            Self::Newest(n) => n - 1 - key,
        }
    }

    /// Whether both map ranks in the same way. All permutations of one key set are identical.
    pub(crate) fn same(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// The key set's reader, see the module documentation.
fn reader(plan: &Plan, keyset: u16) -> Option<&MixEntry> {
    let entries = || {
        plan.phases
            .iter()
            .filter(|phase| phase.kind == PhaseKind::Run)
            .flat_map(|phase| &phase.works)
            .flat_map(|work| &work.mix)
            .filter(move |entry| entry.keyset == keyset && entry.keys != KeyLaw::Fresh)
    };
    entries()
        .find(|entry| entry.class.reads_body())
        .or_else(|| entries().next())
}

/// The initial objects of a key set.
#[derive(Clone, Debug)]
pub struct Population {
    seed: u64,
    keyset: u16,
    count: u64,
    sizes: SizeSampler,
    fixed_size: Option<u64>,
    assign: SizeAssign,
    overwritten: bool,
    ranking: Ranking,
}

impl Population {
    /// The population of the plan's key set number `keyset`.
    ///
    /// # Errors
    /// If the key set does not exist or its size law is invalid.
    pub fn new(plan: &Plan, keyset: u16) -> Result<Self, LawError> {
        let field = format!("keysets[{keyset}]");
        let Some(set) = plan.keysets.get(usize::from(keyset)) else {
            let reason = format!("does not exist, the plan has {}", plan.keysets.len());
            return Err(LawError::new(field, reason));
        };
        let KeysetPlan { count, assign, .. } = *set;
        if count > 1 << 63 {
            let reason = format!("is {count}, must be at most 2^63");
            return Err(LawError::new("count", reason).within(&field));
        }
        let sizes = SizeSampler::new(&set.size).map_err(|e| e.within("size").within(&field))?;
        let ranking = match reader(plan, keyset) {
            Some(entry) => Ranking::new(&entry.keys, plan.seed, keyset, count),
            None => Ranking::Index,
        };
        Ok(Self {
            seed: plan.seed,
            keyset,
            count,
            fixed_size: sizes.fixed(),
            sizes,
            assign,
            overwritten: set.overwritten,
            ranking,
        })
    }

    /// Number of initial objects.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether sizes and versions change during the run.
    #[must_use]
    pub const fn overwritten(&self) -> bool {
        self.overwritten
    }

    /// The law of sizes.
    #[must_use]
    pub const fn sizes(&self) -> &SizeSampler {
        &self.sizes
    }

    /// The common size of all objects, in bytes, if there is one.
    #[inline]
    pub(crate) const fn fixed_size(&self) -> Option<u64> {
        self.fixed_size
    }

    /// The ranking by which sizes are assigned.
    #[must_use]
    pub const fn ranking(&self) -> &Ranking {
        &self.ranking
    }

    /// The popularity rank of object `key`, from 0.
    ///
    /// # Panics
    /// If `key` is not below [`Population::count`] and the ranking is scrambled.
    #[must_use]
    pub fn rank_of(&self, key: u64) -> u64 {
        self.ranking.rank(key)
    }

    /// Size of initial object `key`, in bytes.
    ///
    /// # Panics
    /// If `key` is not below [`Population::count`] and the ranking is scrambled.
    #[inline]
    #[must_use]
    pub fn object_size(&self, key: u64) -> u64 {
        match self.assign {
            SizeAssign::Random => self.random_size(key),
            SizeAssign::LowDiscrepancy => self.size_at_rank(self.ranking.rank(key)),
        }
    }

    /// Size in bytes of initial object `key`, whose rank is `rank`.
    #[inline]
    pub(crate) fn object_size_ranked(&self, key: u64, rank: u64) -> u64 {
        match self.assign {
            SizeAssign::Random => self.random_size(key),
            SizeAssign::LowDiscrepancy => self.size_at_rank(rank),
        }
    }

    #[inline]
    fn random_size(&self, key: u64) -> u64 {
        let stream = Stream::new(Purpose::ObjectSize, 0, self.keyset);
        self.sizes.sample(&mut Draws::new(self.seed, stream, key))
    }

    /// F⁻¹(frac(1/2 + rank·0.6180339887…)): the golden-ratio sequence in 64-bit fixed point, exact at any
    /// rank (docs/spec/scenarios.md section 3.3).
    #[inline]
    fn size_at_rank(&self, rank: u64) -> u64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let position = rank.wrapping_mul(GOLDEN).wrapping_add(1 << 63);
        self.sizes.quantile(open_unit(position))
    }
}
