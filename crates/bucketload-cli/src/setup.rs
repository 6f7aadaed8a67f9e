//! What every run needs besides its driver: identifier, options, manifest, run directory.

use std::path::{Path, PathBuf};

use bucketload_core::plan::{PhaseKind, Plan};
use bucketload_results::rundir::{ClientFacts, Manifest, host::HostFacts};
use bucketload_run::{Cores, Pacing, RunOptions};

use crate::caches;
use crate::cli::run::LoadArgs;
use crate::cli::values::CoreList;
use crate::cli::variables;
use crate::connection::Connection;
use crate::embedded::random_hex;
use crate::exit::{Failure, OrFail};
use crate::target::Target;

/// A new run identifier: the start time in seconds since 1970, and four random bytes.
///
/// # Errors
/// When the kernel gives no random numbers.
pub(crate) fn new_run_id(started: time::OffsetDateTime) -> Result<String, Failure> {
    let random = random_hex(4).or_aborted()?;
    Ok(format!("{}-{random}", started.unix_timestamp()))
}

/// Where the default directories of results are.
pub(crate) const RUNS: &str = "bucketload-runs";

/// The directory in `bucketload-runs` that was created last.
///
/// # Errors
/// When there is none.
pub(crate) fn latest_directory() -> Result<PathBuf, Failure> {
    latest(Path::new(RUNS)).ok_or_else(|| {
        Failure::usage(format!(
            "there is no run in {RUNS} here; name a run directory (DIR)"
        ))
    })
}

/// The directory in `runs` whose first file is the youngest: reports written later do not change that.
fn latest(runs: &Path) -> Option<PathBuf> {
    let first = |dir: &Path| {
        let files = dir.read_dir().ok()?.flatten();
        let written = files.filter_map(|file| file.metadata().ok()?.modified().ok());
        written.min()
    };
    let dirs = runs.read_dir().ok()?.flatten().map(|entry| entry.path());
    dirs.filter_map(|dir| Some((first(&dir)?, dir)))
        .max()
        .map(|(_, dir)| dir)
}

/// The default directory for results: `bucketload-runs/NAME-START` with the start in UTC, such as
/// `bucketload-runs/online-service-20260131T235959Z`.
pub(crate) fn default_directory(name: &str, started: time::OffsetDateTime) -> PathBuf {
    let utc = started.to_offset(time::UtcOffset::UTC);
    let (year, month, day) = utc.to_calendar_date();
    let (hour, minute, second) = utc.to_hms();
    let month = u8::from(month);
    let name = file_name(name);
    Path::new(RUNS).join(format!(
        "{name}-{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z"
    ))
}

/// `text` with every character that is not safe in a file name replaced by a hyphen.
pub(crate) fn file_name(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.replace(|c| !plain(c), "-")
}

/// `named`, or `named` with a number if it exists because two runs started in the same second.
pub(crate) fn unused(named: PathBuf) -> PathBuf {
    let mut out = named.clone();
    let mut n = 1;
    while out.exists() {
        n += 1;
        out = named.with_extension(n.to_string());
    }
    out
}

/// Refuses a directory that is not empty; `flag` is the flag that names it.
///
/// # Errors
/// When the directory is not empty.
pub(crate) fn refuse_used(out: &Path, flag: &str) -> Result<(), Failure> {
    let mut entries = out.read_dir().into_iter().flatten();
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(Failure::usage(format!(
            "{flag} {}: the directory is not empty; choose another one",
            out.display()
        ))),
    }
}

/// The run directory: as `named` by `--out`, or an unused [`default_directory`].
///
/// # Errors
/// When the directory is not empty.
pub(crate) fn run_directory(
    named: Option<&Path>,
    name: &str,
    started: time::OffsetDateTime,
) -> Result<PathBuf, Failure> {
    let out = named.map_or_else(|| unused(default_directory(name, started)), Path::to_owned);
    refuse_used(&out, "--out")?;
    Ok(out)
}

/// The options of run `run_id`, which generates `load` on a target.
pub(crate) fn options(load: &LoadArgs, run_id: &str, connection: &Connection) -> RunOptions {
    let target = &connection.target;
    RunOptions {
        run_id: run_id.to_owned(),
        bucket: target.bucket().to_owned(),
        prefix: target.run_prefix(run_id),
        threads: load.threads.map(usize::from),
        cores: match &load.cores {
            None => Cores::First,
            Some(CoreList::None) => Cores::Unpinned,
            Some(CoreList::These(list)) => Cores::List(list.clone()),
        },
        local_target: connection.is_local(),
        pacing: match load.busy_poll {
            true => Pacing::BusyPoll,
            false => load.pacing,
        },
        check_writes: load.check_writes,
        leftovers: connection.leftovers(run_id),
        refused: connection.refused.clone(),
        before_measuring: connection.drops_caches.then(caches::hook),
        create_bucket: load.create_bucket || !matches!(target, Target::Service { .. }),
        ..RunOptions::default()
    }
}

/// The default number of ranks: as many as this machine has cores, times the number of `agents`, at most 4096.
pub(crate) fn default_ranks(agents: Option<u32>) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cores = u32::try_from(cores).unwrap_or(u32::MAX);
    cores.saturating_mul(agents.unwrap_or(1)).min(4096)
}

/// Checks that every agent gets a rank.
///
/// # Errors
/// When there are fewer ranks than `agents`.
pub(crate) fn check_ranks(plan: &Plan, agents: Option<u32>) -> Result<(), String> {
    let mut works = plan.phases.iter().flat_map(|phase| &phase.works);
    let ranks = works.find_map(|work| Some(work.model.ranks()?.ranks));
    match (ranks, agents) {
        (Some(ranks), Some(agents)) if ranks < agents => Err(format!(
            "{ranks} ranks cannot be divided over {agents} agents: --ranks counts the ranks of all agents together; \
             use --ranks {agents} or more, or fewer agents"
        )),
        _ => Ok(()),
    }
}

/// The note on how the workload was scaled, without the factor itself, which results show anyway.
pub(crate) fn scale_note(notes: &[String]) -> String {
    let mut notes = notes.iter();
    let note = notes.find_map(|note| note.strip_prefix("scale ")?.split_once(": "));
    note.map_or_else(String::new, |(_, note)| note.to_owned())
}

/// The manifest of a run of `plan`, complete except for the driver's facts and the start time. `source` is the workload
/// as the user wrote it: TOML, COSBench's XML, or empty for a replay.
///
/// # Errors
/// When the requested cores are not usable.
pub(crate) fn manifest(
    run_id: &str,
    plan: &Plan,
    source: &str,
    connection: &Connection,
    options: &RunOptions,
) -> Result<Manifest, Failure> {
    let mut manifest = Manifest::new(run_id, env!("CARGO_PKG_VERSION"), plan.clone());
    manifest.target = connection.describe();
    manifest.settings.clone_from(&connection.origins);
    manifest.client = ClientFacts {
        threads: options.load_threads().or_usage()? as u32,
        spinning: options.pacing == Pacing::BusyPoll,
        interval_ns: u64::try_from(options.interval.as_nanos()).unwrap_or(u64::MAX),
    };
    manifest.host = HostFacts::collect();
    manifest.command_line = variables::command_line();
    manifest.workload_source = source.to_owned();
    Ok(manifest)
}

/// The phase whose schedule measures the client's ceiling: the first measuring phase with operations on objects.
pub(crate) fn calibrated_phase(plan: &Plan) -> Option<usize> {
    plan.phases.iter().position(|phase| {
        let mut entries = phase.works.iter().flat_map(|work| &work.mix);
        phase.kind == PhaseKind::Run
            && (phase.works.iter().all(|work| work.mix.is_empty())
                || entries.any(|entry| !entry.class.on_bucket()))
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::{latest, run_directory};

    #[test]
    fn the_latest_directory_is_the_one_that_was_begun_last() {
        let runs = tempfile::tempdir().unwrap();
        assert_eq!(latest(runs.path()), None);
        let begun = |name: &str, seconds: u64, rewritten: u64| {
            fs::create_dir(runs.path().join(name)).unwrap();
            for (file, at) in [("events.jsonl", seconds), ("report.html", rewritten)] {
                let file = File::create(runs.path().join(name).join(file)).unwrap();
                let at = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
                file.set_modified(at).unwrap();
            }
        };
        begun("b", 1000, 9000);
        begun("a", 2000, 2000);
        fs::create_dir(runs.path().join("empty")).unwrap();
        assert_eq!(latest(runs.path()), Some(runs.path().join("a")));
    }

    #[test]
    fn run_directories_are_named_after_workload_and_start() {
        let start = time::OffsetDateTime::from_unix_timestamp(1_769_903_999).unwrap();
        let directory = |named: Option<&str>| {
            run_directory(named.map(Path::new), "my work/load", start).unwrap()
        };
        assert_eq!(
            directory(None),
            Path::new("bucketload-runs/my-work-load-20260131T235959Z")
        );
        assert_eq!(directory(Some("here")), Path::new("here"));
    }
}
