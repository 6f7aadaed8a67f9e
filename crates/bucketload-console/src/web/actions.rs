//! Handlers of the pages' forms.

use std::sync::Arc;

use axum::Extension;
use axum::extract::multipart::MultipartError;
use axum::extract::{Form, Multipart, Path, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::pages::{FormState, job_id, login_page, submit_page};
use super::{Console, PageResult};
use crate::auth::Caller;
use crate::controller::{Source, SubmitError};
use crate::options::RunOptions;
use crate::queue::{JobId, QueueError};

/// The form of actions without a file.
#[derive(Debug, Deserialize)]
pub(super) struct ActionForm {
    #[serde(default)]
    csrf: String,
    #[serde(default)]
    to: String,
}

/// Rejects a change without the session's CSRF token.
fn require_csrf(console: &Console, who: &Caller, csrf: &str) -> Result<(), Response> {
    if who.allows_change(Some(csrf)) {
        return Ok(());
    }
    Err(console.message(
        StatusCode::FORBIDDEN,
        who,
        "Nothing has been changed",
        "The form does not belong to this session. Go back, reload the page and try again.",
    ))
}

/// The workload to which a form refers, if the form belongs to the session.
fn meant_job(
    console: &Console,
    who: &Caller,
    id: &str,
    form: &ActionForm,
) -> Result<JobId, Response> {
    require_csrf(console, who, &form.csrf)?;
    job_id(console, who, id)
}

/// The response if the queue refuses an action.
fn conflict(console: &Console, who: &Caller, title: &str, why: &QueueError) -> Response {
    console.message(StatusCode::CONFLICT, who, title, &why.to_string())
}

/// The response to a refused submission.
fn not_accepted(console: &Console, who: &Caller, status: StatusCode, why: &str) -> Response {
    console.message(status, who, "The workload was not accepted", why)
}

pub(super) async fn cancel(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    Path(id): Path<String>,
    Form(form): Form<ActionForm>,
) -> PageResult {
    let job = meant_job(&console, &who, &id, &form)?;
    match console.controller.cancel(job) {
        Ok(()) => Ok(back(&form.to, &id)),
        Err(e) => Err(conflict(&console, &who, "Nothing to cancel", &e)),
    }
}

/// Moves a waiting job: `to` is `up`, `down`, `first` or `last`.
pub(super) async fn shift(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    Path(id): Path<String>,
    Form(form): Form<ActionForm>,
) -> PageResult {
    let id = meant_job(&console, &who, &id, &form)?;
    match console.controller.shift(id, places(&form.to).unwrap_or(0)) {
        Ok(()) => Ok(Redirect::to("/").into_response()),
        Err(e) => Err(conflict(&console, &who, "Nothing to move", &e)),
    }
}

/// The number of places by which a word moves a job.
pub(super) fn places(word: &str) -> Option<i64> {
    match word {
        "up" => Some(-1),
        "down" => Some(1),
        "first" => Some(i64::MIN),
        "last" => Some(i64::MAX),
        _ => None,
    }
}

pub(super) async fn again(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    Path(id): Path<String>,
    Form(form): Form<ActionForm>,
) -> PageResult {
    let id = meant_job(&console, &who, &id, &form)?;
    match console.controller.resubmit(id).await {
        Ok(new) => Ok(Redirect::to(&format!("/jobs/{new}")).into_response()),
        Err(e) => Err(not_accepted(&console, &who, status_of(&e), &e.to_string())),
    }
}

/// Redirects to the list for actions of lists, otherwise to the job.
fn back(to: &str, id: &str) -> Response {
    let path = if to == "list" {
        "/".to_owned()
    } else {
        format!("/jobs/{id}")
    };
    Redirect::to(&path).into_response()
}

/// A received submission.
#[derive(Debug, Default)]
pub(super) struct SubmissionForm {
    /// The uploaded file, with its name.
    file: Option<(String, Vec<u8>)>,
    /// The other fields.
    pub(super) fields: Vec<(String, String)>,
}

impl SubmissionForm {
    /// Reads a multipart body; its size is limited by the router.
    pub(super) async fn read(
        mut parts: Multipart,
        file_field: &str,
    ) -> Result<Self, MultipartError> {
        let mut received = Self::default();
        while let Some(part) = parts.next_field().await? {
            let name = part.name().unwrap_or_default().to_owned();
            if name == file_field {
                let file = part.file_name().unwrap_or("workload").to_owned();
                let bytes = part.bytes().await?.to_vec();
                // A form without a chosen file sends an empty one.
                if !bytes.is_empty() {
                    received.file = Some((file, bytes));
                }
            } else {
                received.fields.push((name, part.text().await?));
            }
        }
        Ok(received)
    }

    /// Removes a field that is not an option, and returns its value.
    pub(super) fn take(&mut self, name: &str) -> String {
        match self.fields.iter().position(|(known, _)| known == name) {
            Some(at) => self.fields.remove(at).1,
            None => String::new(),
        }
    }

    /// The workload and its options.
    pub(super) fn submission(mut self) -> Result<(Source, RunOptions), String> {
        let (text, builtin) = (self.take("text"), self.take("builtin"));
        let given = [
            self.file.is_some(),
            !text.trim().is_empty(),
            !builtin.is_empty(),
        ];
        let source = match (self.file, text, builtin) {
            _ if given.iter().filter(|given| **given).count() > 1 => {
                return Err("give only one of: a file, a text, a built-in workload".to_owned());
            }
            (Some((name, bytes)), _, _) => Source::File { name, bytes },
            (None, text, _) if given[1] => Source::File {
                name: "workload".to_owned(),
                bytes: text.into_bytes(),
            },
            (None, _, builtin) if given[2] => Source::Builtin(builtin),
            _ => {
                return Err(
                    "there is no workload: choose a file, a text or a built-in workload".to_owned(),
                );
            }
        };
        // Fields that may be given several times have one value per line.
        let options = self.fields.into_iter().flat_map(|(name, value)| {
            let lines: Vec<(String, String)> = value
                .lines()
                .map(|line| (name.clone(), line.to_owned()))
                .collect();
            lines
        });
        Ok((source, RunOptions::check(options)?))
    }
}

/// The status of the response to a refused submission.
pub(super) const fn status_of(error: &SubmitError) -> StatusCode {
    match error {
        SubmitError::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
        SubmitError::Queue(_) => StatusCode::CONFLICT,
        SubmitError::Storage(_) => StatusCode::INSUFFICIENT_STORAGE,
    }
}

pub(super) async fn submit(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    parts: Multipart,
) -> PageResult {
    let mut received = SubmissionForm::read(parts, "file")
        .await
        .map_err(|e| not_accepted(&console, &who, e.status(), &e.body_text()))?;
    let csrf = received.take("csrf");
    require_csrf(&console, &who, &csrf)?;
    let entered = received.fields.clone();
    let refused = |status, text: &str| {
        let shown = FormState {
            refusal: text,
            note: "",
            entered: &entered,
        };
        submit_page(&console, &who, status, &shown)
    };
    let (source, options) = received
        .submission()
        .map_err(|e| refused(StatusCode::UNPROCESSABLE_ENTITY, &e))?;
    match console.controller.submit(source, options).await {
        Ok(id) => Ok(Redirect::to(&format!("/jobs/{id}")).into_response()),
        Err(e) => Err(refused(status_of(&e), &e.to_string())),
    }
}

/// The login form.
#[derive(Deserialize)]
pub(super) struct Login {
    #[serde(default)]
    token: String,
}

pub(super) async fn login(
    State(console): State<Arc<Console>>,
    Form(form): Form<Login>,
) -> Response {
    match console.auth.login(&form.token, console.controller.now_ms()) {
        Ok(Some(cookie)) => ([(SET_COOKIE, cookie)], Redirect::to("/")).into_response(),
        Ok(None) => login_page(&console, StatusCode::UNAUTHORIZED, "The token is wrong."),
        Err(e) => login_page(&console, StatusCode::INTERNAL_SERVER_ERROR, &e),
    }
}

pub(super) async fn logout(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    headers: HeaderMap,
    Form(form): Form<ActionForm>,
) -> PageResult {
    require_csrf(&console, &who, &form.csrf)?;
    let cookie = console.auth.logout(&headers);
    Ok(([(SET_COOKIE, cookie)], Redirect::to("/login")).into_response())
}
