//! Server-sent events: the queue as it changes, and a run as it goes on.
//!
//! A task per stream waits for changes and sends the latest state; at most one message waits for a browser.
//! Whoever reads slowly gets fewer states, never older ones, and costs no memory. Points that a browser has
//! are not sent again, unless bins became wider.

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
use crate::auth::Who;
use crate::course::Course;
use crate::course::view::{RunView, SeriesView};
use crate::feed::Feed;
use crate::live::LiveRun;
use crate::queue::JobId;

/// Shortest time between two messages of a kind.
const PACE: Duration = Duration::from_millis(250);
/// A browser that takes nothing for this long is given up.
const STUCK: Duration = Duration::from_secs(60);

/// What a page wants to know.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Wanted {
    /// The run of this job; the one that runs unless given.
    job: Option<String>,
    /// Points of this phase; of the current one unless given.
    phase: Option<usize>,
    /// Whether the lists of the overview are wanted.
    #[serde(default)]
    lists: bool,
    /// Whether only the table of the agents is wanted.
    #[serde(default)]
    agents: bool,
}

/// The latest of a run.
#[derive(Debug, Serialize)]
struct Live<'a> {
    job: String,
    run: RunView,
    series: &'a SeriesView,
}

/// The table of the agents, rendered.
#[derive(Debug, Serialize)]
struct Agents {
    html: String,
}

/// The lists of the overview, rendered.
#[derive(Debug, Serialize)]
struct Lists {
    queue: String,
    history: String,
}

pub(super) async fn stream(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Who>,
    Query(wanted): Query<Wanted>,
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
        // It ends when the browser has gone or the controller ends.
        let _ = if wanted.agents {
            tell_agents(&console, &tx).await
        } else {
            tell(&console, &csrf, &wanted, &tx).await
        };
    });
    Sse::new(Feed(rx))
        .keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
        .into_response()
}

type Sender = mpsc::Sender<Result<Event, Infallible>>;

/// The stream is over.
struct Gone;

async fn send(tx: &Sender, name: &str, data: &impl Serialize) -> Result<(), Gone> {
    let event = Event::default()
        .event(name)
        .json_data(data)
        .map_err(|_| Gone)?;
    match tokio::time::timeout(STUCK, tx.send(Ok(event))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Gone),
    }
}

/// The agents as they are, and whenever they were asked again.
async fn tell_agents(console: &Arc<Console>, tx: &Sender) -> Result<(), Gone> {
    let mut changes = console.config.fleet.watch();
    let mut stopping = console.controller.stopping();
    loop {
        changes.borrow_and_update();
        let html = console.fleet_part().map_err(|_| Gone)?;
        send(tx, "agents", &Agents { html }).await?;
        tokio::time::sleep(PACE).await;
        tokio::select! {
            () = tx.closed() => return Err(Gone),
            _ = stopping.wait_for(|stop| *stop) => return Err(Gone),
            changed = changes.changed() => changed.map_err(|_| Gone)?,
        }
    }
}

async fn tell(
    console: &Arc<Console>,
    csrf: &str,
    wanted: &Wanted,
    tx: &Sender,
) -> Result<(), Gone> {
    let mut queue = console.controller.watch();
    let mut stopping = console.controller.stopping();
    let asked: Option<JobId> = wanted.job.as_deref().and_then(|id| id.parse().ok());
    let mut shown: Option<(Arc<LiveRun>, watch::Receiver<u64>, Sent)> = None;
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
                (live, changes, Sent::default())
            });
        }
        // Until the queue changes: the run.
        loop {
            if let Some((live, changes, sent)) = &mut shown {
                changes.borrow_and_update();
                let message = live.with(|course| {
                    let series = sent.next(course, wanted.phase);
                    (course.run(), series)
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
            tokio::time::sleep(PACE).await;
            tokio::select! {
                () = tx.closed() => return Err(Gone),
                _ = stopping.wait_for(|stop| *stop) => return Err(Gone),
                changed = queue.changed() => {
                    changed.map_err(|_| Gone)?;
                    break;
                }
                () = changed(&mut shown) => {}
            }
        }
    }
}

/// Waits for the next change of the run; for ever when there is none.
async fn changed(shown: &mut Option<(Arc<LiveRun>, watch::Receiver<u64>, Sent)>) {
    if let Some((_, changes, _)) = shown
        && changes.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// What a browser has got of a phase.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    phase: usize,
    width_ns: u64,
    points: usize,
}

impl Sent {
    /// The points that the browser lacks. The last one it has may have grown and is sent again.
    pub(crate) fn next(&mut self, course: &Course, phase: Option<usize>) -> SeriesView {
        let phase = phase.unwrap_or_else(|| course.current());
        if self.phase != phase {
            *self = Self::default();
        }
        let series = course.series(phase, self.points.saturating_sub(1), self.width_ns);
        *self = Self {
            phase,
            width_ns: (series.width_s * 1e9).round() as u64,
            points: series.from + series.points.len(),
        };
        series
    }
}
