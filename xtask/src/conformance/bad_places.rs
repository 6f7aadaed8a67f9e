//! Failing file systems: full, read-only, not permitted, gone. Each failure must be named, with the right exit code,
//! and files of others must survive. Needs root, to mount file systems.

use std::path::Path;

use super::files::S3fs;
use crate::files::{self, TempDir};
use crate::program::{Outcome, call, program, try_bucketload};
use crate::server::Server;
use crate::sh::{Result, cmd, ensure, line, output, run, step, words};

/// A file that the run must not touch.
const FOREIGN: &str = "theirs";
const TEXT: &str = "not the run's business\n";
/// The user `nobody`, who has no rights.
const NOBODY: &str = "65534";

/// All cases; the mount that disappears is an s3fs mount of a bucket of `server`.
pub(super) fn all(server: &Server) -> Result {
    step("files: a full file system", full)?;
    step("files: a read-only file system", read_only)?;
    step("files: a directory of another user", denied)?;
    step("files: a cold start", cold)?;
    step("files: a mount that disappears in use", || gone(server))
}

/// A file system in memory, unmounted when dropped.
struct Memory {
    dir: TempDir,
}

impl Memory {
    fn mount() -> Result<Self> {
        let dir = TempDir::new("memory-fs")?;
        let place = dir.file("");
        run(&mut line(&format!(
            "mount -t tmpfs -o size=8m bucketload {place}"
        )))?;
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
    files::write(dir.join(FOREIGN), TEXT)
}

/// Fails unless the foreign file is unchanged and alone.
fn untouched(dir: &Path) -> Result {
    ensure(files::read(dir.join(FOREIGN))? == TEXT, || {
        format!("{}: {FOREIGN} was changed", dir.display())
    })?;
    let names = files::list(dir)?;
    ensure(names.len() == 1, || format!("left behind: {names:?}"))
}

/// Runs the program to write 40 MiB into a directory.
fn puts(place: &Path, out: &str, more: &str) -> Result<Outcome> {
    try_bucketload(&puts_line(place, out, more))
}

fn puts_line(place: &Path, out: &str, more: &str) -> String {
    let place = place.display();
    format!(
        "run put --target 'file://{place}' --size 1MiB --ops 40 --workers=2 --no-calibration --out {out} {more}"
    )
}

fn full() -> Result {
    let (memory, dir) = (Memory::mount()?, TempDir::new("bad-place")?);
    for io in super::files::ENGINES {
        let out = dir.file(&format!("run-{io}"));
        let outcome = puts(memory.path(), &out, &format!("--posix-io {io}"))?;
        outcome.complains(1, &["full", "No space left on device"])?;
        untouched(memory.path())?;
    }
    Ok(())
}

fn read_only() -> Result {
    let (memory, dir) = (Memory::mount()?, TempDir::new("bad-place")?);
    run(cmd("mount", ["-o", "remount,ro"]).arg(memory.path()))?;
    puts(memory.path(), &dir.file("run"), "")?.complains(3, &["read-only"])?;
    untouched(memory.path())
}

fn denied() -> Result {
    let (place, dir) = (TempDir::new("denied")?, TempDir::new("bad-place")?);
    plant(place.path())?;
    run(cmd("chmod", ["755"]).arg(place.path()))?;
    run(cmd("chmod", ["777"]).arg(dir.path()))?;
    // Other users may not have access to the build directory.
    let copy = dir.path().join("bucketload");
    files::copy(program()?, &copy)?;
    let as_nobody = |more: &str| {
        call(
            line(&format!(
                "setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups"
            ))
            .arg(&copy)
            .args(words(&puts_line(place.path(), &dir.file("run"), more)))
            .current_dir(dir.path()),
        )
    };
    as_nobody("")?.complains(3, &["Permission denied"])?;
    // A user who may not drop the machine's caches must learn this before anything is written.
    let refused = as_nobody("--posix-drop-caches")?;
    refused.complains(2, &["--posix-drop-caches", "the flag needs root"])?;
    untouched(place.path())
}

/// A user who may drop the machine's caches starts cold, and the result says so.
fn cold() -> Result {
    let (place, dir) = (TempDir::new("cold")?, TempDir::new("bad-place")?);
    plant(place.path())?;
    let outcome = puts(
        place.path(),
        &dir.file("run"),
        "--posix-drop-caches --output json",
    )?;
    outcome.expect_code(0)?;
    let settings = outcome.json()?["run"]["driver"]["settings"].to_string();
    ensure(
        settings.contains("emptied before each measured phase"),
        || format!("the result does not say so: {settings}"),
    )?;
    untouched(place.path())
}

fn gone(server: &Server) -> Result {
    let dir = TempDir::new("bad-place")?;
    let mount = S3fs::mount(server)?;
    let place = Path::new(&mount.mount).join("gone");
    files::make_dir(&place)?;
    plant(&place)?;
    let (target, out) = (format!("file://{}", place.display()), dir.file("run"));
    let args = format!(
        "run put --target '{target}' --size 4KiB --rate 10/s --duration 40s --timeout 5s --no-calibration --out {out}"
    );
    let child = std::thread::spawn(move || try_bucketload(&args));
    // The mount exists while the first seconds are recorded.
    let intervals = Path::new(&out).join("intervals.jsonl");
    while files::lines(&intervals) < 3 && !child.is_finished() {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    run(&mut cmd("kill", ["-KILL", &mount.pid()?]))?;
    let ended = child.join().map_err(|_| "the run's thread panicked")??;
    // Most operations fail and clean-up finds nothing to delete from; the result must still be kept.
    ended.complains(1, &["the mount is gone", "bucketload cleanup --target"])?;
    puts(&place, &dir.file("again"), "")?.complains(3, &["the mount is gone"])?;
    let report = try_bucketload(&format!("report {out}"))?;
    report.expect_code(0)?;
    ensure(report.stdout.contains("connect"), || {
        format!("the report does not name the failures: {}", report.stdout)
    })?;
    // After a new mount the foreign file is there, and clean-up finds what the run left.
    mount.again()?;
    try_bucketload(&format!("cleanup --target '{target}'"))?.expect_code(0)?;
    let bucket = place.join("bucketload");
    if bucket.exists() {
        // Fails if the directory is not empty.
        std::fs::remove_dir(&bucket).map_err(files::at(&bucket))?;
    }
    untouched(&place)?;
    files::remove_dir(&place)
}

impl S3fs {
    /// The ID of the process behind the mount.
    fn pid(&self) -> Result<String> {
        let status = output(&mut self.call("status"))?;
        let pid = status.split("pid ").nth(1);
        let pid = pid.and_then(|rest| rest.split(' ').next());
        pid.map(str::to_owned)
            .ok_or_else(|| format!("s3fs.sh status names no pid: {status}"))
    }

    /// Mounts the bucket again after its process was killed.
    fn again(&self) -> Result {
        output(&mut self.call("start")).map(drop)
    }
}
