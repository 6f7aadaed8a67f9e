//! The coordinator's network thread, and what each agent says on its way to the collector.

use std::future::Future;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bucketload_core::agent::AgentState;
use bucketload_run::now_ns;
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tonic::Streaming;

use super::oplog::Rows;
use super::roster::Roster;
use crate::error::{AgentsError, described};
use crate::message::{Frame, ToAgent, ToCoordinator, control, parse};
use crate::service::Out;

/// Exchanges of clock readings at once, before a run begins.
const FIRST_EXCHANGES: usize = 16;
/// How often an agent is asked for a sign of life, unless its time-out is short.
const PING: Duration = Duration::from_millis(500);

/// A runtime on a thread of its own, which lives as long as this.
#[derive(Debug)]
pub(crate) struct Network {
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Network {
    pub(crate) fn start() -> Result<Self, AgentsError> {
        let broken = |e: std::io::Error| AgentsError::aborted(format!("network thread: {e}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(broken)?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("agents-net".to_owned())
            .spawn(move || {
                // A sender that is gone ends it too.
                let _ = runtime.block_on(ended);
                runtime.shutdown_background();
            })
            .map_err(broken)?;
        Ok(Self {
            handle,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Runs `body` beside everything else of the network.
    pub(crate) fn spawn(&self, body: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(body);
    }

    /// Waits for `body` on the calling thread, which is none of the network's.
    pub(crate) fn wait<T>(&self, body: impl Future<Output = T>) -> T {
        self.handle.block_on(body)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.end.take());
        // It has nothing to wait for.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What an agent said, for the collector.
#[derive(Debug)]
pub(crate) enum Inbound {
    Control(u32, ToCoordinator),
    Interval(u32, Bytes),
    /// It was lost; the roster knows why.
    Lost(u32),
}

/// An agent's side of the network.
pub(crate) struct Listener {
    pub(crate) rank: u32,
    pub(crate) out: Out,
    pub(crate) incoming: Streaming<Bytes>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) inbound: mpsc::Sender<Inbound>,
    pub(crate) rows: Rows,
    pub(crate) timeout: Duration,
}

impl Listener {
    /// Passes on what the agent says until it is lost or the run is over.
    pub(crate) async fn listen(mut self) {
        let reason = self.until_lost().await;
        let finished = self
            .roster
            .change(self.rank, |record| record.state == AgentState::Finished);
        if finished == Some(true) {
            return;
        }
        self.roster.failed(self.rank, AgentState::Lost, &reason);
        // A collector that is gone need not know.
        let _ = self.inbound.send(Inbound::Lost(self.rank)).await;
    }

    async fn until_lost(&mut self) -> String {
        loop {
            let next = tokio::time::timeout(self.timeout, self.incoming.message()).await;
            let frame = match next {
                Err(_) => return format!("it was silent for {} s", self.timeout.as_secs_f64()),
                Ok(Ok(None)) => return "it closed the connection".to_owned(),
                Ok(Err(status)) => return format!("the connection broke: {}", described(&status)),
                Ok(Ok(Some(bytes))) => Frame::of(bytes),
            };
            self.roster.heard(self.rank);
            let passed = match frame {
                Some(Frame::Control(bytes)) => match parse(&bytes) {
                    Ok(ToCoordinator::Pong {
                        t0,
                        t1,
                        t2,
                        wall_ns,
                    }) => {
                        let known = self.roster.exchanged(self.rank, (t0, t1, t2), wall_ns);
                        if known < FIRST_EXCHANGES {
                            ping(&self.out);
                        }
                        continue;
                    }
                    Ok(message) => Inbound::Control(self.rank, message),
                    Err(e) => return format!("it sent {e}"),
                },
                Some(Frame::Interval(bytes)) => Inbound::Interval(self.rank, bytes),
                Some(Frame::Ops(bytes)) => {
                    self.rows.pass(self.rank, bytes);
                    continue;
                }
                None => return "it sent something that is no message".to_owned(),
            };
            // Waits while the collector is behind; the agent then waits too, with bounded memory.
            if self.inbound.send(passed).await.is_err() {
                return "the run is over".to_owned();
            }
        }
    }
}

/// Asks an agent for a sign of life and for its clock.
pub(crate) fn ping(out: &Out) {
    // Where much is on its way already, the room left is for what must not be missed.
    if out.control.capacity() * 2 < out.control.max_capacity() {
        return;
    }
    let _ = out
        .control
        .try_send(control(&ToAgent::Ping { t0: now_ns() }));
}

/// Keeps asking all agents, until they are gone.
pub(crate) async fn keep_asking(peers: Vec<Out>, timeout: Duration) {
    let mut ticks = tokio::time::interval(PING.min(timeout / 4));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !peers.iter().all(|peer| peer.control.is_closed()) {
        ticks.tick().await;
        peers.iter().for_each(ping);
    }
}

/// Keeps `agents.json` up to date.
pub(crate) async fn keep_writing(roster: std::sync::Weak<Roster>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(roster) = roster.upgrade() else {
            return;
        };
        // A full disk is told by the run directory's own files.
        let _ = roster.write();
    }
}
