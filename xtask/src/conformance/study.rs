//! A study that starts real servers itself: MinIO alone and behind nginx with its cache, killed in the middle, gone on
//! with, and nothing left running.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::own::{TempDir, bucketload, call};
use crate::sh::{Result, root};

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

/// Cells of the study.
const CELLS: usize = 2 * 2 * 3;

/// Kills the study after its first cells and goes on with it.
pub(crate) fn study() -> Result {
    let dir = TempDir::new("study")?;
    let (file, out) = (dir.file("servers.toml"), dir.file("study"));
    std::fs::write(&file, STUDY).map_err(|e| format!("{file}: {e}"))?;
    let scripts = root().join("servers").display().to_string();
    let args = ["study", &file, "--dir", &out, "--servers", &scripts];
    let journal = dir.path().join("study/journal.jsonl");
    let lines = |event: &str| -> usize {
        let text = std::fs::read_to_string(&journal).unwrap_or_default();
        let tag = format!("\"event\":\"{event}\"");
        text.lines().filter(|line| line.contains(&tag)).count()
    };
    let mut child = bucketload(&args)?.spawn().map_err(|e| e.to_string())?;
    let until = Instant::now() + Duration::from_secs(900);
    while lines("finished") < 2 {
        if Instant::now() > until {
            return Err("no two cells were measured in 15 minutes".to_owned());
        }
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Err(format!("the study ended too early: {status}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().map_err(|e| e.to_string())?;
    child.wait().map_err(|e| e.to_string())?;
    let before = lines("finished");
    call(&mut bucketload(&args)?)?.expect_code(0)?;
    if lines("finished") != CELLS || lines("failed") + lines("skipped") > 0 {
        return Err(format!(
            "{} of {CELLS} cells were measured",
            lines("finished")
        ));
    }
    let begun = lines("started");
    // The killed cell was begun twice, if one was running.
    if begun > CELLS + 1 {
        return Err(format!(
            "{begun} cells were begun after {before} of {CELLS} had been measured"
        ));
    }
    let facts = dir.path().join("study/targets/proxy.json");
    let facts = std::fs::read_to_string(&facts).map_err(|e| e.to_string())?;
    for word in ["nginx/1.", "proxy-cache", "\"minio\""] {
        if !facts.contains(word) {
            return Err(format!(
                "the facts of the target do not say {word}: {facts}"
            ));
        }
    }
    for name in ["minio", "proxy"] {
        ended(&dir.path().join(format!("study/targets/{name}.json")))?;
    }
    Ok(())
}

/// Fails when the server of a target still listens.
fn ended(facts: &Path) -> Result {
    let text = std::fs::read_to_string(facts).map_err(|e| format!("{}: {e}", facts.display()))?;
    let facts: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let endpoint = facts["endpoint"].as_str().unwrap_or_default();
    let address = endpoint.trim_start_matches("http://");
    match TcpStream::connect(address) {
        Ok(_) => Err(format!("the server at {endpoint} is still running")),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(format!("{endpoint}: {error}")),
    }
}
