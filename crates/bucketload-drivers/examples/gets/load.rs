//! Sessions alone, without workload model and records, that read objects of 4 KiB.

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
    /// Objects that each of them reads.
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
    let local = tokio::task::LocalSet::new();
    let before = now();
    let mut tasks = Vec::new();
    for session in sessions {
        tasks.push(local.spawn_local(work(load, session)));
    }
    local
        .run_until(async {
            for task in tasks {
                task.await??;
            }
            Ok::<_, Failure>(())
        })
        .await?;
    let spent = now() - before;
    Ok(spent as f64 / f64::from(load.workers * load.requests))
}

async fn work<S: Session>(load: Load, mut session: S) -> Result<(), OpError> {
    let mut probe = Probe::new(clock);
    let mut key = String::new();
    let op = op(OpClass::Get);
    for seq in 0..load.requests {
        set_key(&mut key, seq % load.objects);
        probe.reset();
        let request = Request::new(&op, BUCKET, &key);
        session.execute(&request, &mut probe).await?;
    }
    Ok(())
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
