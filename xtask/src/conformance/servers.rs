//! Our driver and the whole program against servers that we did not write.

use std::process::{Command, Stdio};

use super::matrix;
use crate::files::TempDir;
use crate::own::{self, all_worked, measured};
use crate::server::{Clients, Server};
use crate::sh::{Result, cmd, ensure, root, run, show, step};

/// A server and how it is spoken to.
#[derive(Clone, Copy)]
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
    let tools = Clients::install("")?;
    let python = tools.get("PYTHON")?;
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
    let (Case { api, known_as, .. }, name) = (*case, &server.name);
    step(&format!("{api} driver suite against {name}"), || {
        let printed = example(server, &format!("suite {api} {known_as}"))?;
        suite(printed, Some((api, name)))
    })?;
    let what = format!("a thousand random operations by {api} against {name}");
    step(&what, || {
        run(&mut example(
            server,
            &format!("differential {api} {known_as}"),
        )?)
    })?;
    let what = format!("online-service by {api} against {name}, among foreign objects");
    step(&what, || scenario(server, api, python))?;
    let what = format!("OSSperf's six steps by {api} against {name}");
    step(&what, || super::ossperf::six_steps(server, api))
}
/// Runs the shared suite; keeps what works for the table where API and server are named.
pub(super) fn suite(mut command: Command, tell: Option<(&str, &str)>) -> Result {
    let out = command.stderr(Stdio::inherit()).output();
    let out = out.map_err(|e| format!("{}: {e}", show(&command)))?;
    let printed = String::from_utf8_lossy(&out.stdout);
    print!("{printed}");
    if let Some((api, name)) = tell {
        matrix::add(api, name, &printed);
    }
    ensure(out.status.success(), || {
        format!("the suite ended with {}", out.status)
    })
}

/// A call of the drivers' `conformance` example.
fn example(server: &Server, line: &str) -> Result<Command> {
    let mut command = own::suite(line)?;
    command.envs(&server.env);
    Ok(command)
}

/// Plants foreign objects or looks for them: on S3 with a client that is not ours.
fn foreign(server: &Server, api: &str, python: &str, verb: &str) -> Result {
    if api != "s3" {
        return run(&mut example(
            server,
            &format!("{verb} {api} shared-bucket bench"),
        )?);
    }
    let script = root().join("xtask/conformance/foreign.py");
    let args = [&*script.to_string_lossy(), verb, "shared-bucket", "bench"];
    run(cmd(python, args).envs(&server.env))
}

fn scenario(server: &Server, api: &str, python: &str) -> Result {
    let dir = TempDir::new("scenario")?;
    foreign(server, api, python, "plant")?;
    let out = dir.file("run");
    let result = measured(
        &format!(
            "run online-service --target {api}://shared-bucket/bench --rate 20/s --duration 10s --objects 200 \
             --size 'loguniform(1KiB, 1MiB)' --out {out}"
        ),
        &server.env,
    )?;
    all_worked(&server.name, &result)?;
    foreign(server, api, python, "check")
}
