//! The Swift driver and the whole program against OpenStack Swift and against radosgw's Swift API, and
//! the load of Ceph's data nodes beside the OSDs' own counters.

use std::collections::BTreeMap;

use serde_json::Value;

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

/// Reads that a placement group counts for one GET of a small object: radosgw asks for size, attributes
/// and bytes in one request (seen with 16.2).
const READS_PER_GET: u64 = 3;
/// Largest difference between expected and counted requests of a node.
const TOLERANCE: f64 = 0.02;

/// Both servers, and the hotspot on three OSDs.
pub(crate) fn all() -> Result {
    drive(&SWIFT, "python3")?;
    let ceph = Server::start_with(CEPH.server, &[("CEPH_OSDS", "3"), ("CEPH_REPLICAS", "2")])?;
    meet(&ceph, &CEPH, "python3")?;
    step("hotspot on three OSDs agrees with their counters", || {
        hotspot(&ceph)
    })
}

/// Runs the hotspot, computes the requests per OSD from the placement and compares them with what the
/// placement groups of the data pool counted.
fn hotspot(server: &Server) -> Result {
    let dir = TempDir::new("hotspot")?;
    let out = dir.file("run");
    let bucketload = |args: &[&str]| {
        let outcome = call(bucketload(args)?.envs(&server.env))?;
        outcome.expect_code(0)?;
        Ok::<_, String>(outcome)
    };
    let before = settled_reads(server)?;
    bucketload(&[
        "run",
        "hotspot",
        "--target",
        "swift://placed/p",
        "--create-bucket",
        "--keep",
        "--op-log",
        "--objects",
        "300",
        "--size",
        "4KiB",
        "--rate",
        "100/s",
        "--duration",
        "10s",
        "--no-calibration",
        "--out",
        &out,
    ])?;
    let after = settled_reads(server)?;
    let file = dir.file("placement.csv");
    bucketload(&["placement", "ceph", &out, "--out", &file])?;
    let outcome = bucketload(&["report", &out, "--placement", &file, "--output", "json"])?;
    let nodes = &outcome.json()?["nodes"];
    if nodes["unknown"] != 0 {
        return Err(format!("requests on objects that lie nowhere: {nodes}"));
    }
    let list = nodes["nodes"].as_array().ok_or("no nodes in the report")?;
    if list.len() != 3 {
        return Err(format!("{} nodes instead of 3", list.len()));
    }
    for node in list {
        let name = node["name"].as_str().unwrap_or_default();
        let expected = node["expected"].as_f64().unwrap_or(0.0);
        let reads = after.get(name).copied().unwrap_or(0) - before.get(name).copied().unwrap_or(0);
        let counted = reads as f64 / READS_PER_GET as f64;
        eprintln!("{name}: {expected} requests expected, {counted:.1} counted");
        if (counted - expected).abs() > TOLERANCE * expected {
            return Err(format!("{name}: {counted} counted, {expected} expected"));
        }
    }
    bucketload(&["cleanup", "--target", "swift://placed/p"])?;
    Ok(())
}

/// Reads counted so far by the placement groups of the data pool, by the OSD that serves them, once
/// the manager has heard from all OSDs: when two looks six seconds apart agree.
fn settled_reads(server: &Server) -> Result<BTreeMap<String, u64>> {
    let mut last = reads(server)?;
    for _ in 0..10 {
        // The OSDs report every five seconds (`mgr stats period`).
        std::thread::sleep(std::time::Duration::from_secs(6));
        let now = reads(server)?;
        if now == last {
            return Ok(now);
        }
        last = now;
    }
    Err("the counters of the OSDs do not come to rest".to_owned())
}

fn reads(server: &Server) -> Result<BTreeMap<String, u64>> {
    let json = |args: &[&str]| -> Result<Value> {
        serde_json::from_str(&server.ask(args)?).map_err(|e| format!("{args:?}: {e}"))
    };
    let pools = json(&["ceph", "osd", "pool", "ls", "detail", "-f", "json"])?;
    let pool = pools
        .as_array()
        .into_iter()
        .flatten()
        .find(|pool| pool["pool_name"] == "default.rgw.buckets.data")
        .ok_or("ceph has no pool of objects")?;
    let prefix = format!("{}.", pool["pool_id"]);
    let dump = json(&["ceph", "pg", "dump", "pgs", "-f", "json"])?;
    let groups = dump["pg_stats"].as_array().or_else(|| dump.as_array());
    let mut reads = BTreeMap::new();
    for group in groups.into_iter().flatten() {
        let of_pool = group["pgid"]
            .as_str()
            .is_some_and(|id| id.starts_with(&prefix));
        if of_pool {
            let name = format!("osd.{}", group["acting_primary"]);
            let count = group["stat_sum"]["num_read"].as_u64().unwrap_or(0);
            *reads.entry(name).or_insert(0) += count;
        }
    }
    Ok(reads)
}
