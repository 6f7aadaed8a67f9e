//! MD-Workbench's phases: its rate and its quantiles (docs/spec/io500-mdworkbench.md section B.3).

use std::path::Path;

use bucketload_results::mdworkbench::{self, Kind, StageKind};

/// A phase of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// `precreate`, `benchmark` or `cleanup`.
    pub name: &'static str,
    /// Operations per second as counted by the original.
    pub rate: f64,
    /// MiB per second.
    pub mib_per_s: f64,
    /// Operations that failed.
    pub failed: u64,
    /// Per kind of operation: median, 99th percentile and longest time, seconds.
    pub times_s: Vec<(&'static str, [f64; 3])>,
}

/// The phases of the run in `dir`; empty if its log cannot be read.
#[must_use]
pub fn stages(dir: &Path) -> Vec<Stage> {
    let mut out = Vec::new();
    if mdworkbench::stages(dir, |stage| out.extend(of(stage))).is_err() {
        out.clear();
    }
    out
}

fn of(stage: &mdworkbench::Stage) -> Option<Stage> {
    let name = match stage.kind {
        StageKind::Precreate => "precreate",
        StageKind::Benchmark => "benchmark",
        StageKind::Cleanup => "cleanup",
        StageKind::Audit => return None,
    };
    let seconds = stage.times_s.iter().copied().fold(0.0, f64::max);
    let per_s = |n: f64| if seconds > 0.0 { n / seconds } else { 0.0 };
    let count = |kind: Kind| stage.samples.iter().filter(|s| s.kind == kind).count() as f64;
    let (created, read, deleted) = (count(Kind::Create), count(Kind::Read), count(Kind::Delete));
    let each = if created + deleted > 0.0 { 4.0 } else { 2.0 };
    let times = Kind::ALL.into_iter().filter_map(|kind| {
        let of_kind = stage.samples.iter().filter(|s| s.kind == kind);
        let mut times: Vec<f32> = of_kind.map(mdworkbench::Sample::seconds).collect();
        times.sort_by(f32::total_cmp);
        (!times.is_empty()).then(|| {
            let seven = mdworkbench::quantile::seven(&times);
            (kind.name(), [seven[2], seven[5], seven[6]].map(f64::from))
        })
    });
    Some(Stage {
        name,
        rate: match stage.kind {
            StageKind::Precreate => per_s(created),
            StageKind::Benchmark => per_s(each * read),
            _ => per_s(deleted),
        },
        mib_per_s: per_s((created + read) * stage.bytes as f64 / 1_048_576.0),
        failed: stage.failed.iter().map(|(_, n)| n).sum(),
        times_s: times.collect(),
    })
}
