//! The published scenarios against servers that we did not write, scaled so that each takes seconds:
//! every operation works, and what identifies the result stands in its header.

use crate::files::TempDir;
use crate::own::{items, measured, whole};
use crate::server::Server;
use crate::sh::{Result, ensure, step};

/// Built for different purposes, by different people, in the same language: what both take is S3.
const SERVERS: [&str; 2] = ["minio", "versitygw"];

/// A scenario, a flag that stands in the name of the step, and further flags that make it small.
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
            return Err(format!("the header does not say its {field}"));
        }
    }
    eprintln!(
        "{scenario}: {measured} operations, {}",
        result["verdict"]["word"]
    );
    Ok(())
}
