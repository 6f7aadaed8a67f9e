//! Our drivers and the whole program against third-party servers.

use std::process::{Command, Stdio};

use super::matrix;
use crate::program::{self, online_service};
use crate::server::{Clients, Server};
use crate::sh::{Result, cmd, ensure, root, run, show, step};

/// A server and the API to use with it.
#[derive(Clone, Copy)]
pub(super) struct Case {
    /// Script in `servers/`, without `.sh`.
    pub(super) server: &'static str,
    /// URL scheme of the API.
    pub(super) api: &'static str,
    /// Name under which the suite lists the server's deviations.
    pub(super) known_as: &'static str,
}

const fn s3(server: &'static str) -> Case {
    Case {
        server,
        api: "s3",
        known_as: server,
    }
}

/// The S3 servers that every run of CI tests.
const CASES: [Case; 4] = [s3("versitygw"), s3("minio"), s3("s3proxy"), s3("ceph")];

/// Google Cloud Storage's JSON API, on its emulator.
const GCS: Case = Case {
    server: "fake-gcs-server",
    api: "gs",
    known_as: "fake-gcs-server",
};

/// The suite and a scenario on the emulator of Google Cloud Storage.
pub(crate) fn gcs() -> Result {
    drive(&GCS, "")
}

/// Installs, starts and tests each server in turn.
pub(crate) fn all() -> Result {
    let tools = Clients::install("")?;
    let python = tools.get("PYTHON")?;
    for case in &CASES {
        drive(case, python)?;
    }
    Ok(())
}

/// Starts the server of `case` and tests it with [`check`].
pub(super) fn drive(case: &Case, python: &str) -> Result {
    let server = Server::start(case.server)?;
    check(&server, case, python)
}

/// Runs the suite, random operations, a scenario among foreign objects and OSSperf's steps on a running server.
pub(super) fn check(server: &Server, case: &Case, python: &str) -> Result {
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
    step(&format!("doctor by {api} on {name}"), || {
        super::doctor::expect_dialect(server, api, known_as)
    })?;
    let what = format!("OSSperf's six steps by {api} against {name}");
    step(&what, || super::ossperf::six_steps(server, api))
}

/// Runs the shared suite. If `tell` names API and server, the table of working operations gets a column for them.
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
    let mut command = program::suite(line)?;
    command.envs(&server.env);
    Ok(command)
}

/// Plants foreign objects or looks for them; on S3 with a third-party client.
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
    foreign(server, api, python, "plant")?;
    let flags = format!("--target {api}://shared-bucket/bench --duration 10s --objects 200");
    online_service(&server.name, &flags, &server.env)?;
    foreign(server, api, python, "check")
}
