//! IO500 on a directory and on MinIO, in every mapping, in one process and on several agents: nothing fails, ranks compare what others wrote, the
//! search finds exactly what is there, and the result agrees with itself.

use std::collections::BTreeMap;
use std::path::Path;

use crate::own::{TempDir, bucketload, call};
use crate::server::Server;
use crate::sh::Result;

const RANKS: u64 = 4;
const FILES: u64 = 220;

/// All phases on a directory and on MinIO.
pub(super) fn all() -> Result {
    let data = TempDir::new("io500-data")?;
    let target = format!("file://{}", data.file(""));
    phases(
        "a directory",
        &["--target", &target],
        &BTreeMap::new(),
        "files",
    )?;
    phases(
        "a directory, 3 agents",
        &["--target", &target, "--launch", "local:3"],
        &BTreeMap::new(),
        "files",
    )?;
    let server = Server::start("minio")?;
    for mapping in ["native", "multipart", "ior-libs3-single"] {
        let args = ["--target", "s3://io500/x", "--create-bucket"];
        phases("MinIO", &args, &server.env, mapping)?;
        let agents = [&args[..], &["--launch", "local:2"]].concat();
        phases("MinIO, 2 agents", &agents, &server.env, mapping)?;
    }
    Ok(())
}

fn phases(name: &str, target: &[&str], env: &BTreeMap<String, String>, mapping: &str) -> Result {
    let dir = TempDir::new("io500")?;
    let (out, ranks, files) = (dir.file("out"), RANKS.to_string(), FILES.to_string());
    let mut args = vec![
        "io500",
        "--mapping",
        mapping,
        "--ranks",
        &ranks,
        "--out",
        &out,
    ];
    let items = [
        format!("mdtest-easy.n={files}"),
        format!("mdtest-hard.n={files}"),
    ];
    let sets = [
        // Everything is done before; the random reads would last as long.
        "debug.stonewall-time=200",
        "ior-rnd4K-easy-read.run=FALSE",
        "ior-easy.transferSize=6m",
        "ior-easy.blockSize=48m",
    ];
    for set in sets
        .into_iter()
        .chain(["ior-hard.segmentCount=100", &items[0], &items[1]])
    {
        args.extend(["--set", set]);
    }
    args.extend(target);
    let outcome = call(bucketload(&args)?.envs(env))?;
    outcome.expect_code(0)?;
    eprintln!("{name}, {mapping}:\n{}", outcome.stdout);
    let path = Path::new(&out).join("result.txt");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    if let Some(line) = text
        .lines()
        .find(|line| line.contains("failed") || line.contains("Not run to"))
    {
        return Err(format!("{name}, {mapping}: {line}"));
    }
    // Names with 01 among 0 to 219: 101 and 201.
    let found = format!("found           = {}", 2 * RANKS);
    if !text.contains(&found) {
        return Err(format!(
            "{name}, {mapping}: the search did not find {} files:\n{text}",
            2 * RANKS
        ));
    }
    let result = path.display().to_string();
    let verified = call(&mut bucketload(&["io500", "--verify", &result])?)?;
    verified.expect_code(1)?;
    match verified.stdout.contains("[OK] But this is an invalid run!") {
        true => Ok(()),
        false => Err(format!("{name}, {mapping}: {}", verified.stderr)),
    }
}
