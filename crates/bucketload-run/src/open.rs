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

/// Operations that a task executes without waiting before it yields to other tasks.
const BURST: u32 = 64;

/// What the workers of one open work share.
pub(crate) struct OpenWork {
    pub(crate) shard: Rc<Shard>,
    pub(crate) baton: Rc<Baton>,
    pub(crate) timer: DueTimer,
    pub(crate) driver: AnyDriver,
}

impl OpenWork {
    /// Lets the baton start further workers.
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

/// Opens a session and works with it until the phase ends.
async fn hire(work: Rc<OpenWork>) {
    let (shard, baton) = (&*work.shard, &*work.baton);
    // The result is handled in a function so the future does not store it.
    if let Some(worker) = hired(
        open_session(&work.driver, shard, baton.work).await,
        shard,
        baton,
    ) {
        run_worker(&work, worker).await;
    }
}

/// Tells baton and shard whether the session opened.
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

/// A connected worker: leads, executes and queues up until the phase ends.
async fn run_worker(work: &OpenWork, mut worker: Box<Worker>) {
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

/// Waits until the next arrival is due or the offering ends. Returns the current time, or `None` when there is
/// nothing to wait for.
async fn wait_for_due(work: &OpenWork) -> Option<u64> {
    let (shard, baton) = (&*work.shard, &*work.baton);
    if shard.shared.pacing == Pacing::BusyPoll {
        loop {
            let target = baton.target_ns(shard.cutoff_ns.get(), None)?;
            let now = now_ns();
            if now >= target {
                return Some(now);
            }
            // Other tasks run and the sockets are polled, without sleeping.
            tokio::task::yield_now().await;
        }
    }
    poll_fn(
        |cx| match baton.target_ns(shard.cutoff_ns.get(), Some(cx.waker())) {
            // Read again at each poll: the cutoff may have moved.
            Some(target) => work.timer.poll_until(target, cx).map(Some),
            None => Poll::Ready(None),
        },
    )
    .await
}
