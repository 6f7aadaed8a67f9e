//! The gateway's threads follow their clients' cores. A separate program, because it inspects all threads of the process.
#![allow(missing_docs)]

mod common;

use bucketload_gateway::{Client, Options};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// More requests than the server handles between two checks.
const REQUESTS: usize = 64;

fn only(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

/// The cores that each connection's thread may use.
fn allowed_cores() -> Vec<CpuSet> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let tasks = tasks.map(|task| task.unwrap().path());
    let serving = |task: &std::path::PathBuf| {
        // A thread may end meanwhile.
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "gateway-client")
    };
    let place = |task: std::path::PathBuf| {
        let id: i32 = task.file_name()?.to_str()?.parse().ok()?;
        sched_getaffinity(Pid::from_raw(id)).ok()
    };
    tasks.filter(serving).filter_map(place).collect()
}

#[test]
fn threads_follow_their_clients_while_there_are_many() {
    let all = sched_getaffinity(None).unwrap();
    let core = (0..CpuSet::MAX_CPU)
        .rev()
        .find(|core| all.is_set(*core))
        .unwrap();
    let gateway = common::over_memory();
    let call = || (0..REQUESTS).for_each(|_| drop(gateway.client.list_buckets().unwrap()));
    let connect = || Client::connect(Options::new(gateway.server.address().clone())).unwrap();
    sched_setaffinity(None, &only(core)).unwrap();
    call();
    assert_eq!(allowed_cores(), [all], "one client is served from any core");
    let others: Vec<Client> = (0..all.count()).map(|_| connect()).collect();
    call();
    assert_eq!(allowed_cores().len(), others.len() + 1);
    assert!(
        allowed_cores().iter().all(|set| *set == all),
        "the others are idle"
    );
    // A connection without a request for a second is not in use.
    common::eventually("the threads do not follow", || {
        others
            .iter()
            .for_each(|other| drop(other.list_buckets().unwrap()));
        call();
        allowed_cores().iter().all(|set| *set == only(core))
    });
    drop(others);
    // A connection leaves the list before its thread ends.
    common::eventually(
        "the other threads stay, or the last one still follows",
        || {
            call();
            gateway.server.connections() == 1 && allowed_cores() == [all]
        },
    );
}
