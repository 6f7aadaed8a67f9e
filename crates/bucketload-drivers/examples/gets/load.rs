//! Sessions alone, without workload model and records, that read objects of 4 KiB.

use std::ops::Range;

use bucketload_core::driver::{Driver, Session, WorkerId};
use bucketload_core::error::OpError;
use bucketload_core::op::{Op, OpClass, Request};
use bucketload_core::record::Probe;

use crate::{Failure, SIZE, clock, cpu};

/// Where the objects are.
pub(crate) const BUCKET: &str = "bench";

/// Who reads how much.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Sessions, each with one request in flight.
    pub(crate) workers: u32,
    /// Objects that each of them reads before it is measured.
    pub(crate) warm: u32,
    /// Objects that each of them reads while it is measured.
    pub(crate) requests: u32,
    /// Objects there are.
    pub(crate) objects: u32,
    /// Whether the time of all threads of the process counts, not only the caller's: a library may have
    /// some of its own.
    pub(crate) all_threads: bool,
}

/// CPU time per object that `driver` needs for `load`, in nanoseconds.
pub(crate) async fn gets<D: Driver>(load: Load, driver: &D) -> Result<f64, Failure> {
    let mut sessions = Vec::new();
    for worker in 0..load.workers {
        let id = WorkerId { thread: 0, worker };
        sessions.push(driver.open(id, &mut Probe::new(clock)).await?);
    }
    let now = || match load.all_threads {
        true => cpu::process_ns(),
        false => cpu::thread_ns(),
    };
    let sessions = turn(sessions, 0..load.warm, load.objects).await?;
    let before = now();
    let read = load.warm..load.warm + load.requests;
    let sessions = turn(sessions, read, load.objects).await?;
    let spent = now() - before;
    drop(sessions);
    Ok(spent as f64 / f64::from(load.workers * load.requests))
}

/// All sessions read the objects `read`, of `objects`, at the same time.
async fn turn<S: Session + 'static>(
    sessions: Vec<S>,
    read: Range<u32>,
    objects: u32,
) -> Result<Vec<S>, Failure> {
    let local = tokio::task::LocalSet::new();
    let tasks = sessions.into_iter();
    let tasks = tasks.map(|session| local.spawn_local(work(session, read.clone(), objects)));
    let tasks: Vec<_> = tasks.collect();
    local
        .run_until(async {
            let mut sessions = Vec::with_capacity(tasks.len());
            for task in tasks {
                sessions.push(task.await??);
            }
            Ok(sessions)
        })
        .await
}

async fn work<S: Session>(mut session: S, read: Range<u32>, objects: u32) -> Result<S, OpError> {
    let mut probe = Probe::new(clock);
    let mut key = String::new();
    let op = op(OpClass::Get);
    for seq in read {
        set_key(&mut key, seq % objects);
        probe.reset();
        let request = Request::new(&op, BUCKET, &key);
        session.execute(&request, &mut probe).await?;
    }
    Ok(session)
}

/// Makes `key` the key of object `number`.
pub(crate) fn set_key(key: &mut String, number: u32) {
    use std::fmt::Write as _;
    key.clear();
    let _ = write!(key, "bucketload-bench/data/{number:013}");
}

/// A read or a write of a whole object of [`SIZE`] bytes.
pub(crate) const fn op(class: OpClass) -> Op {
    Op {
        size: SIZE as u64,
        ..Op::new(class)
    }
}
