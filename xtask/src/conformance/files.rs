//! The driver of file systems on a local directory, a CephFS mount and a bucket mounted by s3fs: the
//! suite with every engine, and a scenario among foreign files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{bad_places, matrix};
use crate::own::{self, TempDir, bucketload, call, run_phase};
use crate::server::{Server, parse_env};
use crate::sh::{Result, cmd, output, root, run, step};

/// Where a run's directory lies below the root of a file target.
const BUCKET: &str = "bucketload";
pub(super) const ENGINES: [&str; 3] = ["uring", "threads", "sync"];

/// Drives each file system in turn; what is there but does not work does not hide the next.
pub(super) fn all() -> Result {
    let local = root()
        .join("target")
        .join(format!("files-{}", std::process::id()));
    let mut failures = Vec::new();
    failures.extend(drive("local directory", "posix", &local).err());
    let ceph = Server::start_parts("ceph", &["rgw", "fs"])?;
    let mount = ceph
        .env
        .get("CEPHFS_MOUNT")
        .ok_or("ceph.sh names no CEPHFS_MOUNT")?;
    failures.extend(drive("CephFS", "posix", &Path::new(mount).join("files")).err());
    let s3fs = S3fs::mount(&ceph)?;
    let below = Path::new(&s3fs.mount).join("files");
    failures.extend(drive("s3fs", "s3fs", &below).err());
    drop(s3fs);
    failures.extend(bad_places::all(&ceph).err());
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n")),
    }
}

/// Runs everything in `place`, which is made and must be empty again afterwards.
fn drive(name: &str, known_as: &str, place: &Path) -> Result {
    let at = |e: std::io::Error| format!("{}: {e}", place.display());
    std::fs::create_dir_all(place).map_err(at)?;
    for (number, engine) in ENGINES.iter().enumerate() {
        step(&format!("files: suite on {name}, {engine}"), || {
            suite(name, known_as, place, engine, number == 0)
        })?;
    }
    step(
        &format!("files: online-service on {name}, among foreign files"),
        || scenario(place),
    )?;
    std::fs::remove_dir_all(place.join(BUCKET)).map_err(at)?;
    // Fails where anything is left.
    std::fs::remove_dir(place).map_err(at)
}

fn example(place: &Path, engine: &str, args: &[&str]) -> Result<Command> {
    let mut command = own::suite(args)?;
    command.env("POSIX_ROOT", place).env("POSIX_IO", engine);
    Ok(command)
}

fn suite(name: &str, known_as: &str, place: &Path, engine: &str, tell: bool) -> Result {
    let out = example(place, engine, &["suite", "posix", known_as])?
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| e.to_string())?;
    let printed = String::from_utf8_lossy(&out.stdout);
    print!("{printed}");
    if tell {
        matrix::add("posix", name, &printed);
    }
    match out.status.success() {
        true => Ok(()),
        false => Err(format!("the suite ended with {}", out.status)),
    }
}

fn scenario(place: &Path) -> Result {
    let dir = TempDir::new("files")?;
    run(&mut example(
        place,
        "threads",
        &["plant", "posix", BUCKET, "bench"],
    )?)?;
    let (target, out) = (format!("file://{}", place.display()), dir.file("run"));
    let args = [
        "run",
        "online-service",
        "--target",
        &target,
        "--rate",
        "20/s",
        "--duration",
        "20s",
        "--objects",
        "200",
        "--size",
        "loguniform(1KiB, 1MiB)",
        "--verify",
        "--out",
        &out,
        "--output",
        "json",
    ];
    let outcome = call(&mut bucketload(&args)?)?;
    outcome.expect_code(0)?;
    let result = outcome.json()?;
    let totals = &run_phase(&result)?["totals"];
    eprintln!(
        "{}: {} {totals}",
        place.display(),
        result["verdict"]["word"]
    );
    if totals["failed"] != 0 || totals["ok"] != totals["offered"] {
        return Err(format!(
            "operations failed: {totals} {}",
            result["failures"]
        ));
    }
    run(&mut example(
        place,
        "threads",
        &["check", "posix", BUCKET, "bench"],
    )?)
}

/// A bucket mounted by s3fs; unmounted when dropped.
pub(super) struct S3fs {
    pub(super) mount: String,
    settings: BTreeMap<String, String>,
}

impl S3fs {
    pub(super) fn mount(server: &Server) -> Result<Self> {
        let of = |name: &str| {
            let value = server.env.get(name).cloned();
            value.ok_or_else(|| format!("{} names no {name}", server.name))
        };
        let settings = BTreeMap::from([
            ("S3FS_NAME".to_owned(), format!("ci{}", std::process::id())),
            ("S3_ENDPOINT".to_owned(), of("AWS_ENDPOINT_URL")?),
            ("S3_ACCESS_KEY".to_owned(), of("AWS_ACCESS_KEY_ID")?),
            ("S3_SECRET_KEY".to_owned(), of("AWS_SECRET_ACCESS_KEY")?),
            ("S3_REGION".to_owned(), of("AWS_REGION")?),
        ]);
        let env = parse_env(&output(Self::script("start").envs(&settings))?);
        let mount = env.get("S3FS_MOUNT").ok_or("s3fs.sh names no S3FS_MOUNT")?;
        Ok(Self {
            mount: mount.clone(),
            settings,
        })
    }

    fn script(verb: &str) -> Command {
        cmd(&root().join("servers/s3fs.sh").to_string_lossy(), [verb])
    }

    /// A call of the script for this mount.
    pub(super) fn call(&self, verb: &str) -> Command {
        let mut command = Self::script(verb);
        command.envs(&self.settings);
        command
    }
}

impl Drop for S3fs {
    fn drop(&mut self) {
        if let Err(error) = run(Self::script("clean").envs(&self.settings)) {
            eprintln!("xtask: s3fs could not be unmounted: {error}");
        }
    }
}
