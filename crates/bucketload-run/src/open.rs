//! The task of one open-loop worker: connect, then lead, execute and queue up in turn.

use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::Poll;

use bucketload_core::driver::AnyDriver;
use bucketload_core::error::OpError;

use crate::baton::Baton;
use crate::clock::now_ns;
use crate::options::Pacing;
use crate::perform::{Worker, perform};
use crate::session::open_session;
use crate::shard::Shard;
use crate::timer::DueTimer;

/// Operations that a task executes without waiting before it lets other tasks run.
const BURST: u32 = 64;

/// What the workers of one open work share beside the baton.
pub(crate) struct OpenWork {
    pub(crate) shard: Rc<Shard>,
    pub(crate) baton: Rc<Baton>,
    pub(crate) timer: DueTimer,
    pub(crate) driver: AnyDriver,
}

impl OpenWork {
    /// Makes the baton able to start further workers.
    pub(crate) fn enable_hiring(this: &Rc<Self>) {
        let weak: Weak<Self> = Rc::downgrade(this);
        this.baton.set_hire(Box::new(move || {
            if let Some(work) = weak.upgrade() {
                let shard = Rc::clone(&work.shard);
                Shard::spawn(&shard, hire(work));
            }
        }));
    }
}

/// Opens one session and works with it until the phase ends.
async fn hire(work: Rc<OpenWork>) {
    let (shard, baton) = (&*work.shard, &*work.baton);
    // By a call, which leaves nothing of how it went that the future would have room for.
    if let Some(worker) = hired(
        open_session(&work.driver, shard, baton.work).await,
        shard,
        baton,
    ) {
        labour(&work, worker).await;
    }
}

/// Tells what became of opening a session.
fn hired(
    opened: Result<Box<Worker>, OpError>,
    shard: &Shard,
    baton: &Baton,
) -> Option<Box<Worker>> {
    match opened {
        Ok(worker) => {
            baton.hired();
            Some(worker)
        }
        Err(error) => {
            let work = &shard.shared.phase_plan().works[usize::from(baton.work)];
            let class = work.mix[0].class;
            shard.report_failure(class, "(opening a session)", &error, now_ns());
            baton.hire_failed();
            shard.note_open_error(error);
            shard.wake_main();
            None
        }
    }
}

/// The life of a connected worker.
async fn labour(work: &OpenWork, mut worker: Box<Worker>) {
    let (shard, baton) = (&*work.shard, &*work.baton);
    let slot = worker.slot;
    shard.wake_main();
    let mut burst = 0;
    while !baton.is_finished() {
        if !baton.leads(slot) && !baton.free(slot) {
            poll_fn(|_| {
                if baton.leads(slot) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
        }
        let Some(now) = wait_for_due(work).await else {
            baton.finish();
            break;
        };
        let Some(mut due_op) = baton.take(now, shard, &mut worker.names) else {
            continue;
        };
        // Scoped so the future does not store the end while the task yields.
        burst = {
            let end = perform(shard, &mut worker, &mut due_op, || {
                if baton.leads(slot) {
                    baton.pass(&shard.slots);
                }
            })
            .await;
            baton.ended(&due_op, &end, shard);
            if end.waited { 0 } else { burst + 1 }
        };
        if burst == BURST {
            burst = 0;
            tokio::task::yield_now().await;
        }
    }
    shard.wake_main();
}

/// Waits until the next arrival is due or the offering ends; `None` when there is nothing to wait
/// for. Returns the current time.
async fn wait_for_due(work: &OpenWork) -> Option<u64> {
    let (shard, baton) = (&*work.shard, &*work.baton);
    if shard.shared.pacing == Pacing::BusyPoll {
        loop {
            let target = baton.target_ns(shard.cutoff_ns.get(), None)?;
            let now = now_ns();
            if now >= target {
                return Some(now);
            }
            // Runs the other tasks and polls the sockets without sleeping.
            tokio::task::yield_now().await;
        }
    }
    poll_fn(
        |cx| match baton.target_ns(shard.cutoff_ns.get(), Some(cx.waker())) {
            // The cutoff may have moved since the last poll, hence the look at each poll.
            Some(target) => work.timer.poll_until(target, cx).map(Some),
            None => Poll::Ready(None),
        },
    )
    .await
}
