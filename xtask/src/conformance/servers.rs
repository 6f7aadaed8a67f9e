//! Our driver and the whole program against servers that we did not write.

use crate::own::{TempDir, bucketload, call};
use crate::server::{Server, parse_env};
use crate::sh::{Result, cargo, cmd, output, root, run, step};

/// The servers that every run of CI meets.
const SERVERS: [&str; 4] = ["versitygw", "minio", "s3proxy", "ceph"];

/// Installs, starts and drives each server in turn.
pub(crate) fn all() -> Result {
    let clients = root().join("servers/clients.sh");
    let clients = clients.to_string_lossy().into_owned();
    run(&mut cmd(&clients, ["install"]))?;
    let tools = parse_env(&output(&mut cmd(&clients, ["env"]))?);
    let python = tools.get("PYTHON").ok_or("clients.sh names no PYTHON")?;
    for name in SERVERS {
        let server = Server::start(name)?;
        step(&format!("driver suite against {name}"), || suite(&server))?;
        step(
            &format!("online-service against {name}, among foreign objects"),
            || scenario(&server, python),
        )?;
    }
    Ok(())
}

/// The shared driver suite, which knows the documented limits of each server.
fn suite(server: &Server) -> Result {
    run(cargo([
        "run",
        "--quiet",
        "--locked",
        "-p",
        "bucketload-drivers",
        "--features",
        "conformance",
        "--example",
        "conformance",
        "--",
        &server.name,
    ])
    .envs(&server.env))
}

fn scenario(server: &Server, python: &str) -> Result {
    let dir = TempDir::new("scenario")?;
    let foreign = root().join("xtask/conformance/foreign.py");
    let foreign = |verb: &str| {
        run(cmd(
            python,
            [
                foreign.to_string_lossy().as_ref(),
                verb,
                "shared-bucket",
                "bench",
            ],
        )
        .envs(&server.env))
    };
    foreign("plant")?;
    let out = dir.file("run");
    let args = [
        "run",
        "online-service",
        "--target",
        "s3://shared-bucket/bench",
        "--endpoint-url",
        server.get("AWS_ENDPOINT_URL")?,
        "--rate",
        "20/s",
        "--duration",
        "20s",
        "--objects",
        "200",
        "--size",
        "loguniform(1KiB, 1MiB)",
        "--out",
        &out,
        "--output",
        "json",
    ];
    let outcome = call(bucketload(&args)?.envs(&server.env))?;
    outcome.expect_code(0)?;
    let result = outcome.json()?;
    let totals = &result["phases"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|phase| phase["kind"] == "run")
        .ok_or("no measured phase")?["totals"];
    eprintln!("{}: {} {totals}", server.name, result["verdict"]["word"]);
    if totals["failed"] != 0 || totals["ok"] != totals["offered"] {
        return Err(format!(
            "operations failed: {totals} {}",
            result["failures"]
        ));
    }
    foreign("check")
}
