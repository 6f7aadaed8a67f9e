//! Turns options into a plan: precreation, a phase per iteration and waiting factor, a count, cleanup
//! (docs/spec/io500-mdworkbench.md section B.1).

use bucketload_core::op::OpClass;
use bucketload_core::payload::{Pattern, PatternSet, PayloadKind};
use bucketload_core::plan::ranks::{RankMapping, RankTask, RanksPlan, WorkbenchStage};
use bucketload_core::plan::{Accounting, MixEntry, PhaseKind, PhasePlan, Plan, WorkPlan};

use crate::cli::mdworkbench::{PacketType, WorkbenchOptions};
use crate::rank_plan::{self, MOST_BUFFERS, control, entry, measuring};

/// Name of the profile in plans.
pub(crate) const PROFILE: &str = "md-workbench";
/// Waiting factors of an iteration with adaptive waiting.
const FACTORS: [f64; 8] = [0.0, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0];
const SECOND_NS: u64 = 1_000_000_000;
const TIMEOUT_NS: u64 = 60 * SECOND_NS;
/// Most objects per rank, because object numbers have 40 bits per rank.
const MOST_PER_RANK: u64 = 1 << 40;

/// The parts that a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) precreate: bool,
    pub(crate) benchmark: bool,
    pub(crate) cleanup: bool,
}

impl Parts {
    /// The parts that the options name, or all if they name none.
    pub(crate) fn of(options: &WorkbenchOptions) -> Self {
        let named = (
            options.run_precreate,
            options.run_benchmark,
            options.run_cleanup,
        );
        let all = named == (false, false, false);
        Self {
            precreate: all || named.0,
            benchmark: all || named.1,
            cleanup: all || named.2,
        }
    }

    /// Whether a single command runs everything.
    pub(crate) const fn all(self) -> bool {
        self.precreate && self.cleanup
    }
}

fn phase(name: &str, ranks: RanksPlan, mix: Vec<MixEntry>, errors_allowed: bool) -> PhasePlan {
    PhasePlan {
        accounting: Accounting {
            max_failed: if errors_allowed { None } else { Some(0.0) },
            ..Accounting::default()
        },
        ..measuring(WorkPlan {
            name: name.to_owned(),
            model: ranks.into(),
            mix,
        })
    }
}

/// The plan of a command that runs `parts`, after `position` steps of earlier commands, on objects named by `mapping`.
///
/// # Errors
/// An option that cannot be carried out, with a remedy.
pub(crate) fn plan(
    options: &WorkbenchOptions,
    parts: Parts,
    ranks: u32,
    position: u64,
    seed: i32,
    mapping: RankMapping,
) -> Result<Plan, String> {
    check(options, ranks)?;
    let (sets, objects) = (options.data_sets, options.precreate_per_set);
    let task = |stage| RankTask::Workbench {
        sets,
        objects,
        stage,
        offset: options.offset,
    };
    let base = RanksPlan {
        steps: objects,
        start: position,
        ..rank_plan::ranks(ranks, task(WorkbenchStage::Precreate), mapping)
    };
    let size = Some(options.object_size);
    let mut phases = Vec::new();
    if parts.precreate {
        phases.push(control("init", PhaseKind::Init));
        let mix = vec![entry(OpClass::Put, 0, size)];
        phases.push(phase(
            "precreate",
            base.clone(),
            mix,
            options.ignore_precreate_errors,
        ));
    }
    let mut after = Vec::new();
    if parts.benchmark {
        let factors: &[f64] = match options.adaptive_waiting {
            true => &FACTORS,
            false => &[options.waiting_time],
        };
        let mut mix = vec![entry(OpClass::Head, 0, None), entry(OpClass::Get, 0, size)];
        if !options.read_only {
            mix.extend([
                entry(OpClass::Delete, 0, None),
                entry(OpClass::Put, 0, size),
            ]);
        }
        for iteration in 0..options.iterations {
            for factor in factors {
                let number = u16::try_from(phases.len()).map_err(|e| e.to_string())?;
                let ranks = RanksPlan {
                    task: task(WorkbenchStage::Benchmark),
                    steps: options.obj_per_proc,
                    after: after.clone(),
                    stonewall_ns: options.stonewall_timer.saturating_mul(SECOND_NS),
                    wear_out: options.stonewall_wear_out,
                    waiting: *factor,
                    ..base.clone()
                };
                phases.push(phase(
                    &format!("benchmark-{iteration}-{factor:.4}"),
                    ranks,
                    mix.clone(),
                    true,
                ));
                // The queues do not advance if nothing is consumed.
                if !options.read_only {
                    after.push(number);
                }
            }
        }
        let count = RanksPlan {
            task: RankTask::Count,
            steps: u64::from(ranks) * u64::from(sets) * objects,
            ..base.clone()
        };
        phases.push(phase(
            "audit",
            count,
            vec![entry(OpClass::List, 0, None)],
            true,
        ));
    }
    if parts.cleanup {
        let cleanup = RanksPlan {
            task: task(WorkbenchStage::Cleanup),
            steps: u64::from(sets) * objects,
            after,
            ..base
        };
        phases.push(phase(
            "cleanup",
            cleanup,
            vec![entry(OpClass::Delete, 0, None)],
            true,
        ));
        phases.push(control("sweep", PhaseKind::Cleanup));
    }
    let prefix = "md/".to_owned();
    let keyset = rank_plan::keyset("objects", prefix, options.object_size, None);
    Ok(Plan {
        verify: options.verify_read,
        ..rank_plan::plan(
            PROFILE,
            u64::from(seed.unsigned_abs()),
            TIMEOUT_NS,
            payload(options, ranks, seed)?,
            vec![keyset],
            phases,
        )
    })
}

fn check(options: &WorkbenchOptions, ranks: u32) -> Result<(), String> {
    if !(options.waiting_time.is_finite() && options.waiting_time >= 0.0) {
        return Err(format!(
            "--waiting-time {}: write a factor of 0 or more",
            options.waiting_time
        ));
    }
    if options.stonewall_timer > 0 && !options.stonewall_wear_out {
        return Err(
            "--stonewall-timer: without wear-out, ranks end with different numbers of steps, so the size of the \
             working set would change; add --stonewall-wear-out (-W)"
                .to_owned(),
        );
    }
    if options.stonewall_wear_out && options.stonewall_timer == 0 {
        return Err(
            "--stonewall-wear-out needs a stonewall; add --stonewall-timer SECONDS".to_owned(),
        );
    }
    if ranks > 1 && options.offset.is_multiple_of(ranks) {
        return Err(format!(
            "--offset {}: with {ranks} ranks, each rank would consume its own objects; use an offset that is not \
             a multiple of {ranks}",
            options.offset
        ));
    }
    let steps = options
        .obj_per_proc
        .saturating_mul(u64::from(options.iterations))
        .saturating_mul(8);
    let most = options
        .precreate_per_set
        .saturating_add(steps)
        .saturating_mul(u64::from(options.data_sets));
    if most >= MOST_PER_RANK {
        return Err("too many objects per rank: use smaller -D, -P, -I or -R".to_owned());
    }
    Ok(())
}

fn payload(options: &WorkbenchOptions, ranks: u32, seed: i32) -> Result<PayloadKind, String> {
    if options.data_packet_type == PacketType::Random {
        return Ok(PayloadKind::Random);
    }
    let mut pattern = Pattern {
        ranks,
        sets: [PatternSet::default(); 5],
    };
    pattern.sets[0] = PatternSet {
        seed,
        len: options.object_size,
        interleaved: false,
    };
    match pattern.total_bytes() > MOST_BUFFERS {
        true => Err(
            "the buffers of all ranks take more than 4 GiB; use smaller objects, fewer ranks or \
                     --data-packet-type random"
                .to_owned(),
        ),
        false => Ok(PayloadKind::Timestamp(pattern)),
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::plan::ranks::{RankMapping, RankTask};
    use bucketload_core::plan::{PhaseKind, Plan};
    use clap::Parser;

    use super::{Parts, plan};
    use crate::cli::{Cli, Command};

    fn planned(line: &str) -> Result<Plan, String> {
        let line = format!("bucketload md-workbench {line}");
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        let Command::MdWorkbench(args) = cli.command else {
            panic!("{line}")
        };
        let parts = Parts::of(&args.workbench);
        plan(&args.workbench, parts, 4, 0, 1, RankMapping::Native)
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.phases
            .iter()
            .map(|phase| phase.name.as_str())
            .collect()
    }

    /// docs/spec/io500-mdworkbench.md section B.2.
    #[test]
    fn defaults_are_those_of_md_workbench() {
        let plan = planned("").unwrap();
        let benchmarks = [
            "benchmark-0-0.0000",
            "benchmark-1-0.0000",
            "benchmark-2-0.0000",
        ];
        let all = [
            &["init", "precreate"][..],
            &benchmarks,
            &["audit", "cleanup", "sweep"],
        ];
        assert_eq!(names(&plan), all.concat());
        let ranks = |at: usize| plan.phases[at].works[0].model.ranks().unwrap().clone();
        assert_eq!(
            (ranks(1).steps, ranks(2).steps, ranks(6).steps),
            (3000, 1000, 30_000)
        );
        assert_eq!(ranks(4).after, [2, 3]);
        let RankTask::Workbench {
            sets,
            objects,
            offset,
            ..
        } = ranks(2).task
        else {
            panic!()
        };
        assert_eq!((sets, objects, offset), (10, 3000, 1));
        assert_eq!(plan.keysets[0].size.max, 3901);
        assert!(!plan.verify && plan.phases[2].kind == PhaseKind::Run);
    }

    #[test]
    fn parts_and_factors() {
        assert_eq!(names(&planned("-1").unwrap()), ["init", "precreate"]);
        assert_eq!(names(&planned("-3").unwrap()), ["cleanup", "sweep"]);
        let adaptive = planned("-2 -R 2 -T").unwrap();
        assert_eq!(adaptive.phases.len(), 2 * 8 + 1);
        assert_eq!(adaptive.phases[7].name, "benchmark-0-4.0000");
        let reading = planned("-2 --read-only").unwrap();
        assert_eq!(reading.phases[0].works[0].mix.len(), 2);
        let last = reading.phases[2].works[0].model.ranks();
        assert!(last.unwrap().after.is_empty());
    }

    #[test]
    fn options_that_would_change_the_working_set_are_refused() {
        for (line, word) in [
            ("-w 5", "-W"),
            ("-W", "--stonewall-timer"),
            ("-O 8", "not a multiple"),
            ("--waiting-time NaN", "0 or more"),
            ("-D 1000000 -P 1000000000", "smaller"),
        ] {
            let error = planned(line).unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
    }
}
