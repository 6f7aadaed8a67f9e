//! OSSperf's six steps on a real server: every step succeeds, the line has its 13 columns, and the bucket
//! that was made is gone.

use crate::own::{TempDir, bucketload, call};
use crate::server::Server;
use crate::sh::Result;

/// Runs the six steps by `api` against `server`.
pub(super) fn six_steps(server: &Server, api: &str) -> Result {
    let dir = TempDir::new("ossperf")?;
    let (out, lines) = (dir.file("run"), dir.file("results.csv"));
    let target = format!("{api}://shared-bucket/ossperf");
    let args = [
        "run",
        "ossperf",
        "--objects",
        "6",
        "--size",
        "100001",
        "--parallel",
        "3",
        "--target",
        &target,
        "--create-bucket",
        "--results-csv",
        &lines,
        "--out",
        &out,
        "--output",
        "json",
    ];
    let outcome = call(bucketload(&args)?.envs(&server.env))?;
    outcome.expect_code(0)?;
    let result = outcome.json()?;
    let done: Vec<u64> = result["ossperf"]["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|step| step["ok"].as_u64())
        .collect();
    if done != [1, 6, 1, 6, 6, 1] {
        return Err(format!("the steps did {done:?} operations"));
    }
    let text = std::fs::read_to_string(&lines).map_err(|e| format!("{lines}: {e}"))?;
    let line = text.lines().nth(1).unwrap_or_default();
    eprintln!("{}: {line}", server.name);
    if line.split(' ').count() != 13 {
        return Err(format!("the line does not have 13 columns: {line}"));
    }
    Ok(())
}
