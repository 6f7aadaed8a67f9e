//! The result lines (docs/spec/io500-mdworkbench.md section B.3).

use std::fmt::Write as _;

use super::latency::scientific;
use super::measure::{Kind, Sample, Stage, StageKind};
use super::quantile::seven;
use crate::units::MIB;

/// The line of a phase over all ranks.
#[must_use]
pub fn line(stage: &Stage) -> String {
    figures(stage, &stage.samples, None)
}

/// A line per rank.
#[must_use]
pub fn rank_lines(stage: &Stage) -> String {
    let mut out = String::new();
    for (at, rank) in stage.ranks.ranks.iter().enumerate() {
        let own: Vec<Sample> = stage
            .samples
            .iter()
            .filter(|s| s.rank == rank.rank)
            .copied()
            .collect();
        let _ = writeln!(out, "{}: {}", rank.rank, figures(stage, &own, Some(at)));
    }
    out
}

/// The figures of `samples`: of the rank at position `of`, or of all ranks.
fn figures(stage: &Stage, samples: &[Sample], of: Option<usize>) -> String {
    let times = match of {
        Some(at) => &stage.times_s[at..=at],
        None => &stage.times_s[..],
    };
    let max = times.iter().copied().fold(0.0, f64::max);
    let count = |kind: Kind| samples.iter().filter(|s| s.kind == kind).count() as f64;
    let per_s = |n: f64| if max > 0.0 { n / max } else { 0.0 };
    let mut out = String::new();
    let name = match stage.kind {
        StageKind::Precreate => "precreate",
        StageKind::Benchmark => "benchmark",
        StageKind::Cleanup => "cleanup",
        StageKind::Audit => return audit(stage),
    };
    let _ = match of {
        Some(_) => write!(out, "{name} process max:{max:.2}s "),
        None => {
            let n = times.len() as f64;
            let min = times.iter().copied().fold(f64::INFINITY, f64::min);
            let mean = times.iter().sum::<f64>() / n;
            let squares: f64 = times.iter().map(|t| (t - mean) * (t - mean)).sum();
            let deviation = match times.len() {
                0 | 1 => "-nan".to_owned(),
                _ => format!("{:.1}", (squares / (n - 1.0)).sqrt()),
            };
            let balance = if max > 0.0 { 100.0 * min / max } else { 0.0 };
            write!(
                out,
                "{name} process max:{max:.2}s min:{min:.1}s mean: {mean:.1}s balance:{balance:.1} \
                 stddev:{deviation} "
            )
        }
    };
    let (created, read) = (count(Kind::Create), count(Kind::Read));
    let throughput = per_s((created + read) * stage.bytes as f64 / MIB);
    let objects = |kind| count(kind) as u64;
    let _ = match stage.kind {
        // Data sets need not be created: they are part of the objects' names.
        StageKind::Precreate => {
            let rate = per_s(created);
            write!(
                out,
                "rate:{rate:.1} iops/s dsets: 0 objects:{} rate:0.000 dset/s rate:{rate:.1} obj/s \
                 tp:{throughput:.1} MiB/s ",
                objects(Kind::Create)
            )
        }
        StageKind::Benchmark => {
            let each = if samples.iter().any(|s| s.kind >= Kind::Create) {
                4.0
            } else {
                2.0
            };
            write!(
                out,
                "rate:{:.1} iops/s objects:{} rate:{:.1} obj/s tp:{throughput:.1} MiB/s ",
                per_s(each * read),
                objects(Kind::Read),
                per_s(read)
            )
        }
        _ => {
            let rate = per_s(count(Kind::Delete));
            write!(
                out,
                "rate:{rate:.1} iops/s objects:{} dsets: 0 rate:{rate:.1} obj/s rate:0.000 dset/s ",
                objects(Kind::Delete)
            )
        }
    };
    let longest = samples.iter().map(|s| s.took_ns).max().unwrap_or(0);
    let _ = write!(out, "op-max:{}s ", scientific(longest as f64 / 1e9));
    if stage.kind == StageKind::Benchmark && stage.plan.waiting > 0.0 {
        let _ = write!(out, "waiting_factor:{:.2} ", stage.plan.waiting);
    }
    let failed: u64 = match of {
        Some(at) => stage.failed.get(at).map_or(0, |(_, n)| *n),
        None => stage.failed.iter().map(|(_, n)| n).sum(),
    };
    let marks = if failed > 0 { "!!!" } else { "" };
    let _ = write!(out, "({failed} errs{marks})");
    if stage.plan.stonewall_ns > 0 && stage.kind == StageKind::Benchmark {
        let steps = stage
            .ranks
            .ranks
            .iter()
            .map(|rank| rank.steps)
            .max()
            .unwrap_or(0);
        let _ = write!(out, " stonewall-iter:{steps}");
    }
    for kind in Kind::ALL {
        let mut timings: Vec<f32> = samples
            .iter()
            .filter(|s| s.kind == kind)
            .map(Sample::seconds)
            .collect();
        if timings.is_empty() {
            continue;
        }
        timings.sort_by(f32::total_cmp);
        let seven = seven(&timings).map(|value| format!("{}s", scientific(f64::from(value))));
        let _ = write!(out, " {}({})", kind.name(), seven.join(", "));
    }
    out
}

/// The result of the counting listing.
fn audit(stage: &Stage) -> String {
    format!(
        "audit objects:{} expected:{}",
        stage.ranks.sum(|rank| rank.seen),
        stage.plan.steps
    )
}

#[cfg(test)]
mod tests {
    use bucketload_core::plan::ranks::{RankMapping, RankTask, RanksPlan, WorkbenchStage};
    use bucketload_core::ranks::{PhaseRanks, RankSum};

    use super::{line, rank_lines};
    use crate::mdworkbench::{Kind, Sample, Stage, StageKind};

    fn stage(kind: StageKind, stage: WorkbenchStage, samples: Vec<Sample>) -> Stage {
        Stage {
            name: "p".to_owned(),
            kind,
            plan: RanksPlan {
                ranks: 2,
                task: RankTask::Workbench {
                    sets: 1,
                    objects: 2,
                    stage,
                    offset: 1,
                },
                mapping: RankMapping::Native,
                opening: 0,
                first_opens: false,
                closing: 0,
                shift: 0,
                steps: 2,
                follows: None,
                part: None,
                after: Vec::new(),
                start: 0,
                stonewall_ns: 0,
                wear_out: false,
                waiting: 0.25,
                newer_than: None,
            },
            bytes: 3901,
            ranks: PhaseRanks {
                phase: 1,
                stonewall_ns: 0,
                ranks: [0, 1]
                    .map(|rank| RankSum {
                        rank,
                        ..RankSum::default()
                    })
                    .to_vec(),
            },
            times_s: vec![0.4, 0.3],
            samples,
            failed: vec![(0, 0), (1, 1)],
        }
    }

    fn sample(kind: Kind, rank: u32, took_ns: u64) -> Sample {
        Sample {
            kind,
            rank,
            at_ns: 0,
            took_ns,
        }
    }

    /// The format of the lines in section B.3.
    #[test]
    fn lines_match_md_workbench() {
        let ms = 1_000_000;
        let samples = vec![sample(Kind::Create, 0, ms), sample(Kind::Create, 1, 3 * ms)];
        let mut made = stage(StageKind::Precreate, WorkbenchStage::Precreate, samples);
        made.failed = vec![(0, 0), (1, 0)];
        assert_eq!(
            line(&made),
            "precreate process max:0.40s min:0.3s mean: 0.3s balance:75.0 stddev:0.1 rate:5.0 iops/s \
             dsets: 0 objects:2 rate:0.000 dset/s rate:5.0 obj/s tp:0.0 MiB/s op-max:3.0000e-03s (0 errs) \
             create(1.0000e-03s, 3.0000e-03s, 2.0000e-03s, 3.0000e-03s, 3.0000e-03s, 3.0000e-03s, 3.0000e-03s)"
        );
        let mut samples = Vec::new();
        for kind in Kind::ALL {
            samples.push(sample(kind, 0, 2 * ms));
        }
        let bench = stage(StageKind::Benchmark, WorkbenchStage::Benchmark, samples);
        let text = line(&bench);
        assert!(text.starts_with(
            "benchmark process max:0.40s min:0.3s mean: 0.3s balance:75.0 stddev:0.1 rate:10.0 iops/s \
             objects:1 rate:2.5 obj/s tp:0.0 MiB/s op-max:2.0000e-03s waiting_factor:0.25 (1 errs!!!) read("
        ), "{text}");
        let order = ["read(", "stat(", "create(", "delete("].map(|kind| text.find(kind).unwrap());
        assert!(order.is_sorted());
        let ranks = rank_lines(&bench);
        assert!(
            ranks.starts_with("0: benchmark process max:0.40s rate:10.0 iops/s"),
            "{ranks}"
        );
        assert!(
            ranks.contains("\n1: benchmark process max:0.30s rate:0.0"),
            "{ranks}"
        );
        let cleanup = stage(
            StageKind::Cleanup,
            WorkbenchStage::Cleanup,
            vec![sample(Kind::Delete, 0, ms)],
        );
        assert!(line(&cleanup).contains(
            "rate:2.5 iops/s objects:1 dsets: 0 rate:2.5 obj/s rate:0.000 dset/s op-max:1.0000e-03s "
        ));
    }
}
