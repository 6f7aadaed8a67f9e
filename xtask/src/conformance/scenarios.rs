//! The published scenarios against servers that we did not write, scaled so that each takes seconds:
//! every operation works, and what identifies the result stands in its header.

use crate::own::{TempDir, bucketload, call};
use crate::server::Server;
use crate::sh::{Result, step};

/// Built for different purposes, by different people, in the same language: what both take is S3.
const SERVERS: [&str; 2] = ["minio", "versitygw"];

/// A scenario, and flags that make it small.
const SCENARIOS: [(&str, &[&str]); 5] = [
    (
        "online-service",
        &["--objects", "500", "--rate", "30/s", "--duration", "5s"],
    ),
    (
        "online-service",
        &[
            "--profile-name",
            "acloud",
            "--objects",
            "500",
            "--rate",
            "30/s",
            "--duration",
            "5s",
        ],
    ),
    (
        "file-backup",
        &["--profile-name", "f80", "--duration", "5s"],
    ),
    (
        "big-data-analysis",
        &["--duration", "10s", "--set", "size-scale=0.00001"],
    ),
    (
        "hotspot",
        &["--objects", "500", "--rate", "50/s", "--duration", "2s"],
    ),
];

/// Every scenario on every server.
pub(crate) fn all() -> Result {
    for name in SERVERS {
        let server = Server::start(name)?;
        for (scenario, flags) in SCENARIOS {
            let what = format!("{scenario} {} on {name}", flags[..2].join(" "));
            step(&what, || one(&server, scenario, flags))?;
        }
    }
    Ok(())
}

fn one(server: &Server, scenario: &str, flags: &[&str]) -> Result {
    let dir = TempDir::new("scenario")?;
    let out = dir.file("run");
    let mut args = vec![
        "run",
        scenario,
        "--target",
        "s3://scenarios/t",
        "--create-bucket",
        "--out",
        &out,
        "--output",
        "json",
        "--quiet",
    ];
    args.extend(flags);
    let outcome = call(bucketload(&args)?.envs(&server.env))?;
    outcome.expect_code(0)?;
    let result = outcome.json()?;
    let phases = result["phases"].as_array().ok_or("no phases")?;
    let mut measured = 0;
    for phase in phases.iter().filter(|phase| phase["kind"] == "run") {
        let totals = &phase["totals"];
        measured += totals["ok"].as_u64().unwrap_or(0);
        if totals["failed"] != 0 {
            return Err(format!("{totals} {}", result["failures"]));
        }
    }
    if measured == 0 {
        return Err("no operation was measured".to_owned());
    }
    let header = &result["run"];
    for field in ["scenario_hash", "schedule_hash", "seed", "scale"] {
        if header[field].is_null() {
            return Err(format!("the header does not say its {field}"));
        }
    }
    eprintln!(
        "{scenario}: {measured} operations, {}",
        result["verdict"]["word"]
    );
    Ok(())
}
