//! The parts of response times, and the slowest requests.

use bucketload_core::record::Part;
use bucketload_core::slowest::SlowRequest;
use bucketload_core::tally::Cell;

use crate::result::{Latency, PartResult, SlowestRequests};

/// Number of slowest requests that a result lists individually.
const TOP: usize = 20;

/// The parts of the response time of a class.
pub(crate) fn parts(cell: &Cell) -> Vec<PartResult> {
    let whole: u128 = Part::ALL.into_iter().map(|p| cell.anatomy.sum_ns(p)).sum();
    Part::ALL
        .into_iter()
        .filter_map(|part| {
            let all = cell.anatomy.over(part, cell.ok)?;
            Some(PartResult {
                part,
                share: cell.anatomy.sum_ns(part) as f64 / whole.max(1) as f64,
                occurred: cell.anatomy.part(part)?.count(),
                time: Latency::of(&all),
            })
        })
        .collect()
}

/// Summary of the slowest requests, which are sorted slowest first.
pub(crate) fn slowest(requests: &[SlowRequest]) -> SlowestRequests {
    let n = requests.len().max(1) as f64;
    let mean = |part: Part| {
        let times = requests.iter().flat_map(|r| &r.parts);
        let sum: u64 = times.filter(|(p, _)| *p == part).map(|(_, ns)| ns).sum();
        sum as f64 / n
    };
    SlowestRequests {
        kept: requests.len() as u64,
        parts: Part::ALL
            .into_iter()
            .map(|part| (part, mean(part)))
            .filter(|(_, ns)| *ns > 0.0)
            .collect(),
        top: requests.iter().take(TOP).cloned().collect(),
    }
}
