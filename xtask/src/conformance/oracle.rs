//! The consistency oracle over long runs: it finds every injected fault of small and large objects and names its
//! kind, over memory and over a directory. In a correct store it finds nothing.

use std::io::{Read, Write};

use serde_json::Value;

use crate::files::{self, TempDir};
use crate::program::{Serve, bucketload, call, items, store_in, whole};
use crate::sh::{Result, ensure};

/// The workload of the program's integration test.
const WORKLOAD: &str = include_str!("../../../crates/bucketload/tests/workloads/consistency.toml");

/// Faults of connections and answers; none makes a store inconsistent.
const TROUBLE: [&str; 4] = [
    "reset,contains=/mixed/,after=30,prob=0.02",
    "truncate,contains=/mixed/,after=30,prob=0.02",
    "status=503,contains=/mixed/,after=30,prob=0.02",
    "delay,time=2500ms,contains=/mixed/,after=30,every=150",
];

/// Faults that make the store inconsistent, a hundred of each.
const FAULTS: [&str; 4] = [
    "stale,contains=/stale/,every=2,count=100",
    "lost,contains=/lost/,count=100",
    "torn,contains=/torn/,count=100",
    "resurrect,contains=/dead/,count=100",
];

/// Tests both stores at the same time: nothing here depends on their speed.
pub(crate) fn all() -> Result {
    std::thread::scope(|scope| {
        let posix = scope.spawn(|| cases("posix"));
        cases("memory")?;
        posix.join().map_err(|_| "the check panicked")?
    })
}

fn cases(store: &str) -> Result {
    for large in [false, true] {
        let wanted = [
            ("lost", 100),
            ("resurrected", 100),
            ("stale", 100),
            ("torn", 100),
        ];
        case(store, large, &FAULTS, &wanted)?;
        case(store, large, &[], &[])?;
    }
    Ok(())
}

/// Runs the workload and compares the findings with the injected faults.
fn case(store: &str, large: bool, faults: &[&str], wanted: &[(&str, u64)]) -> Result {
    let dir = TempDir::new(&format!("oracle-{store}"))?;
    let file = dir.file("consistency.toml");
    files::write(&file, WORKLOAD)?;
    let mut args = format!("--store {} --stats-page", store_in(&dir, store)?);
    for fault in TROUBLE.iter().chain(faults) {
        args += &format!(" --fault {fault}");
    }
    let server = Serve::start(&args)?;
    let (url, out) = (server.url(), dir.file("run"));
    let profile = if large { "--profile-name large" } else { "" };
    let line = format!(
        "run {file} --target s3://oracle/t --create-bucket --endpoint-url {url} --no-calibration --out {out} \
         --output json --set phases.load.duration=20s {profile}"
    );
    let outcome = call(bucketload(&line)?.envs(server.aws_env()))?;
    outcome.expect_code(i32::from(!wanted.is_empty()))?;
    let result = outcome.json()?;
    let found = found(&result)?;
    let injected = injected(server.endpoint().0)?;
    eprintln!(
        "{store}{}: injected {:?}, found {found:?}",
        if large { ", large objects" } else { "" },
        &injected[TROUBLE.len()..]
    );
    let holds = found.len() == wanted.len()
        && found
            .iter()
            .zip(wanted)
            .all(|(found, wanted)| (found.0.as_str(), found.1) == *wanted)
        && injected.iter().all(|&n| n > 0)
        && injected[TROUBLE.len()..].iter().all(|&n| n == 100);
    ensure(holds, || {
        format!("{store}: the findings differ from the injected faults")
    })
}

/// Findings by kind. Stale reads are counted by answers, since each answer is a separate fault.
fn found(result: &Value) -> Result<Vec<(String, u64)>> {
    let found = result["oracle"]["found"]
        .as_object()
        .ok_or_else(|| format!("no oracle in {result}"))?;
    let number = |kind: &str, count: &Value| {
        let is_stale = kind == "stale";
        whole(&count[if is_stale { "answers" } else { "findings" }])
    };
    let counted = found
        .iter()
        .map(|(kind, count)| (kind.clone(), number(kind, count)));
    Ok(counted.collect())
}

/// How often each fault rule applied, by the server's own count.
pub(super) fn injected(address: &str) -> Result<Vec<u64>> {
    let fail = |e: std::io::Error| format!("{address}: {e}");
    let mut stream = std::net::TcpStream::connect(address).map_err(fail)?;
    let request = "GET /-/bucketload/stats HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).map_err(fail)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(fail)?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let stats: Value = serde_json::from_str(body).map_err(|e| e.to_string())?;
    let faults = items(&stats["faults"]);
    Ok(faults.map(|fault| whole(&fault["injected"])).collect())
}
