//! Calibrations of this machine, kept for a day, so that a run need not drive the null target again before its load.
//!
//! A calibration is known by everything that it depends on: this program, this boot of this machine, the options of the
//! load threads, and the plan. It is no longer used once it limited a verdict.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bucketload_core::plan::Plan;
use bucketload_core::sink::Calibration;
use bucketload_results::rundir::host::HostFacts;
use bucketload_run::RunOptions;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Longest use of a calibration.
const MOST_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Where the calibration of a run is kept.
#[derive(Debug)]
pub(crate) struct Cache {
    file: PathBuf,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct Entry {
    measured_unix_s: u64,
    calibration: Calibration,
}

impl Cache {
    /// The place for the calibration of `plan` in the user's cache directory. `None` if there is none, or if the figures
    /// depend on more than is known here: on a trace, or on other processes.
    pub(crate) fn of(plan: &Plan, options: &RunOptions, host: &HostFacts) -> Option<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")))?;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let key = key(plan, options, host)?;
        Some(Self::in_directory(&cache, &program()?, &boot, &key))
    }

    fn in_directory(cache: &Path, program: &str, boot: &str, key: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [program, boot, key] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut name = String::new();
        for byte in &hash.finalize()[..16] {
            let _ = write!(name, "{byte:02x}");
        }
        let file = cache.join("bucketload/calibrations").join(name + ".json");
        Self { file }
    }

    /// The calibration with its age, if it is known and not too old.
    pub(crate) fn read(&self, now: SystemTime) -> Option<Calibration> {
        let entry: Entry = serde_json::from_slice(&std::fs::read(&self.file).ok()?).ok()?;
        let measured = UNIX_EPOCH.checked_add(Duration::from_secs(entry.measured_unix_s))?;
        // A clock that was set back makes the age unknown.
        let age = now.duration_since(measured).ok()?;
        (age < MOST_AGE).then_some(Calibration {
            age_s: Some(age.as_secs()),
            ..entry.calibration
        })
    }

    /// Keeps a calibration, and removes those that are too old. A failure only means that it is measured again.
    pub(crate) fn write(&self, calibration: &Calibration, now: SystemTime) {
        let Some(dir) = self.file.parent() else {
            return;
        };
        let Ok(since) = now.duration_since(UNIX_EPOCH) else {
            return;
        };
        let entry = Entry {
            measured_unix_s: since.as_secs(),
            calibration: *calibration,
        };
        let Ok(text) = serde_json::to_vec(&entry) else {
            return;
        };
        if std::fs::create_dir_all(dir).is_err() {
            return;
        }
        for old in dir.read_dir().into_iter().flatten().flatten() {
            let written = old.metadata().and_then(|facts| facts.modified());
            let age = written.ok().and_then(|at| now.duration_since(at).ok());
            if age.is_some_and(|age| age >= MOST_AGE) {
                let _ = std::fs::remove_file(old.path());
            }
        }
        // Other runs see the old file or the new one.
        let new = self
            .file
            .with_extension(format!("{}.new", std::process::id()));
        if std::fs::write(&new, text)
            .and_then(|()| std::fs::rename(&new, &self.file))
            .is_err()
        {
            let _ = std::fs::remove_file(&new);
        }
    }

    /// Forgets the calibration, so that the next run measures it.
    pub(crate) fn forget(&self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

/// What identifies this program: its version, and the file, which every build writes anew.
fn program() -> Option<String> {
    let file = std::fs::metadata("/proc/self/exe").ok()?;
    let built = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!(
        "{} {} {}",
        env!("CARGO_PKG_VERSION"),
        file.len(),
        built.as_nanos()
    ))
}

/// What else the figures depend on, as text.
fn key(plan: &Plan, options: &RunOptions, host: &HostFacts) -> Option<String> {
    let mut works = plan.phases.iter().flat_map(|phase| &phase.works);
    let alone = options.remote.is_none() && options.share.of == 1;
    if !alone || options.trace.is_some() || works.any(|work| work.model.replay().is_some()) {
        return None;
    }
    // The seed draws other objects of the same kind.
    let plan = Plan {
        seed: 0,
        ..plan.clone()
    };
    Some(format!(
        "{} {} {:?} {:?} {:?} {:?}",
        serde_json::to_string(&plan).ok()?,
        serde_json::to_string(host).ok()?,
        options.load_threads().ok()?,
        options.cores,
        options.pacing,
        options.local_target
    ))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use bucketload_core::sink::Calibration;

    use super::{Cache, MOST_AGE};

    const MEASURED: Calibration = Calibration {
        offered_ops_per_s: 10.0,
        null_ops_per_s: 1000.0,
        null_p99_ns: 7,
        null_cpu_ns_per_op: 3.0,
        age_s: None,
    };

    #[test]
    fn a_calibration_is_known_to_the_same_program_and_machine_for_a_day() {
        let dir = tempfile::tempdir().unwrap();
        let of = |program, boot, key| Cache::in_directory(dir.path(), program, boot, key);
        let kept = of("p", "b", "k");
        let now = SystemTime::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(kept.read(now), None);
        kept.write(&MEASURED, now);
        let known = kept.read(later(60)).unwrap();
        assert_eq!(known.null_ops_per_s, 1000.0);
        // The file holds whole seconds.
        assert!((60..=61).contains(&known.age_s.unwrap()), "{known:?}");
        for other in [
            of("q", "b", "k"),
            of("p", "c", "k"),
            of("p", "b", "l"),
            of("pb", "", "k"),
        ] {
            assert_eq!(other.read(now), None, "{other:?}");
        }
        assert_eq!(kept.read(later(MOST_AGE.as_secs())), None, "too old");
        assert_eq!(
            kept.read(now - Duration::from_secs(5)),
            None,
            "the clock was set back"
        );
        let other = of("p", "b", "other");
        other.write(&MEASURED, later(2 * MOST_AGE.as_secs()));
        assert_eq!(
            kept.read(later(60)),
            None,
            "removed, because it was too old then"
        );
        other.forget();
        assert_eq!(other.read(later(2 * MOST_AGE.as_secs())), None);
    }

    #[test]
    fn a_damaged_file_and_a_missing_directory_mean_that_nothing_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Cache::in_directory(dir.path(), "p", "b", "k");
        kept.write(&MEASURED, SystemTime::now());
        std::fs::write(&kept.file, "{").unwrap();
        assert_eq!(kept.read(SystemTime::now()), None);
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let nowhere = Cache::in_directory(&file, "p", "b", "k");
        nowhere.write(&MEASURED, SystemTime::now());
        assert_eq!(nowhere.read(SystemTime::now()), None);
    }
}
