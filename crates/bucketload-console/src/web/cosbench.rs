//! The text interface of COSBench's controller, for its `cli.sh` and other scripts: paths, parameters and answers
//! of COSBench 0.4.2 (spec of COSBench, section 6.5). Refusals have status 200, as in COSBench. As an extension,
//! query and form may contain options of the submission; an option that is not allowed is refused.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Multipart, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use time::OffsetDateTime;
use time::macros::format_description;

use super::actions::SubmissionForm;
use super::guard::plain;
use super::{Console, PageResult};
use crate::auth::Caller;
use crate::queue::{Job, JobId};

/// Parameters of COSBench's requests; user and password have been checked before.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Parameters {
    id: Option<String>,
}

/// Rejects browsers, because this interface has no form with a CSRF token.
fn require_csrf(who: &Caller) -> Result<(), Response> {
    if who.allows_change(None) {
        Ok(())
    } else {
        Err(plain(
            StatusCode::FORBIDDEN,
            "this interface is for programs; in a browser, use the pages",
        ))
    }
}

pub(super) async fn submit(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    Query(query): Query<Vec<(String, String)>>,
    parts: Multipart,
) -> PageResult {
    require_csrf(&who)?;
    let mut received = SubmissionForm::read(parts, "config")
        .await
        .map_err(|e| plain(e.status(), &e.body_text()))?;
    received.fields.extend(query);
    // The credentials have been checked before.
    received
        .fields
        .retain(|(name, _)| !matches!(name.as_str(), "username" | "password"));
    let accepted = match received.submission() {
        Ok((source, options)) => console
            .controller
            .submit(source, options)
            .await
            .map_err(|e| e.to_string()),
        Err(e) => Err(e),
    };
    let text = accepted.map_or_else(|e| e, |id| format!("Accepted with ID: {id}"));
    Ok(plain(StatusCode::OK, &text))
}

/// Formats a date as Java does, in UTC.
fn date(ms: u64) -> String {
    let format = format_description!(
        "[weekday repr:short] [month repr:short] [day] [hour]:[minute]:[second] UTC [year]"
    );
    i64::try_from(ms / 1000)
        .ok()
        .and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok())
        .and_then(|at| at.format(&format).ok())
        .unwrap_or_default()
}

fn line(job: &Job) -> String {
    format!(
        "{}\t{}\t{}",
        job.id,
        date(job.submitted_ms),
        job.state.name().to_ascii_uppercase()
    )
}

pub(super) async fn index(State(console): State<Arc<Console>>) -> Response {
    let mut text = "Drivers:\n".to_owned();
    let agents = console.config.fleet.statuses();
    // Writing to a string cannot fail.
    for (n, agent) in agents.iter().enumerate() {
        let _ = writeln!(text, "driver{}\t{}", n + 1, agent.address);
    }
    let _ = writeln!(text, "Total: {} drivers\n\nActive Workloads:", agents.len());
    let active: Vec<(Job, bool)> = console.controller.with_queue(|queue| {
        let running = queue.running().into_iter().map(|job| (job.clone(), true));
        running
            .chain(queue.waiting().map(|job| (job.clone(), false)))
            .collect()
    });
    for (job, running) in &active {
        let stage = running
            .then(|| console.controller.live(job.id))
            .flatten()
            .and_then(|live| live.with(|monitor| monitor.current_name()))
            .unwrap_or_else(|| "None".to_owned());
        let _ = writeln!(text, "{}\t{stage}", line(job));
    }
    let _ = write!(text, "Total: {} active workloads", active.len());
    plain(StatusCode::OK, &text)
}

/// The job named in the query or the form.
fn named(
    query: Parameters,
    form: Result<Form<Parameters>, FormRejection>,
) -> Result<JobId, Response> {
    let id = query.id.or_else(|| form.ok().and_then(|form| form.0.id));
    id.unwrap_or_default()
        .parse()
        .map_err(|e: String| plain(StatusCode::OK, &e))
}

fn shown(console: &Console, id: JobId) -> Response {
    let text = console
        .controller
        .with_queue(|queue| queue.get(id).map(line));
    let text = text.unwrap_or_else(|| format!("there is no workload {id}"));
    plain(StatusCode::OK, &text)
}

pub(super) async fn cancel(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    Query(query): Query<Parameters>,
    form: Result<Form<Parameters>, FormRejection>,
) -> PageResult {
    require_csrf(&who)?;
    let id = named(query, form)?;
    match console.controller.cancel(id) {
        Ok(()) => Ok(shown(&console, id)),
        Err(e) => Err(plain(StatusCode::OK, &e.to_string())),
    }
}

pub(super) async fn workload(
    State(console): State<Arc<Console>>,
    Query(query): Query<Parameters>,
    form: Result<Form<Parameters>, FormRejection>,
) -> PageResult {
    Ok(shown(&console, named(query, form)?))
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates_are_those_of_java() {
        assert_eq!(
            super::date(1_769_903_999_000),
            "Sat Jan 31 23:59:59 UTC 2026"
        );
    }
}
