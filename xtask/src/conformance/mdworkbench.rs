//! MD-Workbench on a directory and on MinIO: nothing fails, every byte reads back as written, and the working set
//! keeps its size.

use crate::files::TempDir;
use crate::program::{Env, run_bucketload};
use crate::server::Server;
use crate::sh::{Result, ensure};

/// All parts on a directory and on MinIO.
pub(super) fn all() -> Result {
    let data = TempDir::new("mdworkbench-data")?;
    let target = format!("--target file://{}", data.file(""));
    parts("a directory", &target, &Env::new())?;
    let server = Server::start("minio")?;
    let target = "--target s3://mdworkbench/x --create-bucket";
    parts("MinIO", target, &server.env)
}

fn parts(name: &str, target: &str, env: &Env) -> Result {
    let dir = TempDir::new("mdworkbench")?;
    let out = dir.file("out");
    let line = format!("md-workbench --ranks 5 -D 2 -P 60 -I 40 -R 2 -X --out {out} {target}");
    let outcome = run_bucketload(&line, env)?;
    eprintln!("{name}:\n{}", outcome.stdout);
    let lines = || outcome.stdout.lines();
    let benchmarks = lines().filter(|line| line.starts_with("benchmark process"));
    let wrong = benchmarks
        .clone()
        .find(|line| !line.contains("objects:400 ") || !line.contains("(0 errs)"));
    if let Some(line) = wrong {
        return Err(format!("{name}: {line}"));
    }
    let stayed = lines().any(|line| line == "audit objects:600 expected:600");
    let n = benchmarks.count();
    ensure(n == 2 && stayed, || {
        let said = &outcome.stdout;
        format!("{name}: {n} iterations, and the working set did not stay:\n{said}")
    })
}
