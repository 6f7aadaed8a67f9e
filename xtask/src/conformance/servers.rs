//! Our driver and the whole program against servers that we did not write.

use std::process::{Command, Stdio};

use super::matrix;
use crate::own::{self, TempDir, bucketload, call, run_phase};
use crate::server::{Server, parse_env};
use crate::sh::{Result, cmd, output, root, run, step};

/// A server and how it is spoken to.
pub(super) struct Case {
    /// Script in `servers/`, without `.sh`.
    pub(super) server: &'static str,
    /// API: the URL scheme.
    pub(super) api: &'static str,
    /// Name under which the suite knows the server's differences.
    pub(super) known_as: &'static str,
}

const fn s3(server: &'static str) -> Case {
    Case {
        server,
        api: "s3",
        known_as: server,
    }
}

/// The servers that every run of CI meets.
const CASES: [Case; 4] = [s3("versitygw"), s3("minio"), s3("s3proxy"), s3("ceph")];

/// Google Cloud Storage's JSON API, by its emulator.
const GCS: Case = Case {
    server: "fake-gcs-server",
    api: "gs",
    known_as: "fake-gcs-server",
};

/// The suite and a scenario on the emulator of Google Cloud Storage.
pub(crate) fn gcs() -> Result {
    drive(&GCS, "")
}

/// Installs, starts and drives each server in turn.
pub(crate) fn all() -> Result {
    let clients = root().join("servers/clients.sh");
    let clients = clients.to_string_lossy().into_owned();
    run(&mut cmd(&clients, ["install"]))?;
    let tools = parse_env(&output(&mut cmd(&clients, ["env"]))?);
    let python = tools.get("PYTHON").ok_or("clients.sh names no PYTHON")?;
    for case in &CASES {
        drive(case, python)?;
    }
    Ok(())
}

/// Starts the server of `case`, runs the suite on it and a scenario among foreign objects.
pub(super) fn drive(case: &Case, python: &str) -> Result {
    let server = Server::start(case.server)?;
    meet(&server, case, python)
}

/// As [`drive`], on a server that runs.
pub(super) fn meet(server: &Server, case: &Case, python: &str) -> Result {
    let Case { api, known_as, .. } = *case;
    let what = format!("{api} driver suite against {}", server.name);
    step(&what, || suite(server, api, known_as))?;
    let what = format!(
        "a thousand random operations by {api} against {}",
        server.name
    );
    step(&what, || {
        run(&mut example(server, &["differential", api, known_as])?)
    })?;
    let what = format!(
        "online-service by {api} against {}, among foreign objects",
        server.name
    );
    step(&what, || scenario(server, api, python))?;
    let what = format!("OSSperf's six steps by {api} against {}", server.name);
    step(&what, || super::ossperf::six_steps(server, api))
}

/// Runs the shared suite and keeps what works for the table.
fn suite(server: &Server, api: &str, known_as: &str) -> Result {
    let out = example(server, &["suite", api, known_as])?
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| e.to_string())?;
    let printed = String::from_utf8_lossy(&out.stdout);
    print!("{printed}");
    matrix::add(api, &server.name, &printed);
    if out.status.success() {
        Ok(())
    } else {
        Err(format!("the suite ended with {}", out.status))
    }
}

/// A call of the drivers' `conformance` example.
fn example(server: &Server, args: &[&str]) -> Result<Command> {
    let mut command = own::suite(args)?;
    command.envs(&server.env);
    Ok(command)
}

/// Plants foreign objects or looks for them: on S3 with a client that is not ours.
fn foreign(server: &Server, api: &str, python: &str, verb: &str) -> Result {
    let place = ["shared-bucket", "bench"];
    if api != "s3" {
        return run(&mut example(server, &[verb, api, place[0], place[1]])?);
    }
    let script = root().join("xtask/conformance/foreign.py");
    let script = script.to_string_lossy();
    run(cmd(python, [&script, verb, place[0], place[1]]).envs(&server.env))
}

fn scenario(server: &Server, api: &str, python: &str) -> Result {
    let dir = TempDir::new("scenario")?;
    foreign(server, api, python, "plant")?;
    let out = dir.file("run");
    let target = format!("{api}://shared-bucket/bench");
    let args = [
        "run",
        "online-service",
        "--target",
        &target,
        "--rate",
        "20/s",
        "--duration",
        "10s",
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
    measured(&server.name, &outcome.json()?)?;
    foreign(server, api, python, "check")
}

/// Every operation that was offered in the measured phase of `result` must have worked.
pub(super) fn measured(name: &str, result: &serde_json::Value) -> Result {
    let totals = &run_phase(result)?["totals"];
    eprintln!("{name}: {} {totals}", result["verdict"]["word"]);
    if totals["failed"] != 0 || totals["ok"] != totals["offered"] {
        return Err(format!(
            "operations failed: {totals} {}",
            result["failures"]
        ));
    }
    Ok(())
}
