//! Server-sent events: changes of the queue, and the progress of a run.
//!
//! One task per stream waits for changes and sends the latest state; at most one message waits for a browser. A slow
//! browser gets fewer states, never older ones, and costs no memory. The points of the shown phase are kept here, at most
//! 360, and drawn for each message.

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
use super::live_page::Layout;
use crate::auth::Caller;
use crate::live::LiveRun;
use crate::monitor::RunMonitor;
use crate::monitor::view::{PhaseState, RunView, SeriesView};
use crate::queue::JobId;
use crate::receiver_stream::ReceiverStream;

/// Minimum time between two messages of a kind.
const MIN_INTERVAL: Duration = Duration::from_millis(250);
/// A browser that accepts no data for this long is dropped.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum time between two messages about a run whose bins are wide.
const MAX_INTERVAL: Duration = Duration::from_secs(10);

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
    /// Whether to leave out phases, table and messages.
    #[serde(default)]
    compact: bool,
}

impl StreamQuery {
    const fn layout(&self) -> Layout {
        Layout {
            compact: self.compact,
        }
    }
}

/// The latest state of a run.
#[derive(Debug, Serialize)]
struct Live {
    job: String,
    /// The rendered part of the page.
    html: String,
    /// Number of points in the charts.
    points: usize,
    /// What a screen reader announces when it changes.
    spoken: String,
}

impl Live {
    fn new(
        console: &Console,
        job: JobId,
        run: &RunView,
        series: &SeriesView,
        layout: Layout,
    ) -> Result<Self, String> {
        let job = job.to_string();
        let signs: Vec<&str> = run.signs.iter().map(|sign| sign.name.as_str()).collect();
        let spoken = run.phases.get(run.current).map(|phase| {
            let state = match phase.state {
                PhaseState::Waiting => "waiting",
                PhaseState::Running => "running",
                PhaseState::Done => "done",
            };
            let text = format!("Workload {job}, phase {} {state}", phase.name);
            match signs.is_empty() {
                true => text,
                false => format!("{text}; {}", signs.join(", ")),
            }
        });
        Ok(Self {
            html: console.live_part(&job, run, series, layout)?,
            points: series.points.len(),
            spoken: spoken.unwrap_or_default(),
            job,
        })
    }
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
    let mut series = SeriesView::default();
    let mut drawn = String::new();
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
                let run = live.with(|monitor| {
                    extend(&mut series, sent.next(monitor, wanted.phase));
                    monitor.run()
                });
                if let Some(run) = run {
                    let live = Live::new(console, live.id, &run, &series, wanted.layout());
                    let live = live.map_err(|_| StreamClosed)?;
                    // The run directory is read more often than it grows.
                    if live.html != drawn {
                        send(tx, "live", &live).await?;
                        drawn = live.html;
                    }
                }
            }
            // Wide bins change slowly.
            let pause = Duration::from_secs_f64(series.width_s / 4.0);
            tokio::time::sleep(pause.clamp(MIN_INTERVAL, MAX_INTERVAL)).await;
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

/// Appends new points to the held ones, or replaces these.
fn extend(held: &mut SeriesView, new: SeriesView) {
    if new.from == 0 || new.phase != held.phase {
        *held = new;
        return;
    }
    held.classes = new.classes;
    held.points.truncate(new.from);
    held.points.extend(new.points);
}

/// The points of a phase that a stream has drawn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentPoints {
    phase: usize,
    width_ns: u64,
    points: usize,
}

impl SentPoints {
    /// Returns the points that the stream lacks. The last point it has may have grown and is returned again.
    pub(crate) fn next(&mut self, monitor: &RunMonitor, phase: Option<usize>) -> SeriesView {
        let phase = phase.unwrap_or_else(|| monitor.shown());
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
