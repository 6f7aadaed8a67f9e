//! The file system driver on a local directory, a CephFS mount and a bucket mounted by s3fs: the suite with every
//! engine, and a scenario among foreign files.

use std::path::Path;
use std::process::Command;

use super::bad_places;
use crate::files;
use crate::program::{self, Env, online_service};
use crate::server::{Server, parse_env};
use crate::sh::{Result, none_of, output, root, run, script, step};

/// Directory of a run below the root of a file target.
const BUCKET: &str = "bucketload";
pub(super) const ENGINES: [&str; 3] = ["uring", "threads", "sync"];

/// Tests each file system in turn; one failure does not hide the next.
pub(super) fn all() -> Result {
    let local = root()
        .join("target")
        .join(format!("files-{}", std::process::id()));
    let mut failures = Vec::new();
    failures.extend(drive("local directory", "posix", &local).err());
    let ceph = Server::ceph("rgw fs")?;
    let mount = ceph.get("CEPHFS_MOUNT")?;
    failures.extend(drive("CephFS", "posix", &Path::new(mount).join("files")).err());
    let s3fs = S3fs::mount(&ceph)?;
    let below = Path::new(&s3fs.mount).join("files");
    failures.extend(drive("s3fs", "s3fs", &below).err());
    drop(s3fs);
    failures.extend(bad_places::all(&ceph).err());
    none_of(&failures)
}

/// Runs all checks in `place`, which is created and must be empty again afterwards.
fn drive(name: &str, known_as: &str, place: &Path) -> Result {
    files::make_dir(place)?;
    for (number, engine) in ENGINES.iter().enumerate() {
        step(&format!("files: suite on {name}, {engine}"), || {
            let printed = example(place, engine, &format!("suite posix {known_as}"))?;
            let tell = (number == 0).then_some(("posix", name));
            super::servers::suite(printed, tell)
        })?;
    }
    let what = format!("files: online-service on {name}, among foreign files");
    step(&what, || scenario(place))?;
    files::remove_dir(&place.join(BUCKET))?;
    // Fails if the directory is not empty.
    std::fs::remove_dir(place).map_err(files::at(place))
}

fn example(place: &Path, engine: &str, line: &str) -> Result<Command> {
    let mut command = program::suite(line)?;
    command.env("POSIX_ROOT", place).env("POSIX_IO", engine);
    Ok(command)
}

fn scenario(place: &Path) -> Result {
    let foreign = |verb: &str| {
        let line = format!("{verb} posix {BUCKET} bench");
        run(&mut example(place, "threads", &line)?)
    };
    foreign("plant")?;
    let shown = place.display().to_string();
    let flags = format!("--target 'file://{shown}' --duration 20s --objects 200 --verify");
    online_service(&shown, &flags, &Env::new())?;
    foreign("check")
}

/// A bucket mounted by s3fs; unmounted when dropped.
pub(super) struct S3fs {
    pub(super) mount: String,
    settings: Env,
}

impl S3fs {
    pub(super) fn mount(server: &Server) -> Result<Self> {
        let mut settings = Env::new();
        let mut set = |name: &str, value: &str| settings.insert(name.to_owned(), value.to_owned());
        set("S3FS_NAME", &format!("ci{}", std::process::id()));
        for (name, of) in [
            ("S3_ENDPOINT", "AWS_ENDPOINT_URL"),
            ("S3_ACCESS_KEY", "AWS_ACCESS_KEY_ID"),
            ("S3_SECRET_KEY", "AWS_SECRET_ACCESS_KEY"),
            ("S3_REGION", "AWS_REGION"),
        ] {
            set(name, server.get(of)?);
        }
        let env = parse_env(&output(script("s3fs", "start").envs(&settings))?);
        let mount = env.get("S3FS_MOUNT").ok_or("s3fs.sh names no S3FS_MOUNT")?;
        Ok(Self {
            mount: mount.clone(),
            settings,
        })
    }

    /// A call of the script with the settings of this mount.
    pub(super) fn call(&self, verb: &str) -> Command {
        let mut command = script("s3fs", verb);
        command.envs(&self.settings);
        command
    }
}

impl Drop for S3fs {
    fn drop(&mut self) {
        if let Err(error) = run(&mut self.call("clean")) {
            eprintln!("xtask: s3fs could not be unmounted: {error}");
        }
    }
}
