//! Opening sessions on a load thread.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use bucketload_core::driver::{AnyDriver, AnySession, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;

use crate::clock::now_ns;
use crate::perform::Worker;
use crate::shard::Shard;

/// Opens a session for a worker of work number `work` within the plan's timeout and gives it a slot. The calling task
/// becomes the worker's task.
pub(crate) async fn open_session(
    driver: &AnyDriver,
    shard: &Shard,
    work: u16,
) -> Result<Box<Worker>, OpError> {
    let id = shard.next_worker();
    let worker = WorkerId {
        thread: u16::try_from(shard.thread).unwrap_or(u16::MAX),
        worker: id,
    };
    let session = {
        let mut probe = Probe::new(now_ns);
        let session = open_within(driver, worker, &mut probe, shard.shared.plan.timeout_ns).await?;
        let (connects, times) = probe.connects();
        if connects > 0 {
            shard.recorder.tally().record_connect(times);
        }
        session
    };
    let slot = shard.slots.add();
    let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    shard.slots.set_waker(slot, waker);
    shard.sessions.set(shard.sessions.get() + 1);
    let lengths = shard.shared.sources.iter().map(|s| s.max_key_len());
    // Boxed to keep callers' futures small.
    let mut worker = Box::new(Worker::new(
        session,
        id,
        slot,
        work,
        lengths.max().unwrap_or(0),
    ));
    worker.version = shard.shared.versions.as_ref().map(|_| Box::default());
    Ok(worker)
}

/// Opens a session; fails if that takes longer than `timeout_ns`.
pub(crate) async fn open_within(
    driver: &AnyDriver,
    worker: WorkerId,
    probe: &mut Probe,
    timeout_ns: u64,
) -> Result<AnySession, OpError> {
    let opening = driver.open(worker, probe);
    match tokio::time::timeout(Duration::from_nanos(timeout_ns), opening).await {
        Ok(result) => result,
        Err(_) => Err(OpError::new(
            ErrorKind::Timeout,
            format!("no connection within {} ms", timeout_ns / 1_000_000),
        )),
    }
}
