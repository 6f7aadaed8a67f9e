//! The results of each class of operations.

use bucketload_core::error::ErrorKind;
use bucketload_core::plan::{ModelPlan, PhasePlan};
use bucketload_core::tally::Cell;

use super::gather::{self, ClassGather, PhaseGather};
use super::rates::rate;
use super::scan::{ClassKey, PhaseScan};
use super::{accounting, anatomy, work_name};
use crate::result::figure::{Computed, Outcome};
use crate::result::{Cdf, ClassResult, ErrorCount, Latency};
use crate::rundir::Manifest;

pub(super) fn classes(
    manifest: &Manifest,
    plan: &PhasePlan,
    scan: &PhaseScan,
    gathered: &PhaseGather,
) -> Vec<ClassResult> {
    // A replay reserves room for every operation that a trace could contain.
    let occurs = |key: &ClassKey| {
        let work = plan.works.get(usize::from(key.0));
        let replay = work.is_some_and(|work| matches!(work.model, ModelPlan::Replay(_)));
        !replay || scan.classes.get(key).is_some_and(|class| class.ended > 0)
    };
    gathered
        .classes
        .iter()
        .filter(|(key, _)| occurs(key))
        .map(|(key, class)| {
            let empty;
            let cell = match gather::find(&gathered.tally, key.0, key.1) {
                Some(cell) => cell,
                None => {
                    empty = Cell::new(key.0, key.1);
                    &empty
                }
            };
            class_result(manifest, plan, *key, cell, class)
        })
        .collect()
}

fn class_result(
    manifest: &Manifest,
    plan: &PhasePlan,
    key: ClassKey,
    cell: &Cell,
    class: &ClassGather,
) -> ClassResult {
    let mut errors: Vec<ErrorCount> = ErrorKind::ALL
        .into_iter()
        .map(|kind| ErrorCount {
            kind,
            count: cell.failed[kind as usize],
        })
        .filter(|error| error.count > 0)
        .collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    let successes = class.successes.bins();
    let mut result = ClassResult {
        work: key.0,
        work_name: work_name(plan, key.0),
        class: key.1,
        ok: cell.ok,
        failed: cell.failures(),
        cancelled: cell.cancelled(),
        retries: cell.retries,
        bytes: cell.bytes,
        errors,
        ops_per_s: rate(successes, |b| b.ok, |b| b.len_ns),
        bytes_per_s: rate(successes, |b| b.bytes, |b| b.len_ns),
        response: Latency::of(&cell.response),
        service: Latency::of(&cell.service),
        ttfb: Latency::of(&cell.ttfb),
        failed_response: Latency::of(&cell.failed_response),
        anatomy: anatomy::parts(cell),
        bandwidth: plan
            .works
            .get(usize::from(key.0))
            .and_then(|work| accounting::bandwidth(&manifest.plan.keysets, work, cell)),
        response_cdf: Cdf::of(&cell.response),
        service_cdf: Cdf::of(&cell.service),
        over_time: class.over_time.clone(),
        heat_map: class.heat_map(),
        figures: Computed::default(),
    };
    result.figures = Computed::of(&Outcome::from(&result));
    result
}
