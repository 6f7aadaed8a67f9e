//! How much a run of IO500 is going to write.
//!
//! A write phase ends at its stonewall, so its volume depends on the target's rate: stated by the user, or measured by
//! a small file on the target's file system. A short phase also fills the page cache, which takes more than the disk.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use bucketload_core::plan::ranks::RankTask;
use bucketload_core::plan::{ModelPlan, Plan};
use bucketload_results::units;

use crate::room;

/// Size of the file that measures the rate, and the longest time for it.
const PROBE_BYTES: usize = 64 << 20;
const PROBE_LIMIT: Duration = Duration::from_secs(5);
/// Size of the writes.
const WRITE: usize = 2 << 20;
/// Bytes that a small file takes on a disk.
const BLOCK: u64 = 4096;
/// Share of the available memory that can hold data that is not on the disk yet: the largest usual `vm.dirty_ratio`.
const DIRTY: f64 = 0.4;
/// What to do when there is no room.
const REMEDY: &str = "shorten the stonewall (--set debug.stonewall-time=N), write less \
                      (--set ior-easy.blockSize=SIZE, --set ior-hard.segmentCount=N), or state the rate that you \
                      expect (--expect-rate)";

/// A phase that writes: its name, the most that its plan writes, and its stonewall in seconds.
#[derive(Clone, Debug, PartialEq)]
struct Writes {
    name: String,
    most: u64,
    seconds: f64,
}

/// The rates of a target, bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rates {
    /// Into the page cache, by all ranks together.
    cached: f64,
    /// Onto the disk.
    lasting: f64,
    /// Bytes that the page cache takes beyond that.
    cache_bytes: f64,
}

/// What the run is going to write, in words.
///
/// # Errors
/// When the file system of `root` has no room for it, with the remedy; or the rate cannot be measured.
pub(crate) fn check(
    plan: &Plan,
    root: Option<&Path>,
    stated: Option<u64>,
) -> Result<Option<String>, String> {
    let writes = writes(plan);
    if writes.is_empty() {
        return Ok(None);
    }
    let most: u64 = writes
        .iter()
        .fold(0, |sum, phase| sum.saturating_add(phase.most));
    let (rates, how) = match (stated, root) {
        (Some(rate), _) => {
            let rates = Rates {
                cached: rate as f64,
                lasting: rate as f64,
                cache_bytes: 0.0,
            };
            (
                rates,
                format!("at the {}/s of --expect-rate", units::bytes(rate as f64)),
            )
        }
        (None, Some(root)) => {
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            let rates = measure(root, cores as f64)
                .map_err(|e| format!("{}: the rate cannot be measured: {e}", root.display()))?;
            let lasting = units::bytes(rates.lasting);
            (
                rates,
                format!("at the {lasting}/s measured there, and what the page cache takes"),
            )
        }
        (None, None) => {
            let names: Vec<String> = writes
                .iter()
                .map(|phase| format!("{} for {} s", phase.name, phase.seconds))
                .collect();
            return Ok(Some(format!(
                "the run writes at the target's rate: {}, at most {}; state the rate to know the volume \
                 (--expect-rate)",
                names.join(", "),
                units::bytes(most as f64)
            )));
        }
    };
    let parts: Vec<(&str, f64)> = writes
        .iter()
        .map(|phase| (phase.name.as_str(), volume(phase, rates)))
        .collect();
    let total: f64 = parts.iter().map(|(_, bytes)| bytes).sum();
    let list: Vec<String> = parts
        .iter()
        .map(|(name, bytes)| format!("{name} {}", units::bytes(*bytes)))
        .collect();
    let said = format!(
        "the run writes about {} ({}), {how}",
        units::bytes(total),
        list.join(", ")
    );
    room::fits(&said, total, root, REMEDY).map(Some)
}

/// The phases that write, in order.
fn writes(plan: &Plan) -> Vec<Writes> {
    let phases = plan.phases.iter().flat_map(|phase| &phase.works);
    phases
        .filter_map(|work| {
            let ModelPlan::Ranks(ranks) = &work.model else {
                return None;
            };
            let bytes = match ranks.task {
                RankTask::EasyTransfer { bytes } | RankTask::HardTransfer { bytes } => bytes,
                RankTask::HardItem => BLOCK,
                _ => return None,
            };
            let steps = ranks.steps.saturating_mul(u64::from(ranks.ranks));
            ranks.wear_out.then(|| Writes {
                name: work.name.clone(),
                most: steps.saturating_mul(bytes),
                seconds: ranks.stonewall_ns as f64 / 1e9,
            })
        })
        .collect()
}

/// What a phase writes until its stonewall, bytes: until then the slowest of page cache, disk and plan decides.
fn volume(phase: &Writes, rates: Rates) -> f64 {
    let cached = rates.cached * phase.seconds;
    let lasting = rates.cache_bytes + rates.lasting * phase.seconds;
    cached.min(lasting).min(phase.most as f64)
}

/// Measures the rates with a file that has no name and disappears by itself.
fn measure(root: &Path, writers: f64) -> io::Result<Rates> {
    let mut file: File = tempfile::tempfile_in(root)?;
    let buffer = vec![0xa5; WRITE];
    let began = Instant::now();
    let mut written = 0;
    while written < PROBE_BYTES && began.elapsed() < PROBE_LIMIT {
        file.write_all(&buffer)?;
        written += WRITE;
    }
    let cached = began.elapsed();
    file.sync_data()?;
    let lasting = began.elapsed();
    let rate = |time: Duration| written as f64 / time.as_secs_f64().max(1e-9);
    Ok(Rates {
        cached: rate(cached) * writers,
        lasting: rate(lasting),
        cache_bytes: DIRTY * available_memory().unwrap_or(0) as f64,
    })
}

/// Bytes of memory that programs can still take.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::{Rates, Writes, volume};

    #[test]
    fn the_slowest_of_cache_disk_and_plan_decides() {
        let phase = |seconds, most| Writes {
            name: String::new(),
            most,
            seconds,
        };
        let rates = Rates {
            cached: 1000.0,
            lasting: 10.0,
            cache_bytes: 5000.0,
        };
        assert_eq!(volume(&phase(1.0, 1 << 40), rates), 1000.0, "page cache");
        assert_eq!(volume(&phase(300.0, 1 << 40), rates), 8000.0, "disk");
        assert_eq!(volume(&phase(300.0, 77), rates), 77.0, "plan");
    }
}
