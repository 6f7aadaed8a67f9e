//! Lets a load thread sleep in its driver when that delivers answers sooner than the event loop.
//!
//! ```text
//!  a round of the event loop:  worker ─▶ worker ─▶ … ─▶ sleeper: do all wait for the driver?
//!                                                        ├─ yes: sleep there, wake the workers with answers
//!                                                        └─ no, twice in a row: sleep in the event loop again,
//!                                                           until an answer ends that
//! ```

use std::future::poll_fn;
use std::task::{Context, Poll};

use bucketload_core::wakeup::{self, Slept};
use tokio::task::yield_now;

use crate::shard::Shard;

/// Sleeps in the driver whenever all closed-loop workers of the thread wait for it. Never ends; run it as a task of the
/// thread. Nothing else on the thread may need timing finer than a millisecond or two.
pub(crate) async fn sleep_in_driver(shard: &Shard) {
    let mut in_vain = 0;
    loop {
        match wakeup::sleep(shard.closed_live.get()) {
            Slept::Briefly => {
                in_vain = 0;
                turn_after(|cx| cx.waker().wake_by_ref()).await;
            }
            Slept::Long => {
                in_vain = 0;
                // Resumes after the event loop has polled its own descriptors and timers.
                yield_now().await;
            }
            Slept::Not if in_vain == 0 => {
                in_vain = 1;
                turn_after(|cx| cx.waker().wake_by_ref()).await;
            }
            Slept::Not => {
                in_vain = 0;
                turn_after(wakeup::wake_after).await;
            }
        }
    }
}

/// Calls `before` and returns when this task is next polled.
async fn turn_after(before: impl Fn(&Context<'_>)) {
    let mut called = false;
    poll_fn(|cx| match std::mem::replace(&mut called, true) {
        true => Poll::Ready(()),
        false => {
            before(cx);
            Poll::Pending
        }
    })
    .await;
}
