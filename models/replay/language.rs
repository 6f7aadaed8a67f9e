//! The replay of a trace.

use bucketload_core::plan::{ReplayPlan, ReplayTiming};

use crate::resolve::models::DescribedModel;

impl DescribedModel for ReplayPlan {
    fn in_outlook(&self) -> String {
        match self.timing {
            ReplayTiming::Asap => "replay of a trace, as fast as possible".to_owned(),
            _ => "replay of a trace".to_owned(),
        }
    }

    fn in_results(&self) -> String {
        format!(
            "replay of trace {}, {}, at most {} in flight{}",
            self.trace,
            timing(&self.timing),
            self.max_in_flight,
            match self.per_key {
                true => ", requests wait for the latest change of their key",
                false => "",
            }
        )
    }
}

fn timing(timing: &ReplayTiming) -> String {
    let limit = |rate: f64, unit: &str| match rate > 0.0 {
        true => format!(", at most {rate} {unit}/s"),
        false => String::new(),
    };
    match *timing {
        ReplayTiming::Original { speed: 1.0 } => "at its own times".to_owned(),
        ReplayTiming::Original { speed } => format!("{speed} times as fast as recorded"),
        ReplayTiming::Rate {
            ops_per_s,
            recorded_ops_per_s,
        } => format!("at {ops_per_s}/s on average (recorded: {recorded_ops_per_s}/s)"),
        ReplayTiming::Capped {
            speed,
            ops_per_s,
            bytes_per_s,
        } => format!(
            "{speed} times as fast as recorded{}{}",
            limit(ops_per_s, "requests"),
            limit(bytes_per_s, "bytes")
        ),
        ReplayTiming::Asap => "as fast as the store answers (closed loop)".to_owned(),
    }
}
