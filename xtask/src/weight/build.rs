//! Build times, measured in a separate target directory.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use super::Row;
use crate::files;
use crate::program::target;
use crate::sh::{Result, cargo, output, root, run, words};

/// A driver's file, standing for any change of a driver.
const DRIVER: &str = "crates/bucketload-drivers/src/azblob/checksum.rs";

/// The kernel's unit of processor time (`sysconf(_SC_CLK_TCK)`), the same on every Linux.
const TICKS_PER_S: f64 = 100.0;

/// A target directory, empty at first and removed when dropped.
pub(super) struct BuildDir(PathBuf);

impl BuildDir {
    pub(super) fn new() -> Result<Self> {
        let path = target().join("weight");
        files::remove_dir(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Runs `cargo rustc` as a row shows it: rustc's options follow ` -- `.
    pub(super) fn rustc(&self, line: &str) -> Result {
        let (before, after) = line.split_once(" -- ").unwrap_or((line, ""));
        run(cargo(before)
            .arg("--target-dir")
            .arg(&self.0)
            .arg("--")
            .args(words(after)))
    }

    pub(super) fn program(&self) -> PathBuf {
        self.0.join("release/bucketload")
    }
}

impl Drop for BuildDir {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("xtask: {}: {error}", self.0.display());
        }
    }
}

/// Wall time and processor time of a command and its child processes, in seconds.
struct Cost {
    wall_s: f64,
    cpu_s: f64,
}

/// Builds from nothing, and again after a change of a driver's file.
pub(super) fn rows(place: &BuildDir) -> Result<Vec<Row>> {
    const RELEASE: &str = "build --release --locked";
    const CHECK: &str = "check --locked";
    let driver = Touched::new(&root().join(DRIVER))?;
    let mut rows = Vec::new();
    let mut row = |what: &str, target: &Path, line: &str, before: &str| -> Result {
        let Cost { wall_s, cpu_s } = timed(target, line)?;
        let value = format!("{wall_s:.0} s wall, {cpu_s:.0} s CPU");
        rows.push(Row::new(what, value, format!("{before}cargo {line}")));
        Ok(())
    };
    let what = "procedural macros alone: the machine's pace";
    let macros = format!("{RELEASE} {}", macros()?);
    row(what, &place.path().join("pace"), &macros, "")?;
    row(
        "build from an empty target directory",
        place.path(),
        RELEASE,
        "",
    )?;
    driver.touch()?;
    let touch = format!("touch {DRIVER}; ");
    let what = "build after a driver's file was touched";
    row(what, place.path(), RELEASE, &touch)?;
    // The next check then compiles only the change.
    timed(place.path(), CHECK)?;
    driver.touch()?;
    let what = "check after a driver's file was touched";
    row(what, place.path(), CHECK, &touch)?;
    Ok(rows)
}

/// The options that select the procedural macros of the program's build. Macros are compiled for this machine without
/// optimisation in every profile, so their times compare two machines, or one machine on two days.
fn macros() -> Result<String> {
    let tree = output(&mut cargo(
        "tree --locked -p bucketload -e normal,build --prefix none -f {p}",
    ))?;
    Ok(chosen_macros(&tree))
}

/// `-p NAME@VERSION` for every macro in the output of `cargo tree`.
fn chosen_macros(tree: &str) -> String {
    let lines = tree.lines().filter(|line| line.contains(" (proc-macro)"));
    let named = lines.filter_map(|line| {
        let mut words = line.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        Some(format!("-p {name}@{version}"))
    });
    let named: BTreeSet<String> = named.collect();
    named.into_iter().collect::<Vec<_>>().join(" ")
}

/// A file whose modification time is restored when dropped, so that no other build is affected.
struct Touched {
    file: File,
    before: SystemTime,
}

impl Touched {
    fn new(path: &Path) -> Result<Self> {
        let at = files::at(path);
        let file = File::options().append(true).open(path).map_err(at)?;
        let before = file.metadata().and_then(|m| m.modified()).map_err(at)?;
        Ok(Self { file, before })
    }

    fn touch(&self) -> Result {
        let set = self.file.set_modified(SystemTime::now());
        set.map_err(|e| format!("{DRIVER}: {e}"))
    }
}

impl Drop for Touched {
    fn drop(&mut self) {
        if let Err(error) = self.file.set_modified(self.before) {
            eprintln!("xtask: {DRIVER}: {error}");
        }
    }
}

fn timed(target: &Path, line: &str) -> Result<Cost> {
    let (begun, before) = (Instant::now(), children_s()?);
    run(cargo(line)
        .arg("--target-dir")
        .arg(target)
        // The defaults of a user, whatever CI sets.
        .env_remove("CARGO_INCREMENTAL")
        .env_remove("CARGO_PROFILE_DEV_DEBUG"))?;
    Ok(Cost {
        wall_s: begun.elapsed().as_secs_f64(),
        cpu_s: children_s()? - before,
    })
}

/// Processor time in seconds of all child processes that have ended, including their children.
fn children_s() -> Result<f64> {
    let path = "/proc/self/stat";
    let stat = files::read(path)?;
    let ticks = children_ticks(&stat).ok_or_else(|| format!("{path}: unexpected text {stat:?}"))?;
    Ok(ticks as f64 / TICKS_PER_S)
}

/// `cutime` and `cstime`, fields 16 and 17 (proc_pid_stat(5)). The name in the second field may contain anything, but
/// its closing parenthesis is the last one.
fn children_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(13);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{Touched, children_ticks, chosen_macros};
    use crate::files::TempDir;

    #[test]
    fn child_time_is_read_whatever_the_process_name() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 0 11 12 13 14 150 160 1700 18 20 0";
        assert_eq!(children_ticks(stat), Some(1718));
        assert_eq!(children_ticks("7 (x) S 1"), None);
    }

    #[test]
    fn macros_are_chosen_once_by_name_and_version() {
        let tree = "bucketload v0.1.0 (/x)\nb v2.0.1 (proc-macro)\na v1.0.0 (proc-macro)\na v1.0.0 (proc-macro) (*)\n";
        assert_eq!(chosen_macros(tree), "-p a@1.0.0 -p b@2.0.1");
    }

    #[test]
    fn touched_files_regain_their_time() {
        let dir = TempDir::new("weight-touched").unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "text").unwrap();
        let modified = || std::fs::metadata(&path).unwrap().modified().unwrap();
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let file = std::fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(old).unwrap();
        let touched = Touched::new(&path).unwrap();
        touched.touch().unwrap();
        assert!(modified() > old);
        drop(touched);
        assert_eq!(modified(), old);
    }
}
