//! Both HDFS drivers against Hadoop: the suite, a scenario among foreign files, and our computed load of the data
//! nodes against their own counters.

use std::collections::BTreeMap;
use std::path::Path;

use super::servers::{Case, check};
use crate::files::{self, TempDir};
use crate::program::{self, items, measured, run_bucketload};
use crate::server::Server;
use crate::sh::{Result, cmd, ensure, output, run, step};

/// Largest relative difference between computed and counted reads of a data node.
const TOLERANCE: f64 = 0.02;
/// Number of data nodes of the server.
const NODES: u16 = 3;

/// Runs all checks on one Hadoop. The usual build has no `hdfs://` driver, so unless another program is named, this
/// task runs itself again with a program that has it.
pub(crate) fn all() -> Result {
    if std::env::var_os(program::INSTEAD).is_none() {
        let program = program::program_with("hdfs")?;
        let xtask = std::env::current_exe().map_err(|e| e.to_string())?;
        let part = ["conformance", "hdfs"];
        return run(cmd(&xtask.to_string_lossy(), part).env(program::INSTEAD, program));
    }
    let server = Server::start("hdfs")?;
    for api in ["webhdfs", "hdfs"] {
        let case = Case {
            server: "hdfs",
            api,
            known_as: "hdfs",
        };
        // Our own driver plants the foreign files, so no Python client is needed.
        check(&server, &case, "")?;
    }
    for api in ["webhdfs", "hdfs"] {
        let what = format!("load of the data nodes by {api} against their own counters");
        step(&what, || balance(&server, api))?;
    }
    Ok(())
}

/// Writes a client configuration with one replica per file, so that it is known which node serves a read.
fn one_copy(server: &Server, dir: &Path) -> Result {
    let property = |name: &str, value: &str| {
        format!("<property><name>{name}</name><value>{value}</value></property>")
    };
    let address = server.get("ENDPOINT")?.replace("http://", "");
    let text = format!(
        "<configuration>{}{}{}</configuration>",
        property("fs.defaultFS", server.get("HDFS_URI")?),
        property("dfs.namenode.http-address", &address),
        property("dfs.replication", "1"),
    );
    files::write(dir.join("hdfs-site.xml"), text)
}

/// Blocks read from each data node since its start, by the address in block locations.
fn blocks_read(server: &Server) -> Result<BTreeMap<String, u64>> {
    let first = server.get("HDFS_DATANODE_HTTP")?;
    let port: u16 = first
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .ok_or("HDFS_DATANODE_HTTP has no port")?;
    let mut counts = BTreeMap::new();
    for node in 0..NODES {
        let port = port + 10 * node;
        let url = format!(
            "http://127.0.0.1:{port}/jmx?qry=Hadoop:service=DataNode,name=DataNodeActivity*"
        );
        let text = output(&mut cmd("curl", ["-sSf", &url]))?;
        let beans: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let count = beans["beans"][0]["BlocksRead"]
            .as_u64()
            .ok_or_else(|| format!("{url} has no BlocksRead"))?;
        counts.insert(format!("127.0.0.1:{}", port + 2), count);
    }
    Ok(counts)
}

/// Runs `hotspot`, looks up the placement and compares the reads per data node.
fn balance(server: &Server, api: &str) -> Result {
    let dir = TempDir::new("balance")?;
    let conf = dir.file("conf");
    files::make_dir(&conf)?;
    one_copy(server, Path::new(&conf))?;
    let mut env = server.env.clone();
    env.insert("HADOOP_CONF_DIR".to_owned(), conf);
    let out = dir.file("run");
    let before = blocks_read(server)?;
    let line = format!(
        "run hotspot --target {api}://balance/bench --create-bucket --objects 300 --size 4KiB --rate 60/s \
         --duration 60s --op-log --keep --out {out}"
    );
    run_bucketload(&line, &env)?;
    let after = blocks_read(server)?;
    let placement = dir.file("placement.csv");
    run_bucketload(&format!("placement hdfs {out} --out {placement}"), &env)?;
    let report = measured(&format!("report {out} --placement {placement}"), &env)?;
    let nodes = &report["nodes"]["nodes"];
    let mut worst: f64 = 0.0;
    for (name, count) in &after {
        let counted = (count - before.get(name).copied().unwrap_or(0)) as f64;
        let computed = items(nodes)
            .find(|node| node["name"] == name.as_str())
            .and_then(|node| node["expected"].as_f64())
            .ok_or_else(|| format!("the report names no data node {name}: {nodes}"))?;
        let off = (computed - counted).abs() / counted.max(1.0);
        eprintln!(
            "{api}: {name} served {counted} reads, computed {computed}: {:.2} % off",
            100.0 * off
        );
        worst = worst.max(off);
    }
    ensure(worst <= TOLERANCE, || {
        let (worst, allowed) = (100.0 * worst, 100.0 * TOLERANCE);
        format!("{worst:.1} % off, more than {allowed:.0} %")
    })
}
