//! MD-Workbench on a directory and on MinIO: nothing fails, every byte is what was written, and the working
//! set is as large in the end as in the beginning.

use std::collections::BTreeMap;

use crate::own::{TempDir, bucketload, call};
use crate::server::Server;
use crate::sh::Result;

/// All parts on a directory and on MinIO.
pub(super) fn all() -> Result {
    let data = TempDir::new("mdworkbench-data")?;
    let target = format!("file://{}", data.file(""));
    parts("a directory", &["--target", &target], &BTreeMap::new())?;
    let server = Server::start("minio")?;
    let args = ["--target", "s3://mdworkbench/x", "--create-bucket"];
    parts("MinIO", &args, &server.env)
}

fn parts(name: &str, target: &[&str], env: &BTreeMap<String, String>) -> Result {
    let dir = TempDir::new("mdworkbench")?;
    let out = dir.file("out");
    let mut args = vec![
        "md-workbench",
        "--ranks",
        "5",
        "-D",
        "2",
        "-P",
        "60",
        "-I",
        "40",
        "-R",
        "2",
    ];
    args.extend(["-X", "--out", &out]);
    args.extend(target);
    let outcome = call(bucketload(&args)?.envs(env))?;
    outcome.expect_code(0)?;
    eprintln!("{name}:\n{}", outcome.stdout);
    let lines = || outcome.stdout.lines();
    let benchmarks = lines().filter(|line| line.starts_with("benchmark process"));
    let wrong = benchmarks
        .clone()
        .find(|line| !line.contains("objects:400 ") || !line.contains("(0 errs)"));
    if let Some(line) = wrong {
        return Err(format!("{name}: {line}"));
    }
    match (
        benchmarks.count(),
        lines().any(|line| line == "audit objects:600 expected:600"),
    ) {
        (2, true) => Ok(()),
        (n, _) => Err(format!(
            "{name}: {n} iterations, and the working set did not stay:\n{}",
            outcome.stdout
        )),
    }
}
