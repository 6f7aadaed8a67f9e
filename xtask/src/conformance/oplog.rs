//! The operation log, read by programs that we did not write: DuckDB and pandas.

use std::fs;

use crate::own::{self, call};
use crate::server::parse_env;
use crate::sh::{Result, cmd, output, root, run, step};

/// Logs a run in each form and lets both readers compare it with the run's result.
pub(crate) fn all() -> Result {
    let script = root().join("servers/clients.sh");
    let script = script.to_string_lossy().into_owned();
    run(&mut cmd(&script, ["install-readers"]))?;
    let tools = parse_env(&output(&mut cmd(&script, ["env-readers"]))?);
    let python = tools.get("READERS").ok_or("clients.sh names no READERS")?;
    let suite = root().join("xtask/conformance/oplog.py");
    for form in ["parquet", "csv.zst"] {
        step(&format!("the operation log as {form}"), || {
            let dir = own::TempDir::new("oplog")?;
            let outcome = call(&mut own::bucketload(&[
                "run",
                "mixed",
                "--duration",
                "5s",
                "--objects",
                "500",
                "--workers",
                "8",
                "--no-calibration",
                "--output",
                "json",
                "--out",
                &dir.file("run"),
                &format!("--op-log={form}"),
            ])?)?;
            outcome.expect_code(0)?;
            fs::write(dir.file("result.json"), &outcome.stdout).map_err(|e| e.to_string())?;
            let place = dir.path().to_string_lossy().into_owned();
            run(&mut cmd(python, [&*suite.to_string_lossy(), &place, form]))
        })?;
    }
    Ok(())
}
