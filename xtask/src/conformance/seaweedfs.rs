//! SeaweedFS's own interfaces: the suite and a scenario on the filer, a scenario with file ids. On the
//! `weed` that is on PATH, and on our fake in any case.

use super::servers::{Case, meet};
use crate::files::TempDir;
use crate::own::{all_worked, measured};
use crate::server::Server;
use crate::sh::{Result, on_path, step};

const CASE: Case = Case {
    server: "seaweedfs",
    api: "seaweedfs",
    known_as: "seaweedfs",
};

/// The fake, then a real server if there is one; says which.
pub(crate) fn all() -> Result {
    on("fake")?;
    if on_path("weed") {
        return on("weed");
    }
    eprintln!("seaweedfs: there is no weed on PATH; only the fake was met");
    Ok(())
}

fn on(kind: &str) -> Result {
    let server = Server::start_with(CASE.server, &[("SEAWEEDFS_KIND", kind)])?;
    eprintln!("seaweedfs: {kind}");
    meet(&server, &CASE, "")?;
    let what = format!("online-service by file ids against {kind}");
    step(&what, || by_file_ids(&server))
}

/// A scenario with a master: every object is got by its file id, and none is left.
fn by_file_ids(server: &Server) -> Result {
    let dir = TempDir::new("scenario")?;
    let out = dir.file("run");
    let result = measured(
        &format!(
            "run online-service --target seaweedfs://by-file-ids --create-bucket --seaweedfs-mode master --rate 20/s \
             --duration 10s --objects 100 --size 'loguniform(1KiB, 1MiB)' --verify --out {out}"
        ),
        &server.env,
    )?;
    all_worked(&server.name, &result)
}
