//! How ranks on files make their calls: as the processes of an MPI job do, each by plain calls of its own.
//!
//! The default engine of files hands most calls to other threads, which costs several times as much as a `stat` on a
//! fast file system. Ranks need nothing from it: each performs one operation at a time.

use bucketload_core::plan::Plan;
use bucketload_target::Flag;

use crate::cli::run::LoadArgs;
use crate::cli::target::TargetArgs;
use crate::target::{Api, Target};

/// Most load threads of a process, as for `--threads`.
const MOST_THREADS: u32 = 1024;
/// Bytes per call of the driver unless told otherwise, and the most it can make.
const USUAL_BLOCK: u64 = 1 << 20;
const MOST_BLOCK: u64 = 64 << 20;
const BLOCK_UNIT: u64 = 4096;

/// Gives the ranks of `plan` on files a thread each and plain calls, and lets one call move `transfer` bytes. Leaves
/// alone what the user chose: the engine, the number of threads, the size of a call.
pub(crate) fn choose(
    plan: &Plan,
    target: &Target,
    agents: Option<u32>,
    transfer: u64,
    (args, load): (&mut TargetArgs, &mut LoadArgs),
) {
    if !matches!(target, Target::Files(_)) {
        return;
    }
    let flag = |name: &str| -> Option<&'static Flag> {
        let mut flags = Api::files().descriptor().flags();
        flags.find(|flag| flag.name == name)
    };
    if let Some(block) = flag("--posix-block")
        && transfer > USUAL_BLOCK
    {
        let whole = transfer.next_multiple_of(BLOCK_UNIT).min(MOST_BLOCK);
        args.settings.choose(block, whole.to_string());
    }
    let mut works = plan.phases.iter().flat_map(|phase| &phase.works);
    let ranks = works.find_map(|work| Some(work.model.ranks()?.ranks));
    let here = ranks.unwrap_or(0).div_ceil(agents.unwrap_or(1).max(1));
    let threads = load.threads.map_or(MOST_THREADS, u32::from);
    let Some(engine) = flag("--posix-io") else {
        return;
    };
    // A call that blocks must not hold up another rank.
    if (1..=threads).contains(&here) && !args.settings.has(engine) {
        args.settings.choose(engine, "sync");
        load.threads = u16::try_from(here).ok();
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::plan::ranks::RankMapping;
    use clap::Parser;

    use super::choose;
    use crate::cli::{Cli, Command};
    use crate::mdworkbench::{Parts, plan};
    use crate::target::Target;

    /// Engine, size of a call and number of threads that `line` leads to.
    fn chosen(line: &str, transfer: u64, agents: Option<u32>) -> [String; 3] {
        let line = format!("bucketload md-workbench --target file:///d {line}");
        let Command::MdWorkbench(args) = Cli::try_parse_from(line.split_whitespace())
            .unwrap()
            .command
        else {
            panic!("{line}")
        };
        let ranks = args.workbench.ranks.unwrap();
        let parts = Parts::of(&args.workbench);
        let plan = plan(&args.workbench, parts, ranks, 0, 1, RankMapping::Files).unwrap();
        let (mut flags, mut load) = (args.target.clone(), args.load.clone());
        let target = Target::parse("file:///d").unwrap();
        let both = (&mut flags, &mut load);
        choose(&plan, &target, agents, transfer, both);
        let origins = crate::drivers::origins(&target, &flags.settings).unwrap();
        let value = |name: &str| {
            let origin = origins.iter().find(|origin| origin.name == name).unwrap();
            format!("{} ({})", origin.value, origin.source)
        };
        let threads = load.threads.map_or("usual".to_owned(), |n| n.to_string());
        [value("engine"), value("block"), threads]
    }

    #[test]
    fn every_rank_gets_a_thread_and_plain_calls_unless_the_user_chose() {
        let plain = "sync (default)".to_owned();
        let [engine, block, threads] = chosen("--ranks 6", 2 << 20, None);
        assert_eq!((&engine, &*threads), (&plain, "6"));
        assert_eq!(block, "2097152 (default)");
        // An agent has a share of the ranks.
        assert_eq!(chosen("--ranks 6", 0, Some(4))[2], "2");
        assert_eq!(chosen("--ranks 6 --threads 8", 0, None)[2], "6");
        assert_eq!(chosen("--ranks 6", 3901, None)[1], "1048576 (default)");
        for (line, agents) in [("--ranks 6 --threads 2", None), ("--ranks 2000", None)] {
            let [engine, _, threads] = chosen(line, 0, agents);
            assert_ne!(engine, plain, "{line}");
            assert_ne!(threads, "6", "{line}");
        }
        let asked = "--ranks 6 --posix-io threads --posix-block 1MiB";
        let [engine, block, threads] = chosen(asked, 2 << 20, None);
        assert_eq!(engine, "threads (--posix-io)");
        assert_eq!(block, "1048576 (--posix-block)");
        assert_eq!(threads, "usual");
    }
}
