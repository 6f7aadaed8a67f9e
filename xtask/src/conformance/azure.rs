//! Azure Blob Storage, on Azurite: the suite, a scenario, and error messages for bad credentials.

use super::servers::{self, Case};
use crate::files::TempDir;
use crate::program::{Outcome, bucketload, call};
use crate::server::Server;
use crate::sh::{Result, cmd, ensure, output, root, step};

const CASE: Case = Case {
    server: "azurite",
    api: "az",
    known_as: "azurite",
};

const ACCOUNT: &str = "AZURE_STORAGE_ACCOUNT";
const KEY: &str = "AZURE_STORAGE_KEY";
const ENDPOINT: &str = "AZURE_STORAGE_SERVICE_ENDPOINT";
const SAS: &str = "AZURE_STORAGE_SAS_TOKEN";

/// Runs all checks on one Azurite.
pub(super) fn all() -> Result {
    let server = Server::start(CASE.server)?;
    servers::check(&server, &CASE, "")?;
    step("a shared access signature that permits everything", || {
        let token = signature(&server, "2999-01-01T00:00:00Z")?;
        run(&server, "az://entered/bench --create-bucket", (SAS, &token))?.expect_code(0)
    })?;
    step("an expired shared access signature", || {
        let token = signature(&server, "2020-01-01T00:00:00Z")?;
        refused(
            &server,
            "az://entered/bench",
            (SAS, &token),
            "expired at 2020-01-01",
        )
    })?;
    step("a wrong key", || {
        let with = (KEY, "d3Jvbmc=");
        refused(&server, "az://entered/bench", with, "AZURE_STORAGE_KEY")
    })?;
    let what = "a missing container, and an impossible one";
    step(what, || {
        let with = (KEY, server.get(KEY)?);
        refused(&server, "az://absent/bench", with, "does not exist")?;
        refused(&server, "az://No_Such/bench", with, "3 to 63")
    })
}

/// A short run with `auth` as the only credentials.
fn run(server: &Server, target: &str, auth: (&str, &str)) -> Result<Outcome> {
    let dir = TempDir::new("azure")?;
    let out = dir.file("run");
    let mut command = bucketload(&format!(
        "run online-service --rate 10/s --duration 3s --objects 10 --size 4KiB --out {out} --target {target}"
    ))?;
    for name in ["AZURE_STORAGE_CONNECTION_STRING", KEY, SAS] {
        command.env_remove(name);
    }
    for name in [ACCOUNT, ENDPOINT] {
        command.env(name, server.get(name)?);
    }
    call(command.env(auth.0, auth.1))
}

/// A run that must fail at preflight and say `word`.
fn refused(server: &Server, target: &str, auth: (&str, &str), word: &str) -> Result {
    let outcome = run(server, target, auth)?;
    ensure(!outcome.stderr.contains(auth.1), || {
        format!("{} was shown: {}", auth.0, outcome.stderr)
    })?;
    outcome.complains(3, &[word])
}

/// A signature for the whole account until `expiry`, made by a third-party program.
fn signature(server: &Server, expiry: &str) -> Result<String> {
    let script = root().join("xtask/conformance/azure_sas.py");
    let mut made = cmd("python3", [script.as_os_str(), expiry.as_ref()]);
    for name in [ACCOUNT, KEY] {
        made.env(name, server.get(name)?);
    }
    Ok(output(&mut made)?.trim().to_owned())
}
