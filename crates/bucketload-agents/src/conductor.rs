//! Between the network of an agent and the thread that carries out its share: orders one way, what was
//! measured the other way.
//!
//! Everything that the run thread says goes through `Saying`, which waits for room but never longer
//! than the run lasts for the coordinator: a peer that has stopped reading must not keep the load
//! running.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bucketload_core::driver::DriverFacts;
use bucketload_core::oplog::{Batch, OpLog};
use bucketload_core::ranks::PhaseRanks;
use bucketload_core::sink::{Calibration, Event, RunSink};
use bucketload_core::slowest::SlowRequest;
use bucketload_core::tally::Interval;
use bucketload_run::{
    Order, Orders, PhaseSummary, RankAgreement, RunError, StartGate, StopHandle, StopHook,
    StopLevel, now_ns,
};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::message::{self, Part, Problem, ToAgent, ToCoordinator, control};
use crate::service::Out;

/// Pause before there is looked for room again, where there was none.
const PAUSE: Duration = Duration::from_millis(2);
/// Figures of workers or ranks in one message, at some 400 bytes each.
const ROWS_AT_ONCE: usize = 2_000;
/// How long the operation log of a phase may take to leave after the phase.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(60);
/// How often the thread that sends rows looks whether a flush is asked for while there are none.
const LOOK: Duration = Duration::from_millis(20);

/// Says something to the coordinator from a thread that may wait.
#[derive(Clone)]
struct Saying {
    out: Out,
    /// Whether the coordinator is gone.
    dead: Arc<AtomicBool>,
}

impl Saying {
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

    fn say(&self, what: &ToCoordinator) {
        self.push(&self.out.control, control(what));
    }

    /// Says it after the rows of the operation log that are on their way.
    fn say_last(&self, what: &ToCoordinator) {
        self.push(&self.out.ops, control(what));
    }
}

/// How far the start of a phase has come.
#[derive(Default)]
struct Starting {
    /// The phase of which readiness was told.
    told: Option<u16>,
    /// A phase and its agreed start.
    agreed: Option<(u16, u64)>,
}

/// The agent's start of a phase: tells the coordinator that it is ready and learns the instant.
struct Gate {
    saying: Saying,
    state: Mutex<Starting>,
}

impl StartGate for Gate {
    fn start_ns(&self, phase: u16) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.told != Some(phase) {
            state.told = Some(phase);
            self.saying.say(&ToCoordinator::Ready { phase });
        }
        let (_, at_ns) = state.agreed.filter(|(of, _)| *of == phase)?;
        let late_ns = now_ns().saturating_sub(at_ns);
        if late_ns > 0 {
            self.saying.say(&ToCoordinator::Late { phase, late_ns });
        }
        Some(at_ns)
    }
}

/// What the network knows of the run thread.
pub(crate) struct Remote {
    orders: Mutex<Option<Sender<Order>>>,
    gate: Arc<Gate>,
    agreement: Arc<RankAgreement>,
    stop: StopHandle,
    converged: Arc<AtomicU32>,
}

impl Remote {
    /// Passes on what the coordinator said.
    pub(crate) fn order(&self, order: &ToAgent) {
        let give = |order| {
            let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
            // A run thread that is gone has said why.
            let _ = orders.as_ref().map(|orders| orders.send(order));
        };
        match order {
            ToAgent::Calibrate { phase } => give(Order::Calibrate(usize::from(*phase))),
            ToAgent::Phase { phase } => give(Order::Phase(usize::from(*phase))),
            ToAgent::Start {
                phase,
                at_ns,
                unix_s,
            } => {
                self.agreement.begins(*phase, *unix_s);
                let state = &self.gate.state;
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Ends the run: nobody waits for its results any more.
    pub(crate) fn abandon(&self) {
        stop(&self.stop, 2);
        self.gate.saying.dead.store(true, Ordering::Release);
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        *orders = None;
    }
}

/// Raises `handle` to `level`: 1 finishes, 2 aborts.
fn stop(handle: &StopHandle, level: u8) {
    if level >= 1 && handle.level() < StopLevel::Finish {
        handle.stop();
    }
    if level >= 2 && handle.level() < StopLevel::Abort {
        handle.stop();
    }
}

/// The run thread's end.
pub struct Conductor {
    saying: Saying,
    orders: Option<Receiver<Order>>,
    gate: Arc<Gate>,
    agreement: Arc<RankAgreement>,
    stop: StopHandle,
    converged: Arc<AtomicU32>,
    op_log: Option<Arc<Relay>>,
    accepted: bool,
}

impl Conductor {
    pub(crate) fn new(out: Out) -> (Self, Remote) {
        let (give, orders) = channel();
        let saying = Saying {
            out,
            dead: Arc::default(),
        };
        let gate = Arc::new(Gate {
            saying: saying.clone(),
            state: Mutex::default(),
        });
        let teller = saying.clone();
        let agreement = Arc::new(RankAgreement::new(Box::new(move |phase, steps| {
            teller.say(&ToCoordinator::Reached { phase, steps });
        })));
        let (stop, converged) = (StopHandle::new(), Arc::new(AtomicU32::new(0)));
        let remote = Remote {
            orders: Mutex::new(Some(give)),
            gate: Arc::clone(&gate),
            agreement: Arc::clone(&agreement),
            stop: stop.clone(),
            converged: Arc::clone(&converged),
        };
        let conductor = Self {
            saying,
            orders: Some(orders),
            gate,
            agreement,
            stop,
            converged,
            op_log: None,
            accepted: false,
        };
        (conductor, remote)
    }

    /// The handle by which the coordinator stops the load.
    #[must_use]
    pub fn stop(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Agrees with the coordinator on the start of phases.
    #[must_use]
    pub fn gate(&self) -> Arc<dyn StartGate> {
        Arc::clone(&self.gate) as Arc<dyn StartGate>
    }

    /// Agrees with the coordinator on how far ranks go.
    #[must_use]
    pub fn agreement(&self) -> Arc<RankAgreement> {
        Arc::clone(&self.agreement)
    }

    /// Ends phases with a stopping rule when the coordinator has seen enough of all agents.
    #[must_use]
    pub fn converged(&self) -> StopHook {
        let converged = Arc::clone(&self.converged);
        RefCell::new(Box::new(move |interval: &Interval| {
            converged.load(Ordering::Acquire) == u32::from(interval.phase) + 1
        }))
    }

    /// An operation log of at most `threads` load threads whose rows go to the coordinator.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn op_log(&mut self, threads: usize) -> std::io::Result<OpLog> {
        let (log, batches) = OpLog::new(threads);
        let relay = Arc::new(Relay {
            dropped: log.dropped(),
            flush: Mutex::new((0, 0)),
            flushed: Condvar::new(),
        });
        let (saying, of) = (self.saying.clone(), Arc::clone(&relay));
        // It ends with the last producer of the log, or when the coordinator is gone.
        std::thread::Builder::new()
            .name("agent-op-log".to_owned())
            .spawn(move || of.run(&batches, &saying))?;
        self.op_log = Some(relay);
        Ok(log)
    }

    /// The target is open: the share can be carried out.
    pub fn accepted(&mut self, threads: u32, facts: DriverFacts) {
        self.accepted = true;
        self.saying.say(&ToCoordinator::Accepted { threads, facts });
    }

    /// What [`bucketload_run::serve`] needs: where measurements go and where orders come from.
    ///
    /// # Panics
    /// When called twice.
    pub fn parts(&mut self) -> (impl RunSink + use<>, impl Orders + use<>) {
        let sink = AgentSink {
            saying: self.saying.clone(),
            buffer: Vec::new(),
        };
        let orders = AgentOrders {
            saying: self.saying.clone(),
            orders: self
                .orders
                .take()
                .expect("a conductor has one set of parts"),
            op_log: self.op_log.clone(),
        };
        (sink, orders)
    }

    /// The share cannot be carried out.
    pub(crate) fn refused(&self, problem: Problem) {
        self.saying.say_last(&match self.accepted {
            false => ToCoordinator::Refused(problem),
            true => ToCoordinator::Bye {
                reason: problem.message,
            },
        });
    }
}

/// What an agent measures, on its way to the coordinator.
struct AgentSink {
    saying: Saying,
    buffer: Vec<u8>,
}

impl RunSink for AgentSink {
    fn event(&mut self, event: &Event) {
        match event {
            // The coordinator knows when phases begin and end: it says so.
            Event::PhaseStarted { .. } | Event::PhaseEnded { .. } => {}
            Event::Rows(rows) => {
                for part in rows.clone().parts(ROWS_AT_ONCE) {
                    self.saying.say(&ToCoordinator::Event(Event::Rows(part)));
                }
            }
            Event::Ranks(ranks) => {
                for part in ranks.ranks.chunks(ROWS_AT_ONCE) {
                    let part = PhaseRanks {
                        ranks: part.to_vec(),
                        ..*ranks
                    };
                    self.saying.say(&ToCoordinator::Event(Event::Ranks(part)));
                }
            }
            event => self.saying.say(&ToCoordinator::Event(event.clone())),
        }
    }

    fn interval(&mut self, interval: &Interval) {
        let message = message::interval(interval, &mut self.buffer);
        self.saying.push(&self.saying.out.control, message);
    }

    fn slow_requests(&mut self, requests: &[SlowRequest]) {
        self.saying.say(&ToCoordinator::Slow(requests.to_vec()));
    }
}

/// What the coordinator wants, and what came of it.
struct AgentOrders {
    saying: Saying,
    orders: Receiver<Order>,
    op_log: Option<Arc<Relay>>,
}

impl Orders for AgentOrders {
    fn next(&mut self) -> Option<Order> {
        // Ends when the network lets go of the other end: at the latest when the coordinator is lost.
        self.orders.recv().ok()
    }

    fn calibrated(&mut self, outcome: Result<Calibration, RunError>) {
        let outcome = outcome.map_err(|e| problem(&e));
        self.saying.say(&ToCoordinator::Calibrated(outcome));
    }

    fn phase_done(&mut self, phase: usize, outcome: Result<PhaseSummary, RunError>) {
        if let Some(log) = &self.op_log {
            log.flush(&self.saying.dead);
        }
        let outcome = match outcome {
            Ok(summary) => Ok(Part {
                at_ns: summary.at_ns,
                drained_ns: summary.drained_ns,
                end: summary.end,
            }),
            Err(error) => Err(problem(&error)),
        };
        self.saying.say_last(&ToCoordinator::PhaseDone {
            phase: u16::try_from(phase).unwrap_or(u16::MAX),
            outcome,
            dropped: self.op_log.as_ref().map_or(0, |log| log.dropped()),
        });
    }
}

/// A run error as it travels.
fn problem(error: &RunError) -> Problem {
    Problem {
        message: error.to_string(),
        exit_code: error.exit_code(),
    }
}

/// The thread that sends the operation log.
struct Relay {
    dropped: Arc<AtomicU64>,
    /// Flushes asked for and done.
    flush: Mutex<(u64, u64)>,
    flushed: Condvar,
}

impl Relay {
    fn run(&self, batches: &Receiver<Batch>, saying: &Saying) {
        // Flushes that were asked for before the channel was looked at.
        let mut asked = 0;
        loop {
            let pause = match self.answered() < asked {
                true => Duration::ZERO,
                false => LOOK,
            };
            match batches.recv_timeout(pause) {
                Ok(batch) => {
                    if !saying.push(&saying.out.ops, message::ops(&batch)) {
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
        self.flush.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> u64 {
        self.state().0
    }

    fn answered(&self) -> u64 {
        self.state().1
    }

    /// Nothing is left of what was logged before flush number `asked` was asked for. Not simply of the last one:
    /// that may have been asked for, and something logged before, since the channel was found empty.
    fn answer(&self, asked: u64) {
        self.state().1 = asked;
        self.flushed.notify_all();
    }

    /// Waits until everything that was logged is on its way. Nothing may be logged meanwhile.
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

    use super::Relay;

    #[test]
    fn a_flush_that_is_asked_for_after_the_look_waits_for_the_next_one() {
        let relay = Relay {
            dropped: Arc::default(),
            flush: Mutex::default(),
            flushed: Condvar::new(),
        };
        relay.state().0 = 1;
        let before_the_look = relay.asked();
        // The channel is found empty; then rows are logged, and the end of their phase asks for a flush.
        relay.state().0 = 2;
        relay.answer(before_the_look);
        assert!(relay.answered() < relay.asked());
        relay.answer(relay.asked());
        assert_eq!(relay.answered(), 2);
    }
}
