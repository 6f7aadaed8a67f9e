//! The closed loop.

use bucketload_core::plan::{ClosedPlan, GapLaw};

use crate::resolve::models::{DescribedModel, workers};
use crate::spec::law::ThinkSpec;

impl DescribedModel for ClosedPlan {
    fn in_outlook(&self) -> String {
        match ThinkSpec(self.think).to_string().as_str() {
            "none" => workers(self.workers),
            think => format!("{}, think time {think}", workers(self.workers)),
        }
    }

    fn in_results(&self) -> String {
        let ms = |ns: u64| ns as f64 / 1e6;
        let pause = match self.think {
            GapLaw::None => String::new(),
            GapLaw::Constant { ns } => format!(", {} ms think time", ms(ns)),
            GapLaw::Exponential { mean_ns } => {
                format!(", exponential think time of mean {} ms", ms(mean_ns))
            }
            GapLaw::Uniform { min_ns, max_ns } => {
                format!(", think time {} to {} ms", ms(min_ns), ms(max_ns))
            }
        };
        workers(self.workers) + &pause
    }
}
