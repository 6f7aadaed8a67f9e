//! Ranks on files compared with the system calls that they make: what `bucketload io500` adds to each operation.
//!
//! Both sides use one thread on one core and a directory in memory, one after the other, several times. The bare side
//! makes the calls of a phase in a loop, with names that were rendered before. `bench apps` compares with the original
//! programs, which have work of their own between two calls.

use std::ffi::CString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_setaffinity};

use super::candidate::CLIENT_CORE;
use super::{finish, median, option, quartiles, value_of};
use crate::files::{self, TempDir};
use crate::program::{bucketload, clean_call, done};
use crate::sh::Result;

/// Files of a phase.
const FILES: usize = 100_000;
/// Most microseconds that ours may add to an operation. mdtest itself adds 0.2 to 0.3.
const GOAL_US: f64 = 0.6;

/// A phase: its name in IO500, and the bare calls for one file.
struct Row {
    phase: &'static str,
    calls: &'static str,
    bare: fn(&CString) -> io::Result<()>,
}

const ROWS: [Row; 3] = [
    Row {
        phase: "mdtest-easy-write",
        calls: "open, close",
        bare: |path| {
            // SAFETY: the path is a C string; the descriptor is this function's own.
            unsafe {
                let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;
                let file = checked(libc::open(path.as_ptr(), flags, 0o666))?;
                checked(libc::close(file)).map(drop)
            }
        },
    },
    Row {
        phase: "mdtest-easy-stat",
        calls: "fstatat",
        bare: |path| {
            let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
            // SAFETY: the path is a C string, and `stat` is valid for writing.
            checked(unsafe { libc::lstat(path.as_ptr(), stat.as_mut_ptr()) }).map(drop)
        },
    },
    Row {
        phase: "mdtest-easy-delete",
        calls: "unlink",
        // SAFETY: the path is a C string.
        bare: |path| checked(unsafe { libc::unlink(path.as_ptr()) }).map(drop),
    },
];

fn checked(returned: i32) -> io::Result<i32> {
    match returned {
        -1 => Err(io::Error::last_os_error()),
        other => Ok(other),
    }
}

/// Measures all rows. `--repetitions N` (default 7), `--before PROGRAM` (another build of ours, by its absolute path),
/// `--write`.
pub(super) fn main(args: &[String]) -> Result {
    let repetitions = option(args, "--repetitions", 7)?;
    let before = value_of(args, "--before")?;
    let place = TempDir::in_memory("bench-ranks")?;
    let (mut ours, mut bare) = (vec![Vec::new(); ROWS.len()], vec![Vec::new(); ROWS.len()]);
    for _ in 0..repetitions {
        let times = own(place.path(), before)?;
        ours.iter_mut()
            .zip(times)
            .for_each(|(all, us)| all.push(us));
        let times = plain(place.path())?;
        bare.iter_mut()
            .zip(times)
            .for_each(|(all, us)| all.push(us));
    }
    let mut table = String::from(
        "| phase | calls | goal | ours adds: median (quartiles, n) | ours | the calls |\n|---|---|--:|--:|--:|--:|\n",
    );
    let mut missed = Vec::new();
    for ((row, ours), bare) in ROWS.iter().zip(&ours).zip(&bare) {
        let added: Vec<f64> = ours.iter().zip(bare).map(|(a, b)| a - b).collect();
        let (middle, (lo, hi)) = (median(&added), quartiles(&added));
        let _ = writeln!(
            table,
            "| {} | {} | ≤ {GOAL_US} µs | {middle:.2} µs ({lo:.2}-{hi:.2}, n={repetitions}) | {:.2} µs | {:.2} µs |",
            row.phase,
            row.calls,
            median(ours),
            median(bare)
        );
        if middle > GOAL_US {
            let text = format!("{}: {middle:.2} µs are above the goal {GOAL_US}", row.phase);
            missed.push(text);
        }
    }
    finish("ranks", args, &table, &missed)
}

/// Microseconds per operation of each phase, by `bucketload io500` with one rank.
fn own(place: &Path, before: Option<&String>) -> Result<Vec<f64>> {
    let out = place.join("own");
    let (data, dir) = (place.join("data"), out.display());
    let line = format!(
        "io500 --ranks 1 --cores {CLIENT_CORE} --quiet --out {dir} --set global.datadir={} --set ior-easy.run=FALSE \
         --set ior-hard.run=FALSE --set mdtest-hard.run=FALSE --set find.run=FALSE --set mdtest-easy.n={FILES}",
        data.display()
    );
    let mut command = match before {
        Some(program) => clean_call(Path::new(program), &line),
        None => bucketload(&line)?,
    };
    done(&mut command)?;
    let result = files::read(out.join("result.txt"))?;
    files::remove_dir(&out)?;
    files::remove_dir(&data)?;
    let score = |row: &Row| {
        let section = result.split(&format!("[{}]", row.phase)).nth(1);
        let line = section.and_then(|text| text.lines().find(|line| line.starts_with("score")));
        let kiops: Option<f64> = line.and_then(|line| line.split('=').nth(1)?.trim().parse().ok());
        let kiops = kiops.filter(|kiops| *kiops > 0.0);
        kiops
            .map(|kiops| 1000.0 / kiops)
            .ok_or_else(|| format!("{}: no score", row.phase))
    };
    ROWS.iter().map(score).collect()
}

/// Microseconds per operation of the bare calls.
fn plain(place: &Path) -> Result<Vec<f64>> {
    // As deep as the files of a run.
    let dir = place.join("data/bucketload-run/mdtest-easy/test-dir.0-0/mdtest_tree.0.0");
    fs::create_dir_all(&dir).map_err(files::at(&dir))?;
    let names = (0..FILES).map(|i| {
        let path = dir.join(format!("file.mdtest.0.{i}"));
        CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())
    });
    let names: Vec<CString> = names.collect::<Result<_>>()?;
    // A thread of its own, because the core is its only one from now on.
    let measure = || -> io::Result<Vec<f64>> {
        let mut core = CpuSet::new();
        core.set(CLIENT_CORE);
        sched_setaffinity(None, &core)?;
        let mut times = Vec::new();
        for row in &ROWS {
            let start = Instant::now();
            names.iter().try_for_each(row.bare)?;
            times.push(start.elapsed().as_secs_f64() * 1e6 / FILES as f64);
        }
        Ok(times)
    };
    let times = std::thread::scope(|scope| scope.spawn(measure).join());
    let times = times.map_err(|_| "the thread of the bare calls panicked".to_owned())?;
    let times = times.map_err(|e| format!("{}: {e}", dir.display()))?;
    files::remove_dir(&place.join("data"))?;
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::{FILES, ROWS, plain};
    use crate::files::TempDir;

    #[test]
    fn bare_calls_leave_nothing_behind() {
        let place = TempDir::in_memory("bench-ranks-test").unwrap();
        let times = plain(place.path()).unwrap();
        assert_eq!(times.len(), ROWS.len());
        assert!(times.iter().all(|us| *us > 0.0) && FILES > 0);
        assert_eq!(place.path().read_dir().unwrap().count(), 0);
    }
}
