//! `[debug] pause-dir`: a phase begins once no file of its name is in that directory.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use bucketload_core::plan::{PhaseKind, Plan};
use bucketload_results::io500::measure::is_of;
use bucketload_results::io500::phases;
use bucketload_run::{EdgeHook, PhaseEdge, StopHandle, StopLevel};

/// Time between two looks at a file.
const LOOK: Duration = Duration::from_millis(100);

/// The hook that holds back the phases of `plan` while their files are in `dir`. The end of the run ends the wait.
pub(crate) fn hook(dir: PathBuf, plan: &Plan, extended: bool, stop: StopHandle) -> EdgeHook {
    let names = names(plan, extended);
    RefCell::new(Box::new(move |edge| {
        let PhaseEdge::Begin(index) = edge else {
            return Ok(());
        };
        for name in names.get(index).into_iter().flatten() {
            let file = dir.join(name);
            if file.exists() {
                eprintln!(
                    "bucketload: {name} begins when {} is removed",
                    file.display()
                );
            }
            while file.exists() && stop.level() == StopLevel::Run {
                std::thread::sleep(LOOK);
            }
        }
        Ok(())
    }))
}

/// For each phase of the plan the phases of IO500 that begin with it: itself, and those before it that do nothing here.
fn names(plan: &Plan, extended: bool) -> Vec<Vec<&'static str>> {
    let mut all = phases(extended).iter().peekable();
    let runs = plan.phases.iter().map(|planned| {
        let mut names = Vec::new();
        let is_planned = |name: &str| {
            let mut runs = plan.phases.iter();
            runs.any(|run| run.kind == PhaseKind::Run && is_of(&run.name, name))
        };
        if planned.kind == PhaseKind::Run {
            while let Some(phase) =
                all.next_if(|phase| is_of(&planned.name, phase.name) || !is_planned(phase.name))
            {
                names.push(phase.name);
                if is_of(&planned.name, phase.name) {
                    break;
                }
            }
        }
        names
    });
    runs.collect()
}

#[cfg(test)]
mod tests {
    use bucketload_core::plan::PhaseKind;

    use super::names;
    use crate::rank_plan::{control, plan};

    #[test]
    fn what_does_nothing_here_waits_with_the_next_phase() {
        let run = |name: &str| control(name, PhaseKind::Run);
        let phases = vec![
            control("init", PhaseKind::Init),
            run("ior-easy-write"),
            run("mdworkbench-create"),
            run("ior-hard-write"),
            run("mdworkbench-bench-0"),
            run("mdworkbench-bench-1"),
            run("ior-easy-read"),
            control("cleanup", PhaseKind::Cleanup),
        ];
        let payload = bucketload_core::payload::PayloadKind::Random;
        let plan = plan("io500", 1, 1, payload, Vec::new(), phases);
        let none: [&str; 0] = [];
        let wanted = [
            &none[..],
            &["ior-easy-write"],
            &["mdtest-easy-write", "mdworkbench-create"],
            &["timestamp", "find-easy", "ior-hard-write"],
            &[
                "mdtest-hard-write",
                "find",
                "find-hard",
                "mdworkbench-bench",
            ],
            &none,
            &["ior-easy-read"],
            &none,
        ];
        assert_eq!(names(&plan, true), wanted);
    }
}
