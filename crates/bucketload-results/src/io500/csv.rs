//! Figures per rank: `<phase>.csv` and `find.csv` (docs/spec/io500-mdworkbench.md section A.5).

use std::fmt::Write as _;

use bucketload_core::ranks::{PhaseRanks, RankSum};

use super::{Phase, Tool};

/// The file of a phase. IOR's columns are those of IOR; throughput is GiB/s, rates are operations/s.
#[must_use]
pub fn csv(phase: &Phase, ranks: &PhaseRanks) -> String {
    let mut out = String::new();
    let seconds = |rank: &RankSum| rank.last_ns.saturating_sub(rank.first_ns) as f64 / 1e9;
    let rate = |amount: f64, seconds: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    match phase.tool {
        Tool::Ior => {
            out.push_str(
                "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\n",
            );
            let access = if phase.writes { "write" } else { "read" };
            for rank in &ranks.ranks {
                // Opening and closing are ordinary requests here and part of both.
                let (time, gib) = (seconds(rank), rank.bytes as f64 / f64::from(1u32 << 30));
                let rate = rate(gib, time);
                let _ = writeln!(
                    out,
                    "{access},{},{time:e},{time:e},{rate:e},{rate:e}",
                    rank.rank
                );
            }
        }
        Tool::Mdtest | Tool::Workbench | Tool::Timestamp => {
            out.push_str("rank,items,failed,runtime,rate\n");
            for rank in &ranks.ranks {
                let (time, rate) = (seconds(rank), rate(rank.good as f64, seconds(rank)));
                let _ = writeln!(
                    out,
                    "{},{},{},{time:e},{rate:e}",
                    rank.rank, rank.good, rank.failed
                );
            }
        }
        Tool::Find => {
            let time = ranks.length_ns() as f64 / 1e9;
            let all = ranks.sum(|rank| rank.seen);
            let _ = writeln!(
                out,
                "runtime: {time:.6} rate: {:.6}",
                rate(all as f64, time)
            );
            out.push_str("rank,found,total,failed,runtime\n");
            for rank in &ranks.ranks {
                let RankSum {
                    found,
                    seen,
                    failed,
                    ..
                } = rank;
                let _ = writeln!(
                    out,
                    "{},{found},{seen},{failed},{:e}",
                    rank.rank,
                    seconds(rank)
                );
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use bucketload_core::ranks::{PhaseRanks, RankSum};

    use super::csv;
    use crate::io500::phase_named;

    #[test]
    fn one_line_per_rank() {
        let rank = RankSum {
            rank: 1,
            good: 4,
            bytes: 1 << 30,
            ops: 4,
            first_ns: 1_000_000_000,
            last_ns: 3_000_000_000,
            seen: 10,
            found: 2,
            ..RankSum::default()
        };
        let ranks = PhaseRanks {
            phase: 1,
            stonewall_ns: 0,
            ranks: vec![rank],
        };
        let of = |name: &str| csv(phase_named(name).unwrap(), &ranks);
        assert!(of("ior-easy-read").ends_with("\nread,1,2e0,2e0,5e-1,5e-1\n"));
        assert!(of("mdtest-easy-stat").ends_with("\n1,4,0,2e0,2e0\n"));
        assert!(of("find").starts_with("runtime: 2.000000 rate: 5.000000\n"));
    }
}
