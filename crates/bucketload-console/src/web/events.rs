//! Server-sent events: changes of the queue, and the progress of a run.
//!
//! One task per stream waits for changes and sends the latest state; at most one message waits for a browser. A slow
//! browser gets fewer states, never older ones, and costs no memory. Points that a browser already has are not sent
//! again, unless the bins have become wider.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};

use super::Console;
use super::guard::plain;
use crate::auth::Caller;
use crate::live::LiveRun;
use crate::monitor::RunMonitor;
use crate::monitor::view::{RunView, SeriesView};
use crate::queue::JobId;
use crate::receiver_stream::ReceiverStream;

/// Minimum time between two messages of a kind.
const MIN_INTERVAL: Duration = Duration::from_millis(250);
/// A browser that accepts no data for this long is dropped.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// The data that a page asks for.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct StreamQuery {
    /// The job whose run is sent; the running job if absent.
    job: Option<String>,
    /// The phase whose points are sent; the current phase if absent.
    phase: Option<usize>,
    /// Whether to send the lists of the overview.
    #[serde(default)]
    lists: bool,
    /// Whether to send only the table of agents.
    #[serde(default)]
    agents: bool,
}

/// The latest state of a run.
#[derive(Debug, Serialize)]
struct Live<'a> {
    job: String,
    run: RunView,
    series: &'a SeriesView,
}

/// The rendered table of agents.
#[derive(Debug, Serialize)]
struct Agents {
    html: String,
}

/// The rendered lists of the overview.
#[derive(Debug, Serialize)]
struct Lists {
    queue: String,
    history: String,
}

pub(super) async fn stream(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    Query(wanted): Query<StreamQuery>,
) -> Response {
    let Ok(permit) = Arc::clone(&console.streams).try_acquire_owned() else {
        return plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many pages are open; close some",
        );
    };
    let (tx, rx) = mpsc::channel(1);
    tokio::spawn(async move {
        let _permit = permit;
        let csrf = who.csrf().to_owned();
        // Ends when the browser disconnects or the controller stops.
        let _ = if wanted.agents {
            stream_agents(&console, &tx).await
        } else {
            stream_run(&console, &csrf, &wanted, &tx).await
        };
    });
    Sse::new(ReceiverStream(rx))
        .keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
        .into_response()
}

type Sender = mpsc::Sender<Result<Event, Infallible>>;

/// The stream has ended.
struct StreamClosed;

async fn send(tx: &Sender, name: &str, data: &impl Serialize) -> Result<(), StreamClosed> {
    let event = Event::default()
        .event(name)
        .json_data(data)
        .map_err(|_| StreamClosed)?;
    match tokio::time::timeout(SEND_TIMEOUT, tx.send(Ok(event))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(StreamClosed),
    }
}

/// Sends the agents' status now and after each round of probes.
async fn stream_agents(console: &Arc<Console>, tx: &Sender) -> Result<(), StreamClosed> {
    let mut changes = console.config.fleet.watch();
    let mut stopping = console.controller.stopping();
    loop {
        changes.borrow_and_update();
        let html = console.fleet_part().map_err(|_| StreamClosed)?;
        send(tx, "agents", &Agents { html }).await?;
        tokio::time::sleep(MIN_INTERVAL).await;
        tokio::select! {
            () = tx.closed() => return Err(StreamClosed),
            _ = stopping.wait_for(|stop| *stop) => return Err(StreamClosed),
            changed = changes.changed() => changed.map_err(|_| StreamClosed)?,
        }
    }
}

async fn stream_run(
    console: &Arc<Console>,
    csrf: &str,
    wanted: &StreamQuery,
    tx: &Sender,
) -> Result<(), StreamClosed> {
    let mut queue = console.controller.watch();
    let mut stopping = console.controller.stopping();
    let asked: Option<JobId> = wanted.job.as_deref().and_then(|id| id.parse().ok());
    let mut shown: Option<(Arc<LiveRun>, watch::Receiver<u64>, SentPoints)> = None;
    let mut state = None;
    loop {
        queue.borrow_and_update();
        let (id, now) = console.controller.with_queue(|queue| {
            let id = asked.or_else(|| queue.running().map(|job| job.id));
            let job = id.and_then(|id| queue.get(id));
            (
                id,
                job.map(|job| (job.id.to_string(), job.state.name(), job.cancelling)),
            )
        });
        if state != now {
            send(tx, "state", &now).await?;
            state = now;
        }
        if wanted.lists
            && let Ok((queue, history)) = console.overview_parts(csrf)
        {
            send(tx, "lists", &Lists { queue, history }).await?;
        }
        let live = id.and_then(|id| console.controller.live(id));
        if live.as_ref().map(|live| live.id) != shown.as_ref().map(|(live, ..)| live.id) {
            shown = live.map(|live| {
                let changes = live.watch();
                (live, changes, SentPoints::default())
            });
        }
        // Sends the run until the queue changes.
        loop {
            if let Some((live, changes, sent)) = &mut shown {
                changes.borrow_and_update();
                let message = live.with(|monitor| {
                    let series = sent.next(monitor, wanted.phase);
                    (monitor.run(), series)
                });
                if let Some((run, series)) = message {
                    let job = live.id.to_string();
                    let live = Live {
                        job,
                        run,
                        series: &series,
                    };
                    send(tx, "live", &live).await?;
                }
            }
            tokio::time::sleep(MIN_INTERVAL).await;
            tokio::select! {
                () = tx.closed() => return Err(StreamClosed),
                _ = stopping.wait_for(|stop| *stop) => return Err(StreamClosed),
                changed = queue.changed() => {
                    changed.map_err(|_| StreamClosed)?;
                    break;
                }
                () = changed(&mut shown) => {}
            }
        }
    }
}

/// Waits for the next change of the run; forever without a run.
async fn changed(shown: &mut Option<(Arc<LiveRun>, watch::Receiver<u64>, SentPoints)>) {
    if let Some((_, changes, _)) = shown
        && changes.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// The points of a phase that a browser has received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentPoints {
    phase: usize,
    width_ns: u64,
    points: usize,
}

impl SentPoints {
    /// Returns the points that the browser lacks. The last point it has may have grown and is sent again.
    pub(crate) fn next(&mut self, monitor: &RunMonitor, phase: Option<usize>) -> SeriesView {
        let phase = phase.unwrap_or_else(|| monitor.current());
        if self.phase != phase {
            *self = Self::default();
        }
        let series = monitor.series(phase, self.points.saturating_sub(1), self.width_ns);
        *self = Self {
            phase,
            width_ns: (series.width_s * 1e9).round() as u64,
            points: series.from + series.points.len(),
        };
        series
    }
}
