//! Azure Blob Storage, on Azurite: the suite, a scenario, and what is said to who may not enter.

use std::process::Command;

use super::servers::{self, Case};
use crate::own::{Outcome, TempDir, bucketload, call};
use crate::server::Server;
use crate::sh::{Result, cmd, output, root, step};

const CASE: Case = Case {
    server: "azurite",
    api: "az",
    known_as: "azurite",
};

const ACCOUNT: &str = "AZURE_STORAGE_ACCOUNT";
const KEY: &str = "AZURE_STORAGE_KEY";
const ENDPOINT: &str = "AZURE_STORAGE_SERVICE_ENDPOINT";
const SAS: &str = "AZURE_STORAGE_SAS_TOKEN";

/// Starts Azurite once for everything.
pub(super) fn all() -> Result {
    let server = Server::start(CASE.server)?;
    servers::meet(&server, &CASE, "")?;
    step("a shared access signature that permits everything", || {
        let token = signature(&server, "2999-01-01T00:00:00Z")?;
        run(&server, "az://entered/bench", &[(SAS, &token)], true)?.expect_code(0)
    })?;
    step("an expired shared access signature", || {
        let token = signature(&server, "2020-01-01T00:00:00Z")?;
        let with = [(SAS, token.as_str())];
        refused(
            &server,
            "az://entered/bench",
            &with,
            "expired at 2020-01-01",
        )
    })?;
    step("a wrong key", || {
        let with = [(KEY, "d3Jvbmc=")];
        refused(&server, "az://entered/bench", &with, "AZURE_STORAGE_KEY")
    })?;
    step(
        "a container that is not there, and one that cannot be",
        || {
            let with = [(KEY, value(&server, KEY)?)];
            refused(&server, "az://absent/bench", &with, "does not exist")?;
            refused(&server, "az://No_Such/bench", &with, "3 to 63")
        },
    )
}

/// What the server's script said about `name`.
fn value<'a>(server: &'a Server, name: &str) -> Result<&'a str> {
    let found = server.env.get(name).map(String::as_str);
    found.ok_or_else(|| format!("{} did not print {name}", server.name))
}

/// A call of the program for a few requests, with `auth` as the only credentials.
fn command(server: &Server, args: &[&str], auth: &[(&str, &str)]) -> Result<Command> {
    let mut command = bucketload(args)?;
    for name in ["AZURE_STORAGE_CONNECTION_STRING", KEY, SAS] {
        command.env_remove(name);
    }
    for name in [ACCOUNT, ENDPOINT] {
        command.env(name, value(server, name)?);
    }
    command.envs(auth.iter().copied());
    Ok(command)
}

fn run(server: &Server, target: &str, auth: &[(&str, &str)], create: bool) -> Result<Outcome> {
    let dir = TempDir::new("azure")?;
    let out = dir.file("run");
    let mut args = vec![
        "run",
        "online-service",
        "--target",
        target,
        "--rate",
        "10/s",
        "--duration",
        "3s",
        "--objects",
        "10",
        "--size",
        "4KiB",
        "--out",
        &out,
    ];
    if create {
        args.push("--create-bucket");
    }
    call(&mut command(server, &args, auth)?)
}

/// A run that must end at preflight, saying `word`.
fn refused(server: &Server, target: &str, auth: &[(&str, &str)], word: &str) -> Result {
    let outcome = run(server, target, auth, false)?;
    outcome.expect_code(3)?;
    for (name, secret) in auth {
        if outcome.stderr.contains(secret) {
            return Err(format!("{name} was shown: {}", outcome.stderr));
        }
    }
    if outcome.stderr.contains(word) {
        eprintln!("{}", outcome.stderr.trim_end());
        Ok(())
    } else {
        Err(format!("nothing about {word:?}: {}", outcome.stderr))
    }
}

/// A signature for the whole account until `expiry`, made by a program that is not ours.
fn signature(server: &Server, expiry: &str) -> Result<String> {
    let script = root().join("xtask/conformance/azure_sas.py");
    let mut made = cmd("python3", [script.as_os_str(), expiry.as_ref()]);
    for name in [ACCOUNT, KEY] {
        made.env(name, value(server, name)?);
    }
    Ok(output(&mut made)?.trim().to_owned())
}
