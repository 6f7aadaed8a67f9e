//! `doctor` on other people's servers: what it finds is what `servers/dialects/` says, and it leaves nothing behind.

use crate::files::{self, TempDir};
use crate::program::{bucketload, call};
use crate::server::Server;
use crate::sh::{Result, ensure, root};

/// Where `doctor` looks. It creates the bucket, and so deletes it again.
const TARGET: &str = "s3://bucketload-doctor/p";

/// Examines a running S3 server and compares the dialect with the one that the repository keeps.
///
/// # Errors
/// When the server cannot be used, when it differs from S3 in other ways than its dialect says, or when something
/// is left in it.
pub(super) fn expect_dialect(server: &Server) -> Result {
    let dir = TempDir::new(&format!("doctor-{}", server.name))?;
    let found = dir.file("dialect.toml");
    let line = format!("doctor {TARGET} --create-bucket --write-dialect {found}");
    let outcome = call(bucketload(&line)?.envs(&server.env))?;
    eprint!("{}", outcome.stdout);
    ensure(matches!(outcome.code, 0 | 1), || {
        format!("{}: exit code {}", outcome.shown, outcome.code)
    })?;
    let path = root().join(format!("servers/dialects/{}.toml", server.name));
    let (found, kept) = (files::read(&found)?, files::read(&path).unwrap_or_default());
    if without_version(&found) != without_version(&kept) {
        return Err(format!(
            "{} differs from S3 in other ways than {} says; if this is right, put it there:\n{found}",
            server.name,
            path.display()
        ));
    }
    // The bucket is gone again.
    let again = format!("doctor {TARGET}");
    let outcome = call(bucketload(&again)?.envs(&server.env))?;
    outcome.expect(3, &["NOT READY: bucket"])
}

/// The dialect without its first line, which names the version of the program.
fn without_version(dialect: &str) -> &str {
    dialect.split_once('\n').map_or("", |(_, rest)| rest)
}
