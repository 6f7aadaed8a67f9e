//! The supervisor: the main task of a load thread, for the length of one phase.
//!
//! It sleeps until the next interval boundary, the earliest possible timeout, the end of the offering or the end of the
//! drain, whichever comes first, or until the collector or a worker wakes it.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_local;

use crate::clock::now_ns;
use crate::options::Pacing;
use crate::shard::Shard;
use crate::stop::StopLevel;

/// A command from the collector to the load threads; only the latest counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    /// Start of the phase, nanoseconds since the epoch; 0 = not yet.
    pub(crate) start_ns: u64,
    /// Whether to end early.
    pub(crate) level: StopLevel,
}

/// Supervises the phase until nothing is left to do.
pub(crate) async fn supervise(shard: &Shard, commands: &mut watch::Receiver<Command>) {
    let limits = shard.shared.phase_plan().limits;
    let timeout_ns = shard.shared.plan.timeout_ns;
    let mut works = shard.shared.phase_plan().works.iter();
    // From this level on, nobody waits for operations in flight.
    let giving_up = match works.any(|work| work.model.is_cut_short()) {
        true => StopLevel::Finish,
        false => StopLevel::Abort,
    };
    let mut sweep_ns = 0;
    let mut abandoned = false;
    let mut collector_gone = false;
    if shard.shared.pacing == Pacing::BusyPoll {
        // Keeps the thread from sleeping, even while closed-loop workers wait for answers.
        spawn_local(async {
            loop {
                tokio::task::yield_now().await;
            }
        });
    }
    loop {
        shard.resume_panic();
        let now = now_ns();
        let command = *commands.borrow_and_update();
        if shard.start_ns.get() == 0 && command.start_ns > 0 {
            // Before the start itself: the leaders wait for that with their own, finer timers.
            shard.start(command.start_ns);
            sweep_ns = now.saturating_add(timeout_ns);
        }
        let started = shard.start_ns.get() > 0;
        if command.level >= StopLevel::Finish || collector_gone {
            if !started {
                return;
            }
            shard.close(now);
        }
        let cutoff = shard.cutoff_ns.get();
        let drain_end = cutoff.saturating_add(limits.drain_ns);
        let give_up = command.level >= giving_up || collector_gone || now >= drain_end;
        if started {
            if now >= shard.start_ns.get() {
                shard.release();
            }
            shard.tick(now);
            if give_up && !abandoned {
                shard.abandon(now);
                abandoned = true;
            }
            if shard.is_complete(now) {
                return;
            }
            if now >= sweep_ns {
                sweep_ns = shard.slots.sweep(now, timeout_ns);
            }
        }
        let wake_ns = if !started {
            u64::MAX
        } else if now < shard.start_ns.get() {
            shard.start_ns.get()
        } else {
            let end = if now < cutoff { cutoff } else { drain_end };
            let end = if abandoned { u64::MAX } else { end };
            end.min(sweep_ns).min(shard.recorder.boundary())
        };
        let pause = Duration::from_nanos(wake_ns.saturating_sub(now_ns()));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shard.woken() => {}
            changed = commands.changed(), if !collector_gone => collector_gone = changed.is_err(),
        }
    }
}
