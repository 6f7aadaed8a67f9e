//! The phases of MD-Workbench in IO500's extended mode (docs/spec/io500-mdworkbench.md section B.4).

use bucketload_core::plan::ranks::{RankTask, RanksPlan};
use bucketload_core::ranks::PhaseRanks;
use bucketload_core::sink::PhaseEnd;

use super::measure::{Seen, wall_s};
use super::score::PhaseScore;
use super::{Group, Phase};
use crate::rundir::Manifest;

/// Operations on an object in the benchmark: stat, read, delete, create.
const OPERATIONS: f64 = 4.0;
/// Factor by which the two iterations may differ without a warning.
const APART: f64 = 2.0;

/// The score of a phase. That of the benchmark is the rate of its second iteration; creating and deleting the data sets
/// have none. The pair holds the phase before it in the plan, and itself.
pub(super) fn score(
    phase: &Phase,
    model: &RanksPlan,
    (first, seen): (Option<&Seen>, Option<&Seen>),
    manifest: &Manifest,
) -> PhaseScore {
    let mut out = PhaseScore {
        name: phase.name.to_owned(),
        ..PhaseScore::default()
    };
    let scored = phase.extended != Group::None;
    let Some((started_ns, ended_ns, ranks)) = seen.and_then(complete) else {
        out.invalid.push("Not run to completion".to_owned());
        return out;
    };
    let mut line = |key: &str, value: String| out.lines.push((key.to_owned(), value));
    line("mapping", model.mapping.name().to_owned());
    let mut failed = ranks.sum(|rank| rank.failed);
    let mut requests = failed + ranks.sum(|rank| rank.ops);
    let mut began_ns = started_ns;
    if scored {
        let Some((first_ns, _, first)) = first.and_then(complete) else {
            out.invalid.push("Not exactly 2 iterations".to_owned());
            return out;
        };
        began_ns = first_ns;
        failed += first.sum(|rank| rank.failed);
        requests += first.sum(|rank| rank.ops + rank.failed);
        let rate = |ranks: &PhaseRanks, start_ns: u64| rate(model, ranks, start_ns);
        let (before, counts) = (rate(first, first_ns), rate(ranks, started_ns));
        let longest = |ranks: &PhaseRanks| {
            let longest = ranks.ranks.iter().map(|rank| rank.longest_ns).max();
            format!("{:.6}", longest.unwrap_or(0) as f64 / 1e9)
        };
        line("maxOpTime", longest(ranks));
        line("scoreIteration0", format!("{before:.6}"));
        line("maxOpTime0", longest(first));
        if before.max(counts) > APART * before.min(counts) {
            line(
                "warning",
                "the two iterations differ by more than a factor of 2".to_owned(),
            );
        }
        out.score = counts;
    }
    out.lines
        .push(("requests".to_owned(), requests.to_string()));
    (out.start_unix_s, out.end_unix_s) = (wall_s(manifest, began_ns), wall_s(manifest, ended_ns));
    out.seconds = ended_ns.saturating_sub(began_ns) as f64 / 1e9;
    if failed > 0 {
        out.invalid.push(format!("{failed} requests failed"));
    }
    if scored && out.score <= 0.0 {
        out.invalid.push("Score of 0".to_owned());
    }
    out
}

/// Start, end and ranks of a phase that completed.
fn complete(seen: &Seen) -> Option<(u64, u64, &PhaseRanks)> {
    let (ended_ns, end) = seen.ended?;
    let ranks = seen.ranks.as_ref()?;
    (end == PhaseEnd::Complete).then_some((seen.started_ns?, ended_ns, ranks))
}

/// 1000 operations per second over the time of the longest rank (section B.3).
fn rate(model: &RanksPlan, ranks: &PhaseRanks, start_ns: u64) -> f64 {
    let RankTask::Workbench { sets, .. } = model.task else {
        return 0.0;
    };
    let longest = ranks
        .ranks
        .iter()
        .map(|rank| rank.last_ns)
        .max()
        .unwrap_or(0);
    let seconds = longest.saturating_sub(start_ns) as f64 / 1e9;
    // Only steps without failures: with a failure the phase does not count anyway.
    let objects = ranks.sum(|rank| rank.good) as f64 * f64::from(sets);
    if seconds > 0.0 {
        OPERATIONS * objects / seconds / 1000.0
    } else {
        0.0
    }
}
