//! The link between an agent's network and its run thread: orders in, measurements out.
//!
//! The run thread sends everything through `BlockingOutbox`, which waits for room, but only while the
//! coordinator is there: a peer that has stopped reading must not keep the load running.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bucketload_core::driver::DriverFacts;
use bucketload_core::oplog::{Batch, OpLog};
use bucketload_core::ranks::PhaseRanks;
use bucketload_core::sink::{Calibration, Event, PhaseEnd, RunSink};
use bucketload_core::slowest::SlowRequest;
use bucketload_core::tally::Interval;
use bucketload_run::{
    Order, Orders, PhaseOrder, PhaseSummary, Range, RankAgreement, RunError, StartGate, StopHandle,
    StopHook, StopLevel, now_ns,
};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::lock;
use crate::message::{self, AgentPhaseEnd, Problem, ToAgent, ToCoordinator, control};
use crate::service::Outbox;

/// Pause between attempts to put a message into a full queue.
const PAUSE: Duration = Duration::from_millis(2);
/// Rows of workers or ranks in one message, at some 400 bytes each.
const ROWS_AT_ONCE: usize = 2_000;
/// How long after a phase its operation log may take to reach the network.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(60);
/// How often the thread that sends rows checks for a requested flush while there are no rows.
const LOOK: Duration = Duration::from_millis(20);

/// Sends messages to the coordinator from a thread that may block.
#[derive(Clone)]
struct BlockingOutbox {
    out: Outbox,
    /// Whether the coordinator is gone.
    dead: Arc<AtomicBool>,
}

impl BlockingOutbox {
    /// Waits for room in `queue`; gives up when the coordinator is gone.
    fn push(&self, queue: &mpsc::Sender<Bytes>, mut message: Bytes) -> bool {
        loop {
            match queue.try_send(message) {
                Ok(()) => return true,
                Err(TrySendError::Closed(_)) => return false,
                Err(TrySendError::Full(back)) => message = back,
            }
            if self.dead.load(Ordering::Acquire) {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn send(&self, message: &ToCoordinator) {
        self.push(&self.out.control, control(message));
    }

    /// Sends a message behind the rows of the operation log that are already queued.
    fn send_after_rows(&self, message: &ToCoordinator) {
        self.push(&self.out.ops, control(message));
    }
}

/// State of the agreement on the start of a phase.
#[derive(Default)]
struct StartState {
    /// The last phase reported as ready.
    reported_ready: Option<u16>,
    /// A phase and its agreed start.
    agreed: Option<(u16, u64)>,
}

/// The agent's start gate: reports readiness to the coordinator and learns the start instant.
struct Gate {
    outbox: BlockingOutbox,
    state: Mutex<StartState>,
}

impl StartGate for Gate {
    fn start_ns(&self, phase: u16) -> Option<u64> {
        let mut state = lock(&self.state);
        if state.reported_ready != Some(phase) {
            state.reported_ready = Some(phase);
            self.outbox.send(&ToCoordinator::Ready { phase });
        }
        let (_, at_ns) = state.agreed.filter(|(of, _)| *of == phase)?;
        let late_ns = now_ns().saturating_sub(at_ns);
        if late_ns > 0 {
            self.outbox.send(&ToCoordinator::Late { phase, late_ns });
        }
        Some(at_ns)
    }
}

/// The network's handle on the run thread.
pub(crate) struct RunHandle {
    orders: Mutex<Option<Sender<Order>>>,
    gate: Arc<Gate>,
    agreement: Arc<RankAgreement>,
    stop: StopHandle,
    converged: Arc<AtomicU32>,
}

impl RunHandle {
    /// Passes an order of the coordinator on.
    pub(crate) fn order(&self, order: &ToAgent) {
        let give = |order| {
            let orders = lock(&self.orders);
            // A run thread that has ended has reported why.
            let _ = orders.as_ref().map(|orders| orders.send(order));
        };
        match order {
            ToAgent::Calibrate { phase } => give(Order::Calibrate(usize::from(*phase))),
            ToAgent::Phase {
                phase,
                generation,
                part,
            } => give(Order::Phase(PhaseOrder {
                phase: usize::from(*phase),
                generation: *generation,
                part: part.clone(),
            })),
            ToAgent::Start {
                phase,
                at_ns,
                unix_s,
            } => {
                self.agreement.begins(*phase, *unix_s);
                let mut state = lock(&self.gate.state);
                state.agreed = Some((*phase, *at_ns));
            }
            ToAgent::Agreed { phase, steps } => self.agreement.agree(*phase, *steps),
            ToAgent::Converged { phase } => {
                self.converged
                    .store(u32::from(*phase) + 1, Ordering::Release);
            }
            ToAgent::Stop { level } => stop(&self.stop, *level),
            ToAgent::Hello(_) | ToAgent::Assign(_) | ToAgent::Ping { .. } | ToAgent::Bye => {}
        }
    }

    /// Aborts the run: nobody waits for its results any more.
    pub(crate) fn abandon(&self) {
        stop(&self.stop, 2);
        self.gate.outbox.dead.store(true, Ordering::Release);
        let mut orders = lock(&self.orders);
        *orders = None;
    }
}

/// Raises `handle` to `level` (1: finish, 2: abort).
fn stop(handle: &StopHandle, level: u8) {
    if level >= 1 && handle.level() < StopLevel::Finish {
        handle.stop();
    }
    if level >= 2 && handle.level() < StopLevel::Abort {
        handle.stop();
    }
}

/// The run thread's end of the link.
pub struct Conductor {
    outbox: BlockingOutbox,
    orders: Option<Receiver<Order>>,
    gate: Arc<Gate>,
    agreement: Arc<RankAgreement>,
    stop: StopHandle,
    converged: Arc<AtomicU32>,
    op_log: Option<Arc<OpLogSender>>,
    accepted: bool,
}

impl Conductor {
    pub(crate) fn new(out: Outbox) -> (Self, RunHandle) {
        let (give, orders) = channel();
        let outbox = BlockingOutbox {
            out,
            dead: Arc::default(),
        };
        let gate = Arc::new(Gate {
            outbox: outbox.clone(),
            state: Mutex::default(),
        });
        let sender = outbox.clone();
        let agreement = Arc::new(RankAgreement::new(Box::new(move |phase, steps| {
            sender.send(&ToCoordinator::Reached { phase, steps });
        })));
        let (stop, converged) = (StopHandle::new(), Arc::new(AtomicU32::new(0)));
        let handle = RunHandle {
            orders: Mutex::new(Some(give)),
            gate: Arc::clone(&gate),
            agreement: Arc::clone(&agreement),
            stop: stop.clone(),
            converged: Arc::clone(&converged),
        };
        let conductor = Self {
            outbox,
            orders: Some(orders),
            gate,
            agreement,
            stop,
            converged,
            op_log: None,
            accepted: false,
        };
        (conductor, handle)
    }

    /// The handle with which the coordinator stops the load.
    #[must_use]
    pub fn stop(&self) -> StopHandle {
        self.stop.clone()
    }

    /// The gate that agrees with the coordinator on the start of phases.
    #[must_use]
    pub fn gate(&self) -> Arc<dyn StartGate> {
        Arc::clone(&self.gate) as Arc<dyn StartGate>
    }

    /// The agreement with the coordinator on how many steps ranks make.
    #[must_use]
    pub fn agreement(&self) -> Arc<RankAgreement> {
        Arc::clone(&self.agreement)
    }

    /// Ends phases when the coordinator finds that all agents together have converged, or fail.
    #[must_use]
    pub fn converged(&self) -> StopHook {
        let converged = Arc::clone(&self.converged);
        RefCell::new(Box::new(move |interval: &Interval| {
            let told = converged.load(Ordering::Acquire) == u32::from(interval.phase) + 1;
            told.then_some(PhaseEnd::Converged)
        }))
    }

    /// An operation log of at most `threads` load threads whose rows go to the coordinator.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn op_log(&mut self, threads: usize) -> std::io::Result<OpLog> {
        let (log, batches) = OpLog::new(threads);
        let relay = Arc::new(OpLogSender {
            dropped: log.dropped(),
            flush: Mutex::new((0, 0)),
            flushed: Condvar::new(),
        });
        let (outbox, of) = (self.outbox.clone(), Arc::clone(&relay));
        // It ends with the last producer of the log, or when the coordinator is gone.
        std::thread::Builder::new()
            .name("agent-op-log".to_owned())
            .spawn(move || of.run(&batches, &outbox))?;
        self.op_log = Some(relay);
        Ok(log)
    }

    /// Reports that the target is open and the share can be carried out.
    pub fn accepted(&mut self, threads: u32, facts: DriverFacts) {
        self.accepted = true;
        self.outbox
            .send(&ToCoordinator::Accepted { threads, facts });
    }

    /// The sink for measurements and the source of orders that [`bucketload_run::serve`] needs.
    ///
    /// # Panics
    /// When called twice.
    pub fn parts(&mut self) -> (impl RunSink + use<>, impl Orders + use<>) {
        let sink = AgentSink {
            outbox: self.outbox.clone(),
            buffer: Vec::new(),
        };
        let orders = AgentOrders {
            outbox: self.outbox.clone(),
            orders: self
                .orders
                .take()
                .expect("a conductor has one set of parts"),
            op_log: self.op_log.clone(),
        };
        (sink, orders)
    }

    /// Reports that the share cannot be carried out.
    pub(crate) fn refused(&self, problem: Problem) {
        self.outbox.send_after_rows(&match self.accepted {
            false => ToCoordinator::Refused(problem),
            true => ToCoordinator::Bye {
                reason: problem.message,
            },
        });
    }
}

/// Sends an agent's measurements to the coordinator.
struct AgentSink {
    outbox: BlockingOutbox,
    buffer: Vec<u8>,
}

impl RunSink for AgentSink {
    fn event(&mut self, event: &Event) {
        match event {
            // The coordinator announces phases itself.
            Event::PhaseStarted { .. } | Event::PhaseEnded { .. } => {}
            Event::Rows(rows) => {
                for part in rows.clone().parts(ROWS_AT_ONCE) {
                    self.outbox.send(&ToCoordinator::Event(Event::Rows(part)));
                }
            }
            Event::Ranks(ranks) => {
                for part in ranks.ranks.chunks(ROWS_AT_ONCE) {
                    let part = PhaseRanks {
                        ranks: part.to_vec(),
                        ..*ranks
                    };
                    self.outbox.send(&ToCoordinator::Event(Event::Ranks(part)));
                }
            }
            event => self.outbox.send(&ToCoordinator::Event(event.clone())),
        }
    }

    fn interval(&mut self, interval: &Interval) {
        let message = message::interval(interval, &mut self.buffer);
        self.outbox.push(&self.outbox.out.control, message);
    }

    fn slow_requests(&mut self, requests: &[SlowRequest]) {
        self.outbox.send(&ToCoordinator::Slow(requests.to_vec()));
    }
}

/// Receives the coordinator's orders and reports their outcomes.
struct AgentOrders {
    outbox: BlockingOutbox,
    orders: Receiver<Order>,
    op_log: Option<Arc<OpLogSender>>,
}

impl Orders for AgentOrders {
    fn next(&mut self) -> Option<Order> {
        // Ends when the network drops the sender, at the latest when the coordinator is lost.
        self.orders.recv().ok()
    }

    fn calibrated(&mut self, outcome: Result<Calibration, RunError>) {
        let outcome = outcome.map_err(|e| problem(&e));
        self.outbox.send(&ToCoordinator::Calibrated(outcome));
    }

    fn filled(&mut self, phase: usize, ranges: Vec<Range>) {
        let phase = u16::try_from(phase).unwrap_or(u16::MAX);
        // It overtakes the end of the phase, which follows the rows of the operation log.
        self.outbox.send(&ToCoordinator::Filled { phase, ranges });
    }

    fn phase_done(&mut self, phase: usize, outcome: Result<PhaseSummary, RunError>) {
        if let Some(log) = &self.op_log {
            log.flush(&self.outbox.dead);
        }
        let outcome = match outcome {
            Ok(summary) => Ok(AgentPhaseEnd {
                at_ns: summary.at_ns,
                drained_ns: summary.drained_ns,
                end: summary.end,
            }),
            Err(error) => Err(problem(&error)),
        };
        self.outbox.send_after_rows(&ToCoordinator::PhaseDone {
            phase: u16::try_from(phase).unwrap_or(u16::MAX),
            outcome,
            dropped: self.op_log.as_ref().map_or(0, |log| log.dropped()),
        });
    }
}

fn problem(error: &RunError) -> Problem {
    Problem {
        message: error.to_string(),
        exit_code: error.exit_code(),
    }
}

/// State of the thread that sends the operation log.
struct OpLogSender {
    dropped: Arc<AtomicU64>,
    /// Flushes requested and done.
    flush: Mutex<(u64, u64)>,
    flushed: Condvar,
}

impl OpLogSender {
    fn run(&self, batches: &Receiver<Batch>, outbox: &BlockingOutbox) {
        // Flushes requested before the last look at the channel.
        let mut asked = 0;
        loop {
            let pause = match self.answered() < asked {
                true => Duration::ZERO,
                false => LOOK,
            };
            match batches.recv_timeout(pause) {
                Ok(batch) => {
                    if !outbox.push(&outbox.out.ops, message::ops(&batch)) {
                        let lost = batch.len() as u64;
                        self.dropped.fetch_add(lost, Ordering::Relaxed);
                    }
                    batch.recycle();
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => self.answer(asked),
                Err(RecvTimeoutError::Disconnected) => return self.answer(self.asked()),
            }
            asked = self.asked();
        }
    }

    fn state(&self) -> MutexGuard<'_, (u64, u64)> {
        lock(&self.flush)
    }

    fn asked(&self) -> u64 {
        self.state().0
    }

    fn answered(&self) -> u64 {
        self.state().1
    }

    /// Marks flush `asked` done: every row logged before that request has been sent. `asked` must predate the
    /// look at the channel, because rows and a later request may have arrived since.
    fn answer(&self, asked: u64) {
        self.state().1 = asked;
        self.flushed.notify_all();
    }

    /// Waits until every logged row is queued for sending. Nothing may be logged meanwhile.
    fn flush(&self, dead: &AtomicBool) {
        let mut flush = self.state();
        flush.0 += 1;
        let mine = flush.0;
        let begun = std::time::Instant::now();
        while flush.1 < mine && begun.elapsed() < FLUSH_TIMEOUT && !dead.load(Ordering::Acquire) {
            flush = self
                .flushed
                .wait_timeout(flush, Duration::from_millis(100))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Condvar, Mutex};

    use super::OpLogSender;

    #[test]
    fn a_flush_requested_after_the_look_waits_for_the_next_look() {
        let relay = OpLogSender {
            dropped: Arc::default(),
            flush: Mutex::default(),
            flushed: Condvar::new(),
        };
        relay.state().0 = 1;
        let before_the_look = relay.asked();
        // The channel is empty; then rows are logged, and the end of their phase requests a flush.
        relay.state().0 = 2;
        relay.answer(before_the_look);
        assert!(relay.answered() < relay.asked());
        relay.answer(relay.asked());
        assert_eq!(relay.answered(), 2);
    }
}
