//! `doctor` on other people's servers: what it finds is what `servers/dialects/` says, and it leaves nothing behind.

use crate::files::{self, TempDir};
use crate::program::{bucketload, call};
use crate::server::Server;
use crate::sh::{Result, ensure, root};

/// Where `doctor` looks. It creates the bucket, and so deletes it again.
const BUCKET: &str = "bucketload-doctor";

/// Examines a running server by the API with the URL scheme `api`, and compares the dialect with the one that the
/// repository keeps under the name `known_as`. An API whose dialects hold nothing must show no difference.
///
/// # Errors
/// When the server cannot be used, when it differs from its API in other ways than its dialect says, or when something
/// is left in it.
pub(super) fn expect_dialect(server: &Server, api: &str, known_as: &str) -> Result {
    let target = format!("{api}://{BUCKET}/p");
    let dir = TempDir::new(&format!("doctor-{}", server.name))?;
    let found = dir.file("dialect.toml");
    let line = format!("doctor {target} --create-bucket --write-dialect {found}");
    let outcome = call(bucketload(&line)?.envs(&server.env))?;
    eprint!("{}", outcome.stdout);
    ensure(matches!(outcome.code, 0 | 1), || {
        format!("{}: exit code {}", outcome.shown, outcome.code)
    })?;
    let path = root().join(format!("servers/dialects/{known_as}.toml"));
    if outcome.stderr.contains("is not written") {
        outcome.expect_code(0)?;
        return gone(server, &target);
    }
    let (found, kept) = (files::read(&found)?, files::read(&path).unwrap_or_default());
    if without_version(&found) != without_version(&kept) {
        return Err(format!(
            "{} differs by {api} in other ways than {} says; if this is right, put it there:\n{found}",
            server.name,
            path.display()
        ));
    }
    gone(server, &target)
}

/// Fails unless the bucket is gone again.
fn gone(server: &Server, target: &str) -> Result {
    let again = format!("doctor {target}");
    let outcome = call(bucketload(&again)?.envs(&server.env))?;
    outcome.expect(3, &["NOT READY: bucket"])
}

/// The dialect without its first line, which names the version of the program.
fn without_version(dialect: &str) -> &str {
    dialect.split_once('\n').map_or("", |(_, rest)| rest)
}
