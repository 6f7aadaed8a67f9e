//! Threads of the gateway on the cores of their clients. A program of its own: it looks at all threads there are.
#![allow(missing_docs)]

mod common;

use bucketload_gateway::{Client, Options};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// More requests than lie between two moves.
const REQUESTS: usize = 64;

fn only(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

/// The cores that each connection's thread may use.
fn places() -> Vec<CpuSet> {
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
    assert_eq!(places(), [all], "one client is served from any core");
    let others: Vec<Client> = (0..all.count()).map(|_| connect()).collect();
    call();
    assert_eq!(places().len(), others.len() + 1);
    assert!(places().iter().all(|set| *set == all), "the others rest");
    // Whoever has not been heard for a second is not at work.
    common::eventually("they do not follow", || {
        others
            .iter()
            .for_each(|other| drop(other.list_buckets().unwrap()));
        call();
        places().iter().all(|set| *set == only(core))
    });
    drop(others);
    // A connection is off the list before its thread has ended.
    common::eventually("the others stay, or it follows", || {
        call();
        gateway.server.connections() == 1 && places() == [all]
    });
}
