//! A study that starts real servers itself, MinIO alone and behind nginx with its cache. The study is killed halfway
//! and resumed, and must leave nothing running. And the study of AI storage on two embedded stores, one slower by a known law.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use crate::files::{self, TempDir};
use crate::process::{Process, wait_until};
use crate::program::{Serve, bucketload, call, text, try_bucketload};
use crate::sh::{Result, ensure, root};

const STUDY: &str = r#"
name = "servers"
title = "Servers that a study starts"
repetitions = 3
recovery = "100ms"
settle = "0s"
[[target]]
name = "minio"
server = "minio"
[[target]]
name = "proxy"
server = "minio"
proxy = "nginx"
proxy-cache = true
[[experiment]]
name = "reads"
workload = "get"
field = "workers"
values = [1, 4]
options = { duration = "1s", objects = 20, size = "4KiB", no-calibration = true }
[[experiment.table]]
kind = "summary"
"#;

/// Number of cells of the study.
const CELLS: usize = 2 * 2 * 3;

/// Kills the study after its first cells and resumes it.
pub(crate) fn study() -> Result {
    let dir = TempDir::new("study")?;
    let (file, out) = (dir.file("servers.toml"), dir.file("study"));
    files::write(&file, STUDY)?;
    let scripts = root().join("servers").display().to_string();
    let args = format!("study {file} --dir {out} --servers '{scripts}'");
    let journal = dir.path().join("study/journal.jsonl");
    let lines = |event: &str| -> usize {
        let text = std::fs::read_to_string(&journal).unwrap_or_default();
        let tag = format!("\"event\":\"{event}\"");
        text.lines().filter(|line| line.contains(&tag)).count()
    };
    let mut study = Process::start(&mut bucketload(&args)?)?;
    let patience = Duration::from_secs(900);
    wait_until("two cells are measured", patience, || {
        study.still_runs()?;
        Ok(lines("finished") >= 2)
    })?;
    study.kill()?;
    let before = lines("finished");
    try_bucketload(&args)?.expect_code(0)?;
    let finished = lines("finished");
    let whole = finished == CELLS && lines("failed") + lines("skipped") == 0;
    ensure(whole, || {
        format!("{finished} of {CELLS} cells were measured")
    })?;
    let begun = lines("started");
    // A cell that was running when the study was killed started twice.
    ensure(begun <= CELLS + 1, || {
        format!("{begun} cells were begun after {before} of {CELLS} had been measured")
    })?;
    let facts = files::read(dir.path().join("study/targets/proxy.json"))?;
    for word in ["nginx/1.", "proxy-cache", "\"minio\""] {
        ensure(facts.contains(word), || {
            format!("the facts of the target do not say {word}: {facts}")
        })?;
    }
    for name in ["minio", "proxy"] {
        ended(&dir.path().join(format!("study/targets/{name}.json")))?;
    }
    ai()
}

/// `study ai` on two stores of which one delays every read by 250 ms and every write by 50 ms: its tables must show it.
fn ai() -> Result {
    let dir = TempDir::new("study-ai")?;
    let out = dir.file("ai");
    let fast = Serve::start("--store memory")?;
    let slow =
        Serve::start("--store memory --fault delay,ms=250,op=get --fault delay,ms=50,op=put")?;
    let (_, id, secret) = fast.endpoint();
    let line = format!(
        "study ai --quick --repetitions 1 --create-bucket --target fast=s3://bench/t --target slow=s3://bench/t \
         --endpoint-url fast={} --endpoint-url slow={} --dir {out}",
        fast.url(),
        slow.url()
    );
    let outcome = call(
        bucketload(&line)?
            .env("AWS_ACCESS_KEY_ID", id)
            .env("AWS_SECRET_ACCESS_KEY", secret),
    )?;
    outcome.expect_code(0)?;
    for (name, column, higher) in [
        ("unet3d", "au_share", true),
        ("cosmoflow", "samples_per_s", true),
        ("checkpoint", "checkpoint_write_ns", false),
        ("checkpoint", "checkpoint_read_ns", false),
        ("kvcache", "load_p50_ns", false),
    ] {
        let table = files::read(dir.path().join(format!("ai/tables/{name}-mlperf.csv")))?;
        let values = |target: &str| column_of(&table, target, column);
        let (fast, slow) = (values("fast"), values("slow"));
        let apart = !fast.is_empty()
            && fast.len() == slow.len()
            && fast.iter().zip(&slow).all(|(f, s)| (f > s) == higher);
        ensure(apart, || {
            format!("{name}: {column} does not tell the stores apart: {fast:?}, {slow:?}")
        })?;
        // A load waits for at least one delayed read.
        let law = name != "kvcache" || slow.iter().all(|ns| *ns >= 2.5e8);
        ensure(law, || {
            format!("{name}: loads are shorter than the delay: {slow:?}")
        })?;
    }
    Ok(())
}

/// The numbers of a column in the rows of a target.
fn column_of(csv: &str, target: &str, column: &str) -> Vec<f64> {
    let mut lines = csv.lines();
    let at = |head: &str| head.split(',').position(|name| name == column);
    let Some(at) = lines.next().and_then(at) else {
        return Vec::new();
    };
    let own = lines.filter(|line| line.starts_with(&format!("{target},")));
    own.filter_map(|line| line.split(',').nth(at)?.parse().ok())
        .collect()
}

/// Fails if the server of a target still listens.
fn ended(facts: &Path) -> Result {
    let facts = files::json(facts)?;
    let endpoint = text(&facts["endpoint"]);
    let address = endpoint.trim_start_matches("http://");
    match TcpStream::connect(address) {
        Ok(_) => Err(format!("the server at {endpoint} is still running")),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(format!("{endpoint}: {error}")),
    }
}
