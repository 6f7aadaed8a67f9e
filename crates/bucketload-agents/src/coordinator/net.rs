//! The coordinator's network thread, which passes the agents' messages to the collector.

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

use super::oplog::RowSender;
use super::roster::Roster;
use crate::error::{AgentsError, status_text};
use crate::message::{Frame, ToAgent, ToCoordinator, control, parse};
use crate::service::Outbox;

/// Clock exchanges in quick succession before a run begins.
const FIRST_EXCHANGES: usize = 16;
/// Ping interval, unless the time-out is short.
const PING: Duration = Duration::from_millis(500);

/// A runtime on its own thread, which ends when this is dropped.
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
                // A dropped sender ends it too.
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

    /// Runs `body` on the network thread.
    pub(crate) fn spawn(&self, body: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(body);
    }

    /// Waits for `body` on the calling thread, which must not be the network thread.
    pub(crate) fn wait<T>(&self, body: impl Future<Output = T>) -> T {
        self.handle.block_on(body)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A message of an agent to the collector.
#[derive(Debug)]
pub(crate) enum Inbound {
    Control(u32, ToCoordinator),
    Interval(u32, Bytes),
    /// The agent is lost; the roster has the reason.
    Lost(u32),
}

/// Receives the messages of one agent.
pub(crate) struct Listener {
    pub(crate) rank: u32,
    pub(crate) out: Outbox,
    pub(crate) incoming: Streaming<Bytes>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) inbound: mpsc::Sender<Inbound>,
    pub(crate) rows: RowSender,
    pub(crate) timeout: Duration,
}

impl Listener {
    /// Passes messages on until the agent is lost or the run is over.
    pub(crate) async fn listen(mut self) {
        let reason = self.until_lost().await;
        let finished = self
            .roster
            .change(self.rank, |record| record.state == AgentState::Finished);
        if finished == Some(true) {
            return;
        }
        self.roster.failed(self.rank, AgentState::Lost, &reason);
        // The collector may be gone already.
        let _ = self.inbound.send(Inbound::Lost(self.rank)).await;
    }

    async fn until_lost(&mut self) -> String {
        loop {
            let next = tokio::time::timeout(self.timeout, self.incoming.message()).await;
            let frame = match next {
                Err(_) => return format!("it was silent for {} s", self.timeout.as_secs_f64()),
                Ok(Ok(None)) => return "it closed the connection".to_owned(),
                Ok(Err(status)) => {
                    return format!("the connection broke: {}", status_text(&status));
                }
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
                None => return "it sent something that is not a message".to_owned(),
            };
            // Waits while the collector is behind; flow control then makes the agent wait too.
            if self.inbound.send(passed).await.is_err() {
                return "the run is over".to_owned();
            }
        }
    }
}

/// Asks an agent for a heartbeat and its clock.
pub(crate) fn ping(out: &Outbox) {
    // The second half of the queue is reserved for messages that must not be dropped.
    if out.control.capacity() * 2 < out.control.max_capacity() {
        return;
    }
    let _ = out
        .control
        .try_send(control(&ToAgent::Ping { t0: now_ns() }));
}

/// Pings all agents until they are gone.
pub(crate) async fn keep_pinging(peers: Vec<Outbox>, timeout: Duration) {
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
        // The writer of the other files reports a full disk.
        let _ = roster.write();
    }
}
