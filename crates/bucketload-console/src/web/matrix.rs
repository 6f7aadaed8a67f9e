//! The page of the matrix generator. It changes nothing: what it makes is shown in the form for
//! submissions, where people read it before they submit it.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use minijinja::context;

use super::Console;
use super::pages::{Shown, submit_page};
use crate::auth::Who;
use crate::matrix::{Entered, OPERATIONS, generate};

/// The form; with values in the query what they make.
pub(super) async fn page(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Who>,
    Query(query): Query<Vec<(String, String)>>,
) -> Response {
    if query.is_empty() {
        return form(&console, &who, StatusCode::OK, "", &Entered::example());
    }
    let value = |name: &str| {
        let found = query.iter().find(|(known, _)| known == name);
        found.map_or_else(String::new, |(_, value)| value.clone())
    };
    let entered = Entered {
        name: value("name"),
        sizes: value("sizes"),
        workers: value("workers"),
        operations: value("operations"),
        objects: value("objects"),
        duration: value("duration"),
    };
    match generate(&entered) {
        Ok(matrix) => {
            let note = format!(
                "{} phases of {} each. Read the workload below, choose a target, and submit it.",
                matrix.phases,
                entered.duration.trim()
            );
            let shown = Shown {
                refusal: "",
                note: &note,
                entered: &[("text".to_owned(), matrix.text)],
            };
            submit_page(&console, &who, StatusCode::OK, &shown)
        }
        Err(e) => form(
            &console,
            &who,
            StatusCode::UNPROCESSABLE_ENTITY,
            &e,
            &entered,
        ),
    }
}

fn form(
    console: &Console,
    who: &Who,
    status: StatusCode,
    refusal: &str,
    entered: &Entered,
) -> Response {
    let content = context! {
        refusal,
        name => entered.name.as_str(),
        sizes => entered.sizes.as_str(),
        workers => entered.workers.as_str(),
        operations => entered.operations.as_str(),
        objects => entered.objects.as_str(),
        duration => entered.duration.as_str(),
        known => OPERATIONS.join(", "),
    };
    console.page(status, "matrix.html", who, "submit", content)
}
