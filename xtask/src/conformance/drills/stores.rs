//! Servers of others that commands kill, pause and restart. The prober measures the outage by itself, and a listing says
//! which acknowledged writes are there.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::prober::{Place, Prober, outage};
use super::{Drill, number, operations};
use crate::files::{self, TempDir};
use crate::machine::{TimeLimits, undisturbed};
use crate::program::{Serve, items, whole};
use crate::server::Server;
use crate::sh::{Result, cmd, ensure, need_programs, run};

const STAGES: &str = "warm = \"2s\"\nsteady = \"15s\"\nrecover = \"20s\"\nhold = \"3s\"";
const HOLD_S: f64 = 3.0;
/// Largest difference between the prober's recovery time and the drill's, seconds.
const APART_S: f64 = 1.0;
/// Bucket of the drill.
const BUCKET: &str = "drilled";

/// Kills a server with SIGKILL and starts it again 5 s later.
pub(super) fn killed(name: &str) -> Result {
    let server = Server::start(name)?;
    watched(
        &server,
        "read pid birth < \"$PIDFILE\"; kill -KILL $pid",
        &server.start_again()?,
    )
}

/// Stops a server with SIGSTOP for 5 s.
pub(super) fn paused(name: &str) -> Result {
    let server = Server::start(name)?;
    let signal = |word: &str| format!("read pid birth < \"$PIDFILE\"; kill -{word} $pid");
    watched(&server, &signal("STOP"), &signal("CONT"))
}

/// Kills one of three OSDs, which keep two copies of everything, and starts it again 5 s later.
pub(super) fn osd() -> Result {
    let settings = [
        ("CEPH_OSDS", "3"),
        ("CEPH_REPLICAS", "2"),
        ("CEPH_STORE", "bluestore"),
        ("CEPH_OSD_SIZE", "4G"),
        ("CEPH_OSD_MEMORY", "512M"),
    ];
    let server = Server::start_with("ceph", &settings)?;
    watched(
        &server,
        "kill -KILL $(cat \"$PIDFILE\")",
        &server.start_again()?,
    )
}

/// The file with the process that is killed or paused.
fn pid_file(server: &Server) -> Result<String> {
    let place = match server.name.as_str() {
        "ceph" => Path::new(server.get("CEPH_CONF")?).with_file_name("run/osd.1.pid"),
        _ => Path::new(server.get("LOG")?).with_file_name("pid"),
    };
    Ok(place.display().to_string())
}

/// A drill with these hooks on a running server, beside the prober.
fn watched(server: &Server, breaks: &str, mends: &str) -> Result {
    need_programs(&[("zstd", "zstd")])?;
    let place = Place::of(server)?;
    let mut env = server.env.clone();
    env.insert("PIDFILE".to_owned(), pid_file(server)?);
    undisturbed(&server.name, 2, || {
        let dir = TempDir::new("drilled")?;
        let [broken, mended] = ["broken", "mended"].map(|name| dir.file(name));
        let fault = format!(
            "[[fault]]\nwhat = \"hook\"\nfor = \"5s\"\nlimit = \"120s\"\n\
             break = '''date +%s.%N > {broken}; {breaks}'''\nmend = '''date +%s.%N > {mended}; {mends}'''"
        );
        let flags =
            format!("--target s3://{BUCKET}/p --create-bucket --oracle --keep --op-log=csv.zst");
        let drill = Drill {
            stages: STAGES,
            rate: 100,
            faults: &fault,
            flags: &flags,
        };
        let prober = Prober::start(&place)?;
        let outcome = drill.run(&dir, "drill", &env);
        let probes = prober.end()?;
        let outcome = outcome?;
        outcome.expect_code(0)?;
        let result = outcome.json()?;
        let drill = &result["drill"];
        ensure(drill["valid"] == true, || {
            format!("nothing was broken: {}", drill["why"])
        })?;
        nothing_lost(&place, &result, Path::new(&dir.file("drill")))?;
        let at = |file: &str| -> Result<f64> {
            files::read(file)?
                .trim()
                .parse()
                .map_err(|e| format!("{file}: {e}"))
        };
        let (broken, mended) = (at(&broken)?, at(&mended)?);
        let Some((from, back)) = outage(&probes, broken, mended, HOLD_S) else {
            return Err("the prober noticed nothing".to_owned());
        };
        let theirs = (back - mended).max(0.0);
        let line = format!(
            "{}: the prober's outage begins {:.2} s after the break and ends {theirs:.2} s after the mend; the drill says \
             {} and {}",
            server.name,
            from - broken,
            drill["detect"],
            drill["recover"]
        );
        eprintln!("{line}");
        let recover = &drill["recover"];
        let agrees = !recover.is_null() && (number(recover, "s")? - theirs).abs() <= APART_S;
        Ok(match agrees {
            true => TimeLimits::Kept,
            false => TimeLimits::Missed(line),
        })
    })
}

/// The drill found nothing wrong with acknowledged writes, and the bucket's listing has all of them.
fn nothing_lost(place: &Place, result: &Value, out: &Path) -> Result {
    let found = &result["oracle"]["found"];
    ensure(
        found.as_object().is_some_and(serde_json::Map::is_empty),
        || {
            format!(
                "the drill reports {found}: {}",
                result["oracle"]["findings"]
            )
        },
    )?;
    let data = &result["drill"]["data"];
    ensure(data["audited"] == true, || format!("no audit: {data}"))?;
    let keys: BTreeSet<String> = place.keys(BUCKET)?.into_iter().collect();
    let written = operations(out)?;
    let acknowledged: Vec<_> = written
        .iter()
        .filter(|op| op.class == "put" && op.ok)
        .collect();
    let missing = acknowledged
        .iter()
        .filter(|op| !keys.iter().any(|key| key.ends_with(&op.key)));
    let missing: Vec<&str> = missing.map(|op| op.key.as_str()).collect();
    eprintln!(
        "{} of {} writes acknowledged, {} of unknown outcome; {} keys listed",
        acknowledged.len(),
        written.iter().filter(|op| op.class == "put").count(),
        data["unknown"],
        keys.len()
    );
    ensure(!acknowledged.is_empty() && missing.is_empty(), || {
        format!(
            "the listing lacks acknowledged writes: {}",
            missing.join(", ")
        )
    })
}

/// A file system that fills up: the store refuses writes while it is full, takes them again afterwards, and loses none.
pub(super) fn full_disk() -> Result {
    let dir = TempDir::new("full-disk")?;
    let mount = dir.file("small");
    files::make_dir(&mount)?;
    run(&mut cmd(
        "mount",
        ["-t", "tmpfs", "-o", "size=64m", "tmpfs", &mount],
    ))?;
    let outcome = on_full_disk(&dir, &mount);
    run(&mut cmd("umount", ["-l", &mount]))?;
    outcome
}

fn on_full_disk(dir: &TempDir, mount: &str) -> Result {
    let store = format!("{mount}/store");
    files::make_dir(&store)?;
    let server = Serve::start(&format!("--store posix:{store}"))?;
    let fault = format!(
        "[[fault]]\nwhat = \"hook\"\nfor = \"4s\"\n\
         break = '''dd if=/dev/zero of={mount}/fill bs=1M 2>/dev/null; dd if=/dev/zero of={mount}/fill2 bs=4k 2>/dev/null; true'''\n\
         mend = '''rm -f {mount}/fill {mount}/fill2'''"
    );
    let flags = format!(
        "--oracle --target s3://full/p --create-bucket --endpoint-url {}",
        server.url()
    );
    let drill = Drill {
        stages: STAGES,
        rate: 100,
        faults: &fault,
        flags: &flags,
    };
    let result = drill.result(dir, "full", &server.aws_env())?;
    let failed: u64 = items(&result["drill"]["errors"])
        .map(|error| whole(&error["count"]))
        .sum();
    let found = &result["oracle"]["found"];
    let line = format!(
        "{failed} operations failed; {}; {found}",
        result["drill"]["recover"]
    );
    eprintln!("{line}");
    // A third of 100 operations per second write; blocks that objects free in between let some through.
    let holds = failed >= 20
        && !result["drill"]["detect"].is_null()
        && !result["drill"]["recover"].is_null()
        && found.as_object().is_some_and(serde_json::Map::is_empty);
    ensure(holds, || format!("a full disk: {line}"))
}
