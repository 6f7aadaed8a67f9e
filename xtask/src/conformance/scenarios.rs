//! The published scenarios against third-party servers, scaled to take seconds: every operation works, and the
//! result's header identifies the scenario.

use crate::files::TempDir;
use crate::program::{items, measured, whole};
use crate::server::Server;
use crate::sh::{Result, ensure, step};

/// Two S3 servers by different authors for different purposes, in the same language.
const SERVERS: [&str; 2] = ["minio", "versitygw"];

/// A scenario, a flag that the step's name shows, and flags that make the scenario small.
const SCENARIOS: [(&str, &str, &str); 5] = [
    (
        "online-service",
        "--objects 500",
        "--rate 30/s --duration 5s",
    ),
    (
        "online-service",
        "--profile-name acloud",
        "--objects 500 --rate 30/s --duration 5s",
    ),
    ("file-backup", "--profile-name f80", "--duration 5s"),
    (
        "big-data-analysis",
        "--duration 10s",
        "--set size-scale=0.00001",
    ),
    ("hotspot", "--objects 500", "--rate 50/s --duration 2s"),
];

/// Every scenario on every server.
pub(crate) fn all() -> Result {
    for name in SERVERS {
        let server = Server::start(name)?;
        for (scenario, flag, more) in SCENARIOS {
            let what = format!("{scenario} {flag} on {name}");
            step(&what, || one(&server, scenario, &format!("{flag} {more}")))?;
        }
    }
    Ok(())
}

fn one(server: &Server, scenario: &str, flags: &str) -> Result {
    let dir = TempDir::new("scenario")?;
    let out = dir.file("run");
    let result = measured(
        &format!(
            "run {scenario} --target s3://scenarios/t --create-bucket --out {out} --quiet {flags}"
        ),
        &server.env,
    )?;
    let mut measured = 0;
    for phase in items(&result["phases"]).filter(|phase| phase["kind"] == "run") {
        let totals = &phase["totals"];
        measured += whole(&totals["ok"]);
        ensure(totals["failed"] == 0, || {
            format!("{totals} {}", result["failures"])
        })?;
    }
    ensure(measured > 0, || "no operation was measured")?;
    let header = &result["run"];
    for field in ["scenario_hash", "schedule_hash", "seed", "scale"] {
        if header[field].is_null() {
            return Err(format!("the header has no {field}"));
        }
    }
    eprintln!(
        "{scenario}: {measured} operations, {}",
        result["verdict"]["word"]
    );
    Ok(())
}
