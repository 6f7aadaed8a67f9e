//! A key-value cache of a language model: what its works share, and the index of its blocks.

mod index;

use std::fmt::Write as _;
use std::sync::Arc;

use bucketload_core::generate::users::UserGen;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{
    KvcachePlan, LatePolicy, MixEntry, OnAbsent, ReplayPart, ReplayPlan, ReplayTiming,
};

pub(crate) use index::Index;

use crate::feed::Queue;

/// The requests of one work, and how it names objects.
pub(crate) struct KvWork {
    pub(crate) plan: KvcachePlan,
    /// How the reader of the trace delivers the blocks.
    pub(crate) replay: ReplayPlan,
    /// One queue: a single thread performs the work, because it keeps the index.
    pub(crate) queues: [Option<Arc<Queue>>; 1],
    pub(crate) names: KvNames,
    pub(crate) entries: KvEntries,
    /// Who asks, in place of a trace.
    pub(crate) users: Option<Arc<UserGen>>,
}

/// Indices of the mix entries.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KvEntries {
    pub(crate) head: u16,
    pub(crate) get: u16,
    pub(crate) put: u16,
    pub(crate) delete: u16,
}

/// Names of objects: `PREFIX MODEL/RANKS/RANK/BLOCK`, with `/LAYER` if each layer is an object. `USER-REQUEST` takes the
/// place of the block where users ask.
#[derive(Clone, Debug)]
pub(crate) struct KvNames {
    prefix: String,
    layers: u64,
    by_user: bool,
}

impl KvNames {
    /// Appends the name of part `part` of block `block`.
    pub(crate) fn push(&self, block: u64, part: u64, out: &mut String) {
        let (rank, layer) = (part / self.layers, part % self.layers);
        // Writing to a string cannot fail.
        let _ = match self.by_user {
            true => write!(
                out,
                "{}{rank}/{}-{}",
                self.prefix,
                block >> 32,
                block as u32
            ),
            false => write!(out, "{}{rank}/{block}", self.prefix),
        };
        if self.layers > 1 {
            let _ = write!(out, "/{layer}");
        }
    }

    /// Length of the longest name, bytes.
    pub(crate) fn max_len(&self) -> usize {
        // Three numbers of at most 20 digits.
        self.prefix.len() + 62
    }
}

impl KvWork {
    /// The work of `plan` with the mix `mix`, whose names begin with `prefix`. `users` makes the requests of users.
    pub(crate) fn new(
        plan: &KvcachePlan,
        mix: &[MixEntry],
        prefix: &str,
        users: Option<UserGen>,
    ) -> Self {
        let at = |class: OpClass| mix.iter().position(|entry| entry.class == class);
        let at = |class| at(class).unwrap_or(0) as u16;
        Self {
            replay: ReplayPlan {
                trace: plan.trace.clone(),
                part: ReplayPart::Requests,
                timing: match plan.speed {
                    0.0 => ReplayTiming::Asap,
                    speed => ReplayTiming::Original { speed },
                },
                late: LatePolicy::Issue,
                per_key: false,
                on_absent: OnAbsent::Expect,
                max_in_flight: plan.max_in_flight,
                buckets: Vec::new(),
            },
            queues: [Some(Arc::default())],
            names: KvNames {
                prefix: format!("{prefix}{}/{}/", plan.model, plan.ranks),
                layers: u64::from(plan.layers),
                by_user: users.is_some(),
            },
            users: users.map(Arc::new),
            entries: KvEntries {
                head: at(OpClass::Head),
                get: at(OpClass::Get),
                put: at(plan.put_class()),
                delete: at(OpClass::DeleteMany),
            },
            plan: plan.clone(),
        }
    }
}
