//! JSON for programs: `bucketload submit`, `info`, `cancel` and `top --controller` use it, and others may.

use std::sync::Arc;

use axum::extract::{Multipart, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};

use super::actions::{SubmissionForm, places, status_of};
use super::{Console, PageResult};
use crate::agents::{self, AgentState};
use crate::auth::Caller;
use crate::monitor::view::View;
use crate::outcome::Figures;
use crate::queue::{Job, JobId};

/// Header with the CSRF token of a browser's session.
const CSRF: &str = "x-csrf-token";

/// A job for programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobInfo {
    /// Its id, such as `w3`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its state, a word of COSBench in lower case.
    pub state: String,
    /// Time of submission, milliseconds since 1970.
    pub submitted_ms: u64,
    /// When it started, milliseconds since 1970; 0 before.
    pub started_ms: u64,
    /// When it ended, milliseconds since 1970; 0 before.
    pub ended_ms: u64,
    /// Why it ended this way.
    pub message: String,
    /// The verdict of its run.
    pub verdict: Option<String>,
    /// The figures of its run, once there is a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// Whether it has been cancelled but is still running.
    pub cancelling: bool,
    /// Position in the queue, from 1; 0 if it is not waiting.
    pub place: usize,
    /// The options of the submission.
    pub options: Vec<(String, String)>,
    /// Remarks of the check on the accepted workload.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl JobInfo {
    pub(super) fn new(job: &Job, place: usize) -> Self {
        Self {
            id: job.id.to_string(),
            name: job.name.clone(),
            state: job.state.name().to_owned(),
            submitted_ms: job.submitted_ms,
            started_ms: job.started_ms,
            ended_ms: job.ended_ms,
            message: job.message.clone(),
            verdict: job.verdict.clone(),
            figures: job.figures.clone(),
            cancelling: job.cancelling,
            place,
            options: job.options.pairs().to_vec(),
            notes: job.notes.clone(),
        }
    }
}

/// The current run of a controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveInfo {
    /// The job, if there is one.
    pub job: Option<String>,
    /// Its run, once its directory exists.
    pub view: Option<View>,
    /// Its agents.
    pub agents: Vec<AgentState>,
    /// Number of waiting jobs.
    pub waiting: usize,
}

#[derive(Debug, Serialize)]
struct Problem<'a> {
    error: &'a str,
}

fn problem(status: StatusCode, text: &str) -> Response {
    (status, Json(Problem { error: text })).into_response()
}

fn id_of(text: &str) -> Result<JobId, Response> {
    text.parse()
        .map_err(|e: String| problem(StatusCode::NOT_FOUND, &e))
}

fn require_csrf(who: &Caller, headers: &HeaderMap) -> Result<(), Response> {
    let given = headers.get(CSRF).and_then(|value| value.to_str().ok());
    if who.allows_change(given) {
        Ok(())
    } else {
        Err(problem(
            StatusCode::FORBIDDEN,
            "browsers must send the CSRF token of their session in the header X-CSRF-Token",
        ))
    }
}

/// Lists the running job, waiting jobs in order, and ended jobs, latest first.
pub(super) async fn list(State(console): State<Arc<Console>>) -> Response {
    let jobs: Vec<JobInfo> = console.controller.with_queue(|queue| {
        let running = queue.running().into_iter().map(|job| JobInfo::new(job, 0));
        let waiting = queue
            .waiting()
            .zip(1..)
            .map(|(job, n)| JobInfo::new(job, n));
        let over = queue.history().map(|job| JobInfo::new(job, 0));
        running.chain(waiting).chain(over).collect()
    });
    Json(jobs).into_response()
}

fn info_of(console: &Console, id: JobId) -> PageResult {
    let info = console.controller.with_queue(|queue| {
        let place = queue.waiting().position(|job| job.id == id);
        queue
            .get(id)
            .map(|job| JobInfo::new(job, place.map_or(0, |at| at + 1)))
    });
    match info {
        Some(info) => Ok(Json(info).into_response()),
        None => Err(problem(
            StatusCode::NOT_FOUND,
            &format!("there is no workload {id}"),
        )),
    }
}

pub(super) async fn info(
    State(console): State<Arc<Console>>,
    Path(id): Path<String>,
) -> PageResult {
    info_of(&console, id_of(&id)?)
}

pub(super) async fn submit(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    headers: HeaderMap,
    parts: Multipart,
) -> PageResult {
    require_csrf(&who, &headers)?;
    let received = SubmissionForm::read(parts, "file")
        .await
        .map_err(|e| problem(e.status(), &e.body_text()))?;
    let (source, options) = received
        .submission()
        .map_err(|e| problem(StatusCode::UNPROCESSABLE_ENTITY, &e))?;
    match console.controller.submit(source, options).await {
        Ok(id) => info_of(&console, id),
        Err(e) => Err(problem(status_of(&e), &e.to_string())),
    }
}

pub(super) async fn cancel(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> PageResult {
    require_csrf(&who, &headers)?;
    let id = id_of(&id)?;
    match console.controller.cancel(id) {
        Ok(()) => info_of(&console, id),
        Err(e) => Err(problem(StatusCode::CONFLICT, &e.to_string())),
    }
}

/// Query of a move in the queue.
#[derive(Debug, Deserialize)]
pub(super) struct MoveQuery {
    #[serde(default)]
    to: String,
}

pub(super) async fn shift(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    headers: HeaderMap,
    Path(id): Path<String>,
    Query(query): Query<MoveQuery>,
) -> PageResult {
    require_csrf(&who, &headers)?;
    let id = id_of(&id)?;
    let Some(places) = places(&query.to) else {
        return Err(problem(
            StatusCode::UNPROCESSABLE_ENTITY,
            "?to= is up, down, first or last",
        ));
    };
    match console.controller.shift(id, places) {
        Ok(()) => info_of(&console, id),
        Err(e) => Err(problem(StatusCode::CONFLICT, &e.to_string())),
    }
}

/// Lists the agents that runs use, with their health.
pub(super) async fn agents(State(console): State<Arc<Console>>) -> Response {
    Json(console.config.fleet.statuses()).into_response()
}

/// Query of [`live`].
#[derive(Debug, Deserialize)]
pub(super) struct LiveQuery {
    job: Option<String>,
    phase: Option<usize>,
}

/// Returns the current run, or the run of `?job=`, as far as it is known.
pub(super) async fn live(
    State(console): State<Arc<Console>>,
    Query(which): Query<LiveQuery>,
) -> Response {
    let asked = which.job.as_deref().and_then(|id| id.parse().ok());
    let (id, waiting) = console.controller.with_queue(|queue| {
        (
            asked.or_else(|| queue.running().map(|job| job.id)),
            queue.waiting().count(),
        )
    });
    let view = id
        .and_then(|id| console.controller.live(id))
        .and_then(|live| live.with(|monitor| monitor.view(which.phase)));
    let agents = id.map(|id| agents::of_run(&console.controller.run_dir(id)));
    Json(LiveInfo {
        job: id.map(|id| id.to_string()),
        view,
        agents: agents.unwrap_or_default(),
        waiting,
    })
    .into_response()
}
