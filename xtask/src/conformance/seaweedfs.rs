//! SeaweedFS's own interfaces: the suite and a scenario on the filer, and a scenario with file IDs. Runs on our fake,
//! and on the `weed` on PATH if there is one.

use super::servers::{Case, check};
use crate::program::online_service;
use crate::server::Server;
use crate::sh::{Result, on_path, step};

const CASE: Case = Case {
    server: "seaweedfs",
    api: "seaweedfs",
    known_as: "seaweedfs",
};

/// Tests the fake, then a real server if there is one, and says which.
pub(crate) fn all() -> Result {
    on("fake")?;
    if on_path("weed") {
        return on("weed");
    }
    eprintln!("seaweedfs: no weed on PATH; only the fake was tested");
    Ok(())
}

fn on(kind: &str) -> Result {
    let server = Server::start_with(CASE.server, &[("SEAWEEDFS_KIND", kind)])?;
    eprintln!("seaweedfs: {kind}");
    check(&server, &CASE, "")?;
    let what = format!("online-service by file ids against {kind}");
    step(&what, || by_file_ids(&server))
}

/// A scenario with a master: every object is read by its file ID, and none is left behind.
fn by_file_ids(server: &Server) -> Result {
    let flags = "--target seaweedfs://by-file-ids --create-bucket --seaweedfs-mode master --duration 10s \
                 --objects 100 --verify";
    online_service(&server.name, flags, &server.env)
}
