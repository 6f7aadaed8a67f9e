//! The Swift driver and the whole program against OpenStack Swift and radosgw's Swift API, and the load of Ceph's
//! data nodes compared with the OSDs' own counters.

use std::collections::BTreeMap;

use serde_json::Value;

use super::servers::{Case, check, drive};
use crate::files::TempDir;
use crate::program::{items, measured, run_bucketload, text, whole};
use crate::server::Server;
use crate::sh::{Result, ensure, step};

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

/// Reads that a placement group counts per GET of a small object: radosgw asks for size, attributes and bytes in one
/// request (observed with 16.2).
const READS_PER_GET: u64 = 3;
/// Largest relative difference between expected and counted requests of a node.
const TOLERANCE: f64 = 0.02;

/// Both servers, and the hotspot on three OSDs.
pub(crate) fn all() -> Result {
    drive(&SWIFT, "python3")?;
    let ceph = Server::start_with(CEPH.server, &[("CEPH_OSDS", "3"), ("CEPH_REPLICAS", "2")])?;
    check(&ceph, &CEPH, "python3")?;
    step("hotspot on three OSDs agrees with their counters", || {
        hotspot(&ceph)
    })
}

/// Runs the hotspot scenario, computes the requests per OSD from the placement, and compares them with the counters
/// of the data pool's placement groups.
fn hotspot(server: &Server) -> Result {
    let dir = TempDir::new("hotspot")?;
    let out = dir.file("run");
    let swift = |line: &str| run_bucketload(line, &server.env);
    let before = settled_reads(server)?;
    let line = format!(
        "run hotspot --target swift://placed/p --create-bucket --keep --op-log --objects 300 --size 4KiB \
         --rate 100/s --duration 10s --no-calibration --out {out}"
    );
    swift(&line)?;
    let after = settled_reads(server)?;
    let file = dir.file("placement.csv");
    swift(&format!("placement ceph {out} --out {file}"))?;
    let line = format!("report {out} --placement {file}");
    let nodes = &measured(&line, &server.env)?["nodes"];
    ensure(nodes["unknown"] == 0, || {
        format!("requests for objects without a known node: {nodes}")
    })?;
    let list = items(&nodes["nodes"]);
    let count = list.clone().count();
    ensure(count == 3, || format!("{count} nodes instead of 3"))?;
    for node in list {
        let name = text(&node["name"]);
        let expected = node["expected"].as_f64().unwrap_or(0.0);
        let reads = after.get(name).copied().unwrap_or(0) - before.get(name).copied().unwrap_or(0);
        let counted = reads as f64 / READS_PER_GET as f64;
        eprintln!("{name}: {expected} requests expected, {counted:.1} counted");
        if (counted - expected).abs() > TOLERANCE * expected {
            return Err(format!("{name}: {counted} counted, {expected} expected"));
        }
    }
    swift("cleanup --target swift://placed/p")?;
    Ok(())
}

/// Reads counted so far by the data pool's placement groups, by the OSD that serves them. Waits until two readings
/// six seconds apart agree, so that the manager has heard from all OSDs.
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
    Err("the counters of the OSDs keep changing".to_owned())
}

fn reads(server: &Server) -> Result<BTreeMap<String, u64>> {
    let json = |line: &str| -> Result<Value> {
        serde_json::from_str(&server.ask(line)?).map_err(|e| format!("{line}: {e}"))
    };
    let pools = json("ceph osd pool ls detail -f json")?;
    let pool = items(&pools)
        .find(|pool| pool["pool_name"] == "default.rgw.buckets.data")
        .ok_or("ceph has no pool of objects")?;
    let prefix = format!("{}.", pool["pool_id"]);
    let dump = json("ceph pg dump pgs -f json")?;
    let groups = dump.get("pg_stats").unwrap_or(&dump);
    let mut reads = BTreeMap::new();
    for group in items(groups).filter(|group| text(&group["pgid"]).starts_with(&prefix)) {
        let name = format!("osd.{}", group["acting_primary"]);
        *reads.entry(name).or_insert(0) += whole(&group["stat_sum"]["num_read"]);
    }
    Ok(reads)
}
