//! File systems that fail: full, read-only, not permitted, gone. Each is named, with the right exit code, and
//! what others have there stays. Needs root, for mounts of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::S3fs;
use crate::own::{Outcome, TempDir, bucketload, call, program};
use crate::server::Server;
use crate::sh::{Result, cmd, output, run, step};

/// A file of somebody else.
const FOREIGN: &str = "theirs";
const TEXT: &str = "not the run's business\n";
/// A user without any rights, as everywhere.
const NOBODY: &str = "65534";

/// All of them; the mount that goes is one of s3fs over `server`.
pub(super) fn all(server: &Server) -> Result {
    step("files: a file system that gets full", full)?;
    step("files: a file system that is read-only", read_only)?;
    step("files: a directory of another user", denied)?;
    step("files: a cold start", cold)?;
    step("files: a mount that goes while it is used", || gone(server))
}

/// A file system in memory, unmounted when dropped.
struct Memory {
    dir: TempDir,
}

impl Memory {
    fn mount() -> Result<Self> {
        let dir = TempDir::new("memory-fs")?;
        let place = dir.file("");
        run(&mut cmd(
            "mount",
            ["-t", "tmpfs", "-o", "size=8m", "bucketload", &place],
        ))?;
        let memory = Self { dir };
        plant(memory.path())?;
        Ok(memory)
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Err(error) = run(&mut cmd("umount", [self.dir.path()])) {
            eprintln!("xtask: {error}");
        }
    }
}

fn plant(dir: &Path) -> Result {
    let path = dir.join(FOREIGN);
    std::fs::write(&path, TEXT).map_err(|e| format!("{}: {e}", path.display()))
}

/// Fails unless the foreign file is as it was and nothing else lies there.
fn untouched(dir: &Path) -> Result {
    let at = |e: std::io::Error| format!("{}: {e}", dir.display());
    if std::fs::read_to_string(dir.join(FOREIGN)).map_err(at)? != TEXT {
        return Err(format!("{}: {FOREIGN} was changed", dir.display()));
    }
    let entries = std::fs::read_dir(dir).map_err(at)?;
    let names: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()
        .map_err(at)?;
    match names.len() {
        1 => Ok(()),
        _ => Err(format!("left behind: {names:?}")),
    }
}

/// Arguments of a run that writes 40 MiB.
fn puts<'a>(target: &'a str, out: &'a str) -> [&'a str; 12] {
    [
        "run",
        "put",
        "--target",
        target,
        "--size",
        "1MiB",
        "--ops",
        "40",
        "--workers=2",
        "--no-calibration",
        "--out",
        out,
    ]
}

fn expect(outcome: &Outcome, code: i32, words: &[&str]) -> Result {
    outcome.expect_code(code)?;
    match words.iter().find(|word| !outcome.stderr.contains(**word)) {
        None => {
            eprintln!("{}", outcome.stderr.trim_end());
            Ok(())
        }
        Some(word) => Err(format!("nothing about {word:?}: {}", outcome.stderr)),
    }
}

fn full() -> Result {
    let (memory, dir) = (Memory::mount()?, TempDir::new("bad-place")?);
    let target = format!("file://{}", memory.path().display());
    for (number, io) in super::files::ENGINES.iter().enumerate() {
        let out = dir.file(&format!("run{number}"));
        let outcome = call(bucketload(&puts(&target, &out))?.args(["--posix-io", io]))?;
        expect(&outcome, 1, &["full", "No space left on device"])?;
        untouched(memory.path())?;
    }
    Ok(())
}

fn read_only() -> Result {
    let (memory, dir) = (Memory::mount()?, TempDir::new("bad-place")?);
    run(cmd("mount", ["-o", "remount,ro"]).arg(memory.path()))?;
    let target = format!("file://{}", memory.path().display());
    let outcome = call(&mut bucketload(&puts(&target, &dir.file("run")))?)?;
    expect(&outcome, 3, &["read-only"])?;
    untouched(memory.path())
}

fn denied() -> Result {
    let (place, dir) = (TempDir::new("denied")?, TempDir::new("bad-place")?);
    plant(place.path())?;
    run(cmd("chmod", ["755"]).arg(place.path()))?;
    run(cmd("chmod", ["777"]).arg(dir.path()))?;
    // Where it was built may be closed to others.
    let copy = dir.file("bucketload");
    std::fs::copy(program()?, &copy).map_err(|e| format!("{copy}: {e}"))?;
    let target = format!("file://{}", place.path().display());
    let user = [
        &format!("--reuid={NOBODY}"),
        &format!("--regid={NOBODY}"),
        "--clear-groups",
        &copy,
    ];
    let as_nobody = |more: &[&str]| {
        call(
            Command::new("setpriv")
                .args(user)
                .args(puts(&target, &dir.file("run")))
                .args(more)
                .current_dir(dir.path()),
        )
    };
    expect(&as_nobody(&[])?, 3, &["Permission denied"])?;
    // Who may not empty the machine's caches is told so before anything is written.
    let refused = as_nobody(&["--posix-drop-caches"])?;
    expect(&refused, 2, &["--posix-drop-caches", "it takes root"])?;
    untouched(place.path())
}

/// Who may empty the machine's caches begins cold, and the result says so.
fn cold() -> Result {
    let (place, dir) = (TempDir::new("cold")?, TempDir::new("bad-place")?);
    plant(place.path())?;
    let target = format!("file://{}", place.path().display());
    let flags = ["--posix-drop-caches", "--output", "json"];
    let outcome = call(bucketload(&puts(&target, &dir.file("run")))?.args(flags))?;
    outcome.expect_code(0)?;
    let settings = outcome.json()?["run"]["driver"]["settings"].to_string();
    match settings.contains("emptied before each measured phase") {
        true => untouched(place.path()),
        false => Err(format!("the result does not say so: {settings}")),
    }
}

fn gone(server: &Server) -> Result {
    let dir = TempDir::new("bad-place")?;
    let mount = S3fs::mount(server)?;
    let place = Path::new(&mount.mount).join("gone");
    std::fs::create_dir_all(&place).map_err(|e| e.to_string())?;
    plant(&place)?;
    let (target, out) = (format!("file://{}", place.display()), dir.file("run"));
    let args = [
        "run",
        "put",
        "--target",
        &target,
        "--size",
        "4KiB",
        "--rate",
        "10/s",
        "--duration",
        "40s",
        "--timeout",
        "5s",
        "--no-calibration",
        "--out",
        &out,
    ];
    let mut command = bucketload(&args)?;
    let child = std::thread::spawn(move || call(&mut command));
    // The mount is there while the first seconds are recorded.
    let intervals = Path::new(&out).join("intervals.jsonl");
    let recorded = || std::fs::read_to_string(&intervals).map_or(0, |text| text.lines().count());
    while recorded() < 3 && !child.is_finished() {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    run(&mut cmd("kill", ["-KILL", &mount.pid()?]))?;
    let ended = child.join().map_err(|_| "the run's thread panicked")??;
    // Most operations fail; clean-up finds nothing to delete from, and the result stands all the same.
    expect(
        &ended,
        1,
        &["the mount is gone", "bucketload cleanup --target"],
    )?;
    let outcome = call(&mut bucketload(&puts(&target, &dir.file("again")))?)?;
    expect(&outcome, 3, &["the mount is gone"])?;
    let report = call(&mut bucketload(&["report", &out])?)?;
    report.expect_code(0)?;
    if !report.stdout.contains("connect") {
        return Err(format!("the failures are not told: {}", report.stdout));
    }
    // Mounted again, the foreign file is there, and clean-up finds what the run left.
    mount.again()?;
    call(&mut bucketload(&["cleanup", "--target", &target])?)?.expect_code(0)?;
    let bucket = place.join("bucketload");
    if bucket.exists() {
        std::fs::remove_dir(&bucket).map_err(|e| format!("{}: {e}", bucket.display()))?;
    }
    untouched(&place)?;
    std::fs::remove_dir_all(&place).map_err(|e| e.to_string())
}

impl S3fs {
    /// The process behind the mount.
    fn pid(&self) -> Result<String> {
        let status = output(&mut self.call("status"))?;
        let pid = status
            .split("pid ")
            .nth(1)
            .and_then(|s| s.split(' ').next());
        pid.map(str::to_owned)
            .ok_or_else(|| format!("s3fs.sh status names no pid: {status}"))
    }

    /// Mounts it again after its process was killed.
    fn again(&self) -> Result {
        output(&mut self.call("start")).map(drop)
    }
}
