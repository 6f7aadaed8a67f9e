//! From options to a plan: precreation, a phase per iteration and waiting factor, a count, cleanup
//! (docs/spec/io500-mdworkbench.md section B.1).

use bucketload_core::op::OpClass;
use bucketload_core::payload::{Pattern, PatternSet, PayloadKind};
use bucketload_core::plan::ranks::{RankMapping, RankTask, RanksPlan, WorkbenchStage};
use bucketload_core::plan::{
    Accounting, KeyLaw, KeyNaming, KeysetPlan, Limits, MixEntry, ModelPlan, PhaseKind, PhasePlan,
    Plan, RetryPlan, SizeAssign, SizeKind, SizeLaw, WorkPlan,
};

use crate::cli::mdworkbench::{PacketType, WorkbenchOptions};

/// Name of the profile in plans.
pub(crate) const PROFILE: &str = "md-workbench";
/// Waiting factors of an iteration with adaptive waiting.
const FACTORS: [f64; 8] = [0.0, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0];
const SECOND_NS: u64 = 1_000_000_000;
const DRAIN_NS: u64 = 60 * SECOND_NS;
const TIMEOUT_NS: u64 = 60 * SECOND_NS;
/// Most bytes of all ranks' buffers.
const MOST_BUFFERS: u64 = 4 << 30;
/// Most objects of a run: numbers of objects have 40 bits per rank.
const MOST_PER_RANK: u64 = 1 << 40;

/// The parts that a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) precreate: bool,
    pub(crate) benchmark: bool,
    pub(crate) cleanup: bool,
}

impl Parts {
    /// Those that the options name; all where they name none.
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

    /// Whether everything is run by one command.
    pub(crate) const fn all(self) -> bool {
        self.precreate && self.cleanup
    }
}

fn control(name: &str, kind: PhaseKind) -> PhasePlan {
    PhasePlan {
        name: name.to_owned(),
        kind,
        works: Vec::new(),
        limits: Limits::default(),
        steady_state: false,
        stop: None,
        accounting: Accounting::default(),
    }
}

const fn constant(bytes: u64) -> SizeLaw {
    SizeLaw {
        law: SizeKind::Const { bytes },
        min: bytes,
        max: bytes,
    }
}

fn entry(class: OpClass, bytes: Option<u64>) -> MixEntry {
    MixEntry {
        class,
        weight: 1.0,
        keyset: 0,
        keys: KeyLaw::Sequential,
        size: bytes.map(constant),
        range: None,
        count: 0,
        pages: 0,
        delimiter: String::new(),
    }
}

fn phase(name: &str, ranks: RanksPlan, mix: Vec<MixEntry>, errors_allowed: bool) -> PhasePlan {
    PhasePlan {
        works: vec![WorkPlan {
            name: name.to_owned(),
            model: ModelPlan::Ranks(ranks),
            mix,
        }],
        limits: Limits {
            drain_ns: DRAIN_NS,
            ..Limits::default()
        },
        accounting: Accounting {
            max_failed: if errors_allowed { None } else { Some(0.0) },
            ..Accounting::default()
        },
        ..control(name, PhaseKind::Run)
    }
}

/// The plan of a command that runs `parts`, behind `position` steps of earlier ones.
///
/// # Errors
/// What cannot be done, with a remedy.
pub(crate) fn plan(
    options: &WorkbenchOptions,
    parts: Parts,
    ranks: u32,
    position: u64,
    seed: i32,
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
        ranks,
        task: task(WorkbenchStage::Precreate),
        mapping: RankMapping::Native,
        opening: 0,
        first_opens: false,
        closing: 0,
        shift: 0,
        steps: objects,
        follows: None,
        part: None,
        after: Vec::new(),
        start: position,
        stonewall_ns: 0,
        wear_out: false,
        waiting: 0.0,
        newer_than: None,
    };
    let size = Some(options.object_size);
    let mut phases = Vec::new();
    if parts.precreate {
        phases.push(control("init", PhaseKind::Init));
        let mix = vec![entry(OpClass::Put, size)];
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
        let mut mix = vec![entry(OpClass::Head, None), entry(OpClass::Get, size)];
        if !options.read_only {
            mix.extend([entry(OpClass::Delete, None), entry(OpClass::Put, size)]);
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
                // The queues stay where they are when nothing is consumed.
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
            vec![entry(OpClass::List, None)],
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
            vec![entry(OpClass::Delete, None)],
            true,
        ));
        phases.push(control("sweep", PhaseKind::Cleanup));
    }
    Ok(Plan {
        workload: PROFILE.to_owned(),
        profile: PROFILE.to_owned(),
        compat: String::new(),
        seed: u64::from(seed.unsigned_abs()),
        scale: 1.0,
        size_scale: 1.0,
        payload: payload(options, ranks, seed)?,
        verify: options.verify_read,
        timeout_ns: TIMEOUT_NS,
        retry: RetryPlan {
            max_attempts: 1,
            backoff_ns: 0,
            max_backoff_ns: 0,
        },
        not_found_is_failure: true,
        keysets: vec![KeysetPlan {
            name: "objects".to_owned(),
            prefix: "md/".to_owned(),
            shards: 1,
            count: 0,
            size: constant(options.object_size),
            assign: SizeAssign::Random,
            overwritten: false,
            naming: KeyNaming::Index,
            existing: false,
            buckets: None,
        }],
        phases,
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
            "--stonewall-timer: without wear-out ranks end with different numbers of steps, and the working \
             set does not stay as large as it is; add --stonewall-wear-out (-W)"
                .to_owned(),
        );
    }
    if options.stonewall_wear_out && options.stonewall_timer == 0 {
        return Err(
            "--stonewall-wear-out: there is no stonewall; add --stonewall-timer SECONDS".to_owned(),
        );
    }
    if ranks > 1 && options.offset.is_multiple_of(ranks) {
        return Err(format!(
            "--offset {}: with {ranks} ranks each would consume its own objects; use one that is no multiple",
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
    use bucketload_core::plan::ranks::RankTask;
    use bucketload_core::plan::{ModelPlan, PhaseKind, Plan};
    use clap::Parser;

    use super::{Parts, plan};
    use crate::cli::{Cli, Command};

    fn planned(line: &str) -> Result<Plan, String> {
        let line = format!("bucketload md-workbench {line}");
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        let Command::MdWorkbench(args) = cli.command else {
            panic!("{line}")
        };
        plan(&args.workbench, Parts::of(&args.workbench), 4, 0, 1)
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
        let ranks = |at: usize| match &plan.phases[at].works[0].model {
            ModelPlan::Ranks(ranks) => ranks.clone(),
            other => panic!("{other:?}"),
        };
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
        let ModelPlan::Ranks(last) = &reading.phases[2].works[0].model else {
            panic!()
        };
        assert!(last.after.is_empty());
    }

    #[test]
    fn what_would_change_the_working_set_is_refused() {
        for (line, word) in [
            ("-w 5", "-W"),
            ("-W", "--stonewall-timer"),
            ("-O 8", "no multiple"),
            ("--waiting-time NaN", "0 or more"),
            ("-D 1000000 -P 1000000000", "smaller"),
        ] {
            let error = planned(line).unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
    }
}
