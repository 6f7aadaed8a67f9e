//! The open loop.

use bucketload_core::plan::{ArrivalLaw, OpenPlan};

use crate::resolve::models::DescribedModel;
use crate::spec::law::ArrivalSpec;

impl DescribedModel for OpenPlan {
    fn in_outlook(&self) -> String {
        let law = ArrivalSpec {
            law: self.arrival.clone(),
        };
        let cap = self.max_in_flight;
        format!("open loop, {law}, at most {cap} in flight")
    }

    fn in_results(&self) -> String {
        let (law, cap) = (arrivals(&self.arrival), self.max_in_flight);
        format!("open loop, {law}, at most {cap} in flight")
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn arrivals(law: &ArrivalLaw) -> String {
    match law {
        ArrivalLaw::Constant { rate } => format!("constant {rate}/s"),
        ArrivalLaw::Poisson { rate } => format!("Poisson {rate}/s"),
        ArrivalLaw::LognormalGaps { rate, cv } => {
            format!("log-normal gaps {rate}/s (CV {cv})")
        }
        ArrivalLaw::LognormalRate { rate, cv, slot_ns } => format!(
            "log-normal rate {rate}/s (CV {cv} per {} s)",
            *slot_ns as f64 / 1e9
        ),
        ArrivalLaw::PeriodicBatch {
            clients,
            period_ns,
            min,
            max,
            spread_ns,
            gap_ns,
        } => {
            let how = match (*spread_ns, *gap_ns) {
                (0, 0) => "at once".to_owned(),
                (0, gap) => format!("{} ms apart", ms(gap)),
                (spread, _) => format!("within {} s", spread as f64 / 1e9),
            };
            let period_s = *period_ns as f64 / 1e9;
            format!("{min} to {max} {how} every {period_s} s from each of {clients} clients")
        }
        ArrivalLaw::Ramp { from, to, over_ns } => {
            format!("{from} to {to}/s over {} s", *over_ns as f64 / 1e9)
        }
        ArrivalLaw::Steps { rates, step_ns } => format!(
            "steps of {} s at {}/s",
            *step_ns as f64 / 1e9,
            rates
                .iter()
                .map(f64::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}
