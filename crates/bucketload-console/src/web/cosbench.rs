//! The text interface of COSBench's controller, which its `cli.sh` and scripts of others use: paths,
//! parameters and answers as COSBench 0.4.2 has them (spec of COSBench, section 6.5). Refusals have status
//! 200, as there. Beyond COSBench, query and form may hold the options of a submission; one that may not be
//! asked for is refused.

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

use super::actions::Received;
use super::guard::plain;
use super::{Answer, Console};
use crate::auth::Who;
use crate::queue::{Job, JobId};

/// Parameters of COSBench's requests; user and password were looked at before.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Parameters {
    id: Option<String>,
}

/// Browsers would need a form of ours, which there is not.
fn meant(who: &Who) -> Result<(), Response> {
    if who.means(None) {
        Ok(())
    } else {
        Err(plain(
            StatusCode::FORBIDDEN,
            "this interface is for programs; use the pages",
        ))
    }
}

pub(super) async fn submit(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Who>,
    Query(query): Query<Vec<(String, String)>>,
    parts: Multipart,
) -> Answer {
    meant(&who)?;
    let mut received = Received::read(parts, "config")
        .await
        .map_err(|e| plain(e.status(), &e.body_text()))?;
    received.fields.extend(query);
    // Who submits was looked at before.
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

/// The date as Java prints it, in UTC.
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
    let agents = console.config.fleet.standings();
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
            .and_then(|live| live.with(|course| course.current_name()))
            .unwrap_or_else(|| "None".to_owned());
        let _ = writeln!(text, "{}\t{stage}", line(job));
    }
    let _ = write!(text, "Total: {} active workloads", active.len());
    plain(StatusCode::OK, &text)
}

/// The job that query or form name.
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
    Extension(who): Extension<Who>,
    Query(query): Query<Parameters>,
    form: Result<Form<Parameters>, FormRejection>,
) -> Answer {
    meant(&who)?;
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
) -> Answer {
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
