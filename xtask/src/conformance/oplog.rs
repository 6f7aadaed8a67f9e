//! The operation log, read by third-party programs: DuckDB and pandas.

use crate::files::{self, TempDir};
use crate::program::try_bucketload;
use crate::server::Clients;
use crate::sh::{Result, cmd, root, run, step};

/// Logs a run in each format and lets both readers compare it with the run's result.
pub(crate) fn all() -> Result {
    let tools = Clients::install("-readers")?;
    let python = tools.get("READERS")?;
    let suite = root().join("xtask/conformance/oplog.py");
    for form in ["parquet", "csv.zst"] {
        step(&format!("the operation log as {form}"), || {
            let dir = TempDir::new("oplog")?;
            let outcome = try_bucketload(&format!(
                "run mixed --duration 5s --objects 500 --workers 8 --no-calibration --output json --out {} \
                 --op-log={form}",
                dir.file("run")
            ))?;
            outcome.expect_code(0)?;
            files::write(dir.file("result.json"), &outcome.stdout)?;
            run(cmd(python, [&suite]).arg(dir.path()).arg(form))
        })?;
    }
    Ok(())
}
