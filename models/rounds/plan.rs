//! Rounds of writing, listing and deleting by workers that wait for each other.

use serde::{Deserialize, Serialize};

use crate::generate::LawError;
use crate::plan::{Model, Plan};

/// Rounds of writing, listing, deleting and listing again (docs/spec/scenarios.md section 10,
/// `list-consistency`).
///
/// Object `j` of iteration `i` is object `i + j · iterations` of the key set. The key set has as many shards
/// as there are iterations, so each iteration has its own prefix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundsPlan {
    /// Workers that write and delete concurrently.
    pub workers: u32,
    /// Number of rounds.
    pub iterations: u32,
    /// Objects that each worker writes in a round.
    pub objects: u32,
    /// Share of the objects to delete in a round.
    pub delete: f64,
    /// How long to list until the listing is correct, nanoseconds.
    pub limit_ns: u64,
}

impl Model for RoundsPlan {
    fn max_sessions(&self) -> u32 {
        self.workers
    }

    fn ends_by_itself(&self) -> bool {
        true
    }

    fn fingerprint(
        &self,
        _: &Plan,
        _: (usize, usize),
        put: &mut dyn FnMut(u64),
    ) -> Result<(), LawError> {
        // These values determine what a round does.
        put(u64::from(self.workers));
        put(u64::from(self.iterations));
        put(u64::from(self.objects));
        put(self.delete.to_bits());
        Ok(())
    }
}
