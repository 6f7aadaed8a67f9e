//! The key-value cache of a language model, in words.

use bucketload_core::plan::KvcachePlan;
use bucketload_core::units;

use crate::resolve::models::DescribedModel;

impl DescribedModel for KvcachePlan {
    fn in_outlook(&self) -> String {
        let pace = match self.speed {
            0.0 => "one request after another".to_owned(),
            1.0 => "at its own times".to_owned(),
            speed => format!("{speed} times as fast as recorded"),
        };
        format!("key-value cache of {}, trace {pace}", self.model)
    }

    fn in_results(&self) -> String {
        let budget = match self.budget_bytes {
            0 => "no budget".to_owned(),
            bytes => format!("budget {}", units::format_size(bytes)),
        };
        format!(
            "{} ({}): blocks of {} tokens and {} in {} objects, lookup by {}, {budget}, at most {} in flight",
            self.in_outlook(),
            self.trace,
            self.block_tokens,
            units::format_size(self.block_bytes),
            self.parts(),
            self.lookup,
            self.max_in_flight
        )
    }
}
