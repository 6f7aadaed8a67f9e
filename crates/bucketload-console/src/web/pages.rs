//! The pages.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use bucketload_workload::spec::{BUILTIN_WORKLOADS, WorkloadFile};
use minijinja::{Value, context};
use serde::{Deserialize, Serialize};

use super::api::JobInfo;
use super::guard::{plain, wants_page};
use super::lists::{self, HistoryQuery};
use super::{Console, PageResult, files};
use crate::agents;
use crate::auth::Caller;
use crate::options::{OPTIONS, OptionKind};
use crate::queue::{Job, JobId, JobState};

/// Number of ended jobs on the overview.
const RECENT: usize = 8;

/// A job as templates see it.
#[derive(Debug, Serialize)]
pub(super) struct JobRow {
    #[serde(flatten)]
    pub(super) info: JobInfo,
    file: Option<String>,
    pub(super) length_ms: u64,
    over: bool,
    /// The target of its run, or of its submission.
    pub(super) target: String,
    ops: String,
    p99: String,
}

impl JobRow {
    fn new(job: &Job, now_ms: u64) -> Self {
        let end_ms = match job.ended_ms {
            0 => now_ms,
            ended_ms => ended_ms,
        };
        let length_ms = match job.started_ms {
            0 => 0,
            started_ms => end_ms.saturating_sub(started_ms),
        };
        let figures = job.figures.clone().unwrap_or_default();
        let target = match figures.target.is_empty() {
            false => figures.target,
            true => {
                let options = job.options.pairs().iter();
                let mut named = options.filter(|(name, _)| name == "target");
                named
                    .next()
                    .map_or_else(|| "–".to_owned(), |(_, target)| target.clone())
            }
        };
        Self {
            info: JobInfo::new(job, 0),
            file: job.file.clone(),
            length_ms,
            over: job.state.is_over(),
            target,
            ops: match figures.headline.is_empty() {
                true => lists::ops(figures.ops_per_s),
                false => figures.headline,
            },
            p99: lists::p99(figures.p99_ns),
        }
    }

    /// The text in which the history searches.
    pub(super) fn searched(&self) -> String {
        let info = &self.info;
        let verdict = info.verdict.as_deref().unwrap_or_default();
        format!(
            "{} {} {} {verdict} {}",
            info.id, info.name, info.state, self.target
        )
    }
}

/// Whether a job's run has a result that can be compared: it completed.
fn is_comparable(job: &Job) -> bool {
    matches!(job.state, JobState::Finished | JobState::Failed) && job.verdict.is_some()
}

/// Converts a value for a template.
pub(super) fn v(value: &impl Serialize) -> Value {
    Value::from(minijinja::value::Serde(value))
}

impl Console {
    /// The values that every page needs.
    fn frame(&self, who: &Caller, active: &str) -> Value {
        context! {
            csrf => who.csrf(),
            active,
            closed => self.auth.is_closed(),
            version => env!("CARGO_PKG_VERSION"),
        }
    }

    /// Renders a page for `who`.
    pub(super) fn page(
        &self,
        status: StatusCode,
        template: &str,
        who: &Caller,
        active: &str,
        content: Value,
    ) -> Response {
        let context = context! { ..content, ..self.frame(who, active) };
        self.templates.page(status, template, context)
    }

    /// Renders a page with one message.
    pub(super) fn message(
        &self,
        status: StatusCode,
        who: &Caller,
        title: &str,
        text: &str,
    ) -> Response {
        let content = context! { title, text };
        self.page(status, "message.html", who, "", content)
    }

    /// Renders the table of agents, for the page and its updates.
    pub(super) fn fleet_part(&self) -> Result<String, String> {
        let content = context! { fleet => v(&self.config.fleet.statuses()) };
        self.templates.text("fleet.html", content)
    }

    /// The running workload, the waiting ones, and the latest ended ones.
    fn overview_rows(&self) -> (Option<JobRow>, Vec<JobRow>, Vec<JobRow>) {
        let now = self.controller.now_ms();
        let row = |job: &Job| JobRow::new(job, now);
        self.controller.with_queue(|queue| {
            (
                queue.running().map(row),
                queue.waiting().map(row).collect(),
                queue.history().take(RECENT).map(row).collect(),
            )
        })
    }

    /// Renders the queue and the latest jobs, for the overview and its updates.
    pub(super) fn overview_parts(&self, csrf: &str) -> Result<(String, String), String> {
        let (running, waiting, recent) = self.overview_rows();
        let queue = context! { csrf, running => v(&running), waiting => v(&waiting) };
        let history = context! { csrf, jobs => v(&recent), heads => v(&lists::plain_headings()), searched => "" };
        Ok((
            self.templates.text("queue.html", queue)?,
            self.templates.text("history_table.html", history)?,
        ))
    }
}

/// Parses a workload id.
pub(super) fn job_id(console: &Console, who: &Caller, text: &str) -> Result<JobId, Response> {
    text.parse().map_err(|e: String| {
        console.message(StatusCode::NOT_FOUND, who, "There is no such workload", &e)
    })
}

pub(super) async fn overview(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
) -> Response {
    let (running, waiting, recent) = console.overview_rows();
    let (ready, agents) = console.config.fleet.ready();
    let content = context! { running => v(&running), waiting => v(&waiting), jobs => v(&recent), heads => v(&lists::plain_headings()), searched => "", ready, agents };
    console.page(StatusCode::OK, "overview.html", &who, "overview", content)
}

pub(super) async fn history(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    Query(query): Query<HistoryQuery>,
) -> Response {
    let now = console.controller.now_ms();
    let jobs: Vec<JobRow> = console
        .controller
        .with_queue(|queue| queue.history().map(|job| JobRow::new(job, now)).collect());
    let jobs = query.apply(jobs);
    let tables = files::tables(&console.controller);
    let content = context! {
        jobs => v(&jobs),
        heads => v(&query.headings()),
        searched => query.q,
        tables => v(&tables),
    };
    console.page(StatusCode::OK, "history.html", &who, "history", content)
}

/// Query of [`cancel`].
#[derive(Debug, Deserialize)]
pub(super) struct CancelQuery {
    #[serde(default)]
    to: String,
}

/// Asks for confirmation before a workload is cancelled.
pub(super) async fn cancel(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    Path(id): Path<String>,
    Query(query): Query<CancelQuery>,
) -> PageResult {
    let id = job_id(&console, &who, &id)?;
    let now = console.controller.now_ms();
    let job = console
        .controller
        .with_queue(|queue| queue.get(id).map(|job| JobRow::new(job, now)));
    match job {
        Some(job) if !job.over => {
            let content = context! { job => v(&job), to => query.to };
            Ok(console.page(StatusCode::OK, "cancel.html", &who, "", content))
        }
        Some(_) => Ok(Redirect::to(&format!("/jobs/{id}")).into_response()),
        None => Err(no_such(&console, &who, id)),
    }
}

/// The response to a request about a workload that is not in the list.
fn no_such(console: &Console, who: &Caller, id: JobId) -> Response {
    console.message(
        StatusCode::NOT_FOUND,
        who,
        "There is no such workload",
        &format!("Workload {id} is not in the list."),
    )
}

pub(super) async fn job(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    Path(id): Path<String>,
) -> PageResult {
    let id = job_id(&console, &who, &id)?;
    let now = console.controller.now_ms();
    let Some((job, others)) = console.controller.with_queue(|queue| {
        let job = queue.get(id)?;
        let others = queue
            .history()
            .filter(|other| other.id != id && is_comparable(other));
        // Runs of the same workload first: the usual baseline is the one before.
        let (same, different): (Vec<&Job>, Vec<&Job>) =
            others.partition(|other| other.name == job.name);
        let before = same.iter().find(|other| other.ended_ms <= job.ended_ms);
        let baseline = before.or(same.first()).map(|other| other.id.to_string());
        let rows = |jobs: Vec<&Job>| -> Vec<JobRow> {
            let jobs = jobs.into_iter().take(50);
            jobs.map(|other| JobRow::new(other, now)).collect()
        };
        let others = is_comparable(job).then(|| (baseline, rows(same), rows(different)));
        Some((JobRow::new(job, now), others.unwrap_or_default()))
    }) else {
        return Err(no_such(&console, &who, id));
    };
    let run = console.controller.run_dir(id);
    let has_run = run.join("run.json").is_file();
    let outcome = match has_run && job.over {
        true => files::outcome(&console, id).await,
        false => Err(String::new()),
    };
    let (baseline, same, different) = others;
    let content = context! {
        job => v(&job),
        baseline,
        same => v(&same),
        different => v(&different),
        has_run,
        outcome => v(&outcome.as_ref().ok()),
        no_outcome => outcome.as_ref().err(),
        files => v(&files::available(&console.controller, id)),
        archive => v(&files::archived(&console.controller, id)),
        agents => v(&agents::of_run(&run)),
    };
    Ok(console.page(StatusCode::OK, "job.html", &who, "", content))
}

pub(super) async fn submit(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
) -> Response {
    submit_page(&console, &who, StatusCode::OK, &FormState::default())
}

/// What the submission form shows in addition to its empty fields.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FormState<'a> {
    /// Why a submission was refused.
    pub(super) refusal: &'a str,
    /// Another remark.
    pub(super) note: &'a str,
    /// The values entered before.
    pub(super) entered: &'a [(String, String)],
}

/// Renders the submission form.
pub(super) fn submit_page(
    console: &Console,
    who: &Caller,
    status: StatusCode,
    shown: &FormState<'_>,
) -> Response {
    #[derive(Serialize)]
    struct Field {
        name: &'static str,
        label: &'static str,
        example: &'static str,
        group: &'static str,
        flag: bool,
        many: bool,
        value: String,
    }

    let entered = shown.entered;
    let fields: Vec<Field> = OPTIONS
        .iter()
        .map(|row| {
            let values: Vec<&str> = entered
                .iter()
                .filter(|(name, _)| name == row.name)
                .map(|(_, value)| value.as_str())
                .collect();
            Field {
                name: row.name,
                label: row.label,
                example: row.example,
                group: row.group,
                flag: row.kind == OptionKind::Flag,
                many: row.kind == OptionKind::Many,
                value: values.join("\n"),
            }
        })
        .collect();
    let builtins: Vec<(&str, String)> = BUILTIN_WORKLOADS
        .iter()
        .map(|(name, _)| {
            let description = WorkloadFile::builtin(name)
                .ok()
                .and_then(|file| file.spec().description.clone());
            (*name, description.unwrap_or_default())
        })
        .collect();
    let entered_value = |name: &str| {
        entered
            .iter()
            .find(|(known, _)| known == name)
            .map_or("", |(_, value)| value.as_str())
            .to_owned()
    };
    let content = context! {
        refusal => shown.refusal,
        note => shown.note,
        fields => v(&fields),
        builtins => v(&builtins),
        builtin => entered_value("builtin"),
        rows => entered_value("text").lines().count().clamp(8, 24),
        text => entered_value("text"),
        roots => v(&console.config.roots),
    };
    console.page(status, "submit.html", who, "submit", content)
}

pub(super) async fn agents(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
) -> Response {
    let latest = console.controller.with_queue(|queue| {
        queue
            .running()
            .or_else(|| queue.history().find(|job| job.started_ms > 0))
            .map(|job| job.id)
    });
    let states = latest.map(|id| agents::of_run(&console.controller.run_dir(id)));
    let content = context! {
        job => latest.map(|id| id.to_string()),
        agents => v(&states.unwrap_or_default()),
        fleet => v(&console.config.fleet.statuses()),
    };
    console.page(StatusCode::OK, "agents.html", &who, "agents", content)
}

pub(super) async fn compare(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    Query(query): Query<Vec<(String, String)>>,
) -> Response {
    let now = console.controller.now_ms();
    let jobs: Vec<JobRow> = console.controller.with_queue(|queue| {
        queue
            .history()
            .filter(|job| is_comparable(job))
            .map(|job| JobRow::new(job, now))
            .collect()
    });
    // The latest run against the one before it of the same workload.
    let usual = jobs.iter().enumerate().find_map(|(i, b)| {
        let a = jobs[i + 1..].iter().find(|a| a.info.name == b.info.name)?;
        Some((a.info.id.clone(), b.info.id.clone()))
    });
    let chosen = files::ComparisonQuery::read(&query);
    let outcome = match &chosen {
        Ok(choice) if choice.is_empty() => None,
        Ok(choice) => Some(files::comparison_of(&console, choice, false).await),
        Err(e) => Some(Err(e.clone())),
    };
    let side = |name: &str| -> Vec<String> {
        match &usual {
            Some((a, b)) if query.is_empty() => {
                vec![if name == "a" { a.clone() } else { b.clone() }]
            }
            _ => query
                .iter()
                .filter(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
                .collect(),
        }
    };
    let frame = chosen
        .as_ref()
        .ok()
        .filter(|_| matches!(outcome, Some(Ok(_))))
        .map(files::ComparisonQuery::query);
    let (words, refusal) = match outcome {
        None => (None, None),
        Some(Ok(words)) => (Some(words), None),
        Some(Err(e)) => (None, Some(e)),
    };
    let content = context! {
        jobs => v(&jobs),
        a => side("a"),
        b => side("b"),
        differ => query.iter().any(|(name, value)| name == "differ" && !value.is_empty()),
        words,
        refusal,
        frame,
    };
    console.page(StatusCode::OK, "compare.html", &who, "compare", content)
}

pub(super) async fn login(
    State(console): State<Arc<Console>>,
    who: Option<Extension<Caller>>,
) -> Response {
    match who {
        // The caller is logged in already.
        Some(_) => Redirect::to("/").into_response(),
        None => login_page(&console, StatusCode::OK, ""),
    }
}

/// Renders the login form, with the reason if a login was refused.
pub(super) fn login_page(console: &Console, status: StatusCode, refusal: &str) -> Response {
    let content = context! { refusal, plain => console.config.is_overheard };
    console.page(status, "login.html", &Caller::Program, "login", content)
}

pub(super) async fn not_found(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    if wants_page(&headers) {
        console.message(
            StatusCode::NOT_FOUND,
            &who,
            "There is no such page",
            "Check the address.",
        )
    } else {
        plain(StatusCode::NOT_FOUND, "there is no such page")
    }
}
