//! The Swift driver and the whole program against OpenStack Swift and against radosgw's Swift API, and
//! the placement of a run's objects in both.

use super::servers::{Case, drive, meet};
use crate::own::{TempDir, bucketload, call};
use crate::server::Server;
use crate::sh::{Result, step};

const SWIFT: Case = Case {
    server: "swift",
    api: "swift",
    known_as: "swift",
};

const CEPH: Case = Case {
    server: "ceph",
    api: "swift",
    known_as: "ceph-swift",
};

/// Both servers.
pub(crate) fn all() -> Result {
    drive(&SWIFT, "python3")?;
    let ceph = Server::start(CEPH.server)?;
    meet(&ceph, &CEPH, "python3")?;
    step("large objects of radosgw, and where objects lie", || {
        placed(&ceph)
    })
}

/// A run with large objects leaves nothing behind; the objects of another are found on the OSDs.
fn placed(server: &Server) -> Result {
    let dir = TempDir::new("placed")?;
    let out = dir.file("run");
    let run = |args: &[&str]| {
        let outcome = call(bucketload(args)?.envs(&server.env))?;
        outcome.expect_code(0)?;
        Ok::<_, String>(outcome)
    };
    let common = [
        "--target",
        "swift://placed/p",
        "--create-bucket",
        "--keep",
        "--op-log",
        "--objects",
        "50",
        "--size",
        "4KiB",
        "--workers",
        "2",
        "--duration",
        "3s",
        "--no-calibration",
        "--out",
        &out,
    ];
    run(&[&["run", "get"], &common[..]].concat())?;
    let file = dir.file("placement.csv");
    run(&["placement", "ceph", &out, "--out", &file])?;
    let outcome = run(&["report", &out, "--placement", &file, "--output", "json"])?;
    let nodes = &outcome.json()?["nodes"];
    if nodes["unknown"] != 0 {
        return Err(format!("requests on objects that lie nowhere: {nodes}"));
    }
    run(&["cleanup", "--target", "swift://placed/p"])?;
    Ok(())
}
