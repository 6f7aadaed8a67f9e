//! Ranks.

use bucketload_core::generate::LawError;
use bucketload_core::plan::{Plan, RanksPlan};

use crate::resolve::dryrun::Rates;
use crate::resolve::models::DescribedModel;

impl DescribedModel for RanksPlan {
    fn in_outlook(&self) -> String {
        format!("{} ranks", self.ranks)
    }

    fn in_results(&self) -> String {
        let wall = match (self.stonewall_ns, self.wear_out) {
            (0, _) => String::new(),
            (ns, true) => format!(", stonewall of {} s with wear-out", ns as f64 / 1e9),
            (ns, false) => format!(", stonewall of {} s", ns as f64 / 1e9),
        };
        let names = self.mapping.name();
        format!("{} ranks, names as {names}{wall}", self.ranks)
    }

    /// The number of operations is decided during the run.
    fn rates(&self, _: &Plan, _: usize, _: usize) -> Result<Rates, LawError> {
        Ok(Rates::default())
    }
}
