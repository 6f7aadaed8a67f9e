//! The page of the matrix generator. It submits nothing itself: it shows the generated workload in the submission
//! form, where users can read it first.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use minijinja::context;

use super::Console;
use super::pages::{FormState, submit_page};
use crate::auth::Caller;
use crate::matrix::{MatrixForm, OPERATIONS, generate};

/// Shows the form, or, with values in the query, the generated workload.
pub(super) async fn page(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    Query(query): Query<Vec<(String, String)>>,
) -> Response {
    if query.is_empty() {
        return form(&console, &who, StatusCode::OK, "", &MatrixForm::example());
    }
    let value = |name: &str| {
        let found = query.iter().find(|(known, _)| known == name);
        found.map_or_else(String::new, |(_, value)| value.clone())
    };
    let entered = MatrixForm {
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
            let shown = FormState {
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
    who: &Caller,
    status: StatusCode,
    refusal: &str,
    entered: &MatrixForm,
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
