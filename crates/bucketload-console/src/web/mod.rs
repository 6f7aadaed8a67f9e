//! The web console and the HTTP interface of a controller.
//!
//! ```text
//! request ── guard (Host, token or session, same site) ──> pages    HTML from templates, every value escaped
//!                                                    ├──> actions  forms of the pages
//!                                                    ├──> events   server-sent events: queue, live figures
//!                                                    ├──> files    reports, artifacts, comparisons
//!                                                    ├──> api      JSON for programs (submit, info, cancel, top)
//!                                                    └──> cosbench text interface of COSBench's cli.sh
//! ```
//!
//! Pages need no build step and load nothing from other sites: style sheet and scripts are part of the program
//! (`assets`).

#![allow(
    clippy::result_large_err,
    reason = "an error response is made at most once per request"
)]

mod actions;
pub mod api;
mod assets;
mod cosbench;
mod differences;
pub(crate) mod events;
mod files;
mod guard;
mod lists;
mod live_page;
mod matrix;
mod metrics;
mod pages;
mod render;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{get, post};
use bucketload_token::AccessToken;
use tokio::sync::Semaphore;

use crate::auth::Auth;
use crate::controller::Controller;
use crate::fleet::Fleet;
use crate::upload::MAX_FILE;

/// Maximum number of event streams.
const MAX_STREAMS: usize = 64;
/// Maximum body size of requests without a workload file, bytes.
const SMALL_BODY: usize = 64 << 10;
/// Maximum body size of a login, which anybody may send, bytes.
const LOGIN_BODY: usize = 4 << 10;

/// The response to a request; `Err` if nothing was done.
type PageResult = Result<Response, Response>;

/// Settings of the console.
#[derive(Clone, Debug, Default)]
pub struct ConsoleConfig {
    /// The token that clients must send, if any.
    pub token: Option<AccessToken>,
    /// Whether connections are encrypted.
    pub tls: bool,
    /// Whether others on the network can read connections: no TLS, on an address other than loopback.
    pub is_overheard: bool,
    /// Accepted host names, in addition to `localhost` and IP addresses.
    pub hosts: Vec<String>,
    /// The agents that runs use.
    pub fleet: Arc<Fleet>,
    /// Directories of this machine below which targets may lie.
    pub roots: Vec<PathBuf>,
}

/// A controller with its pages.
#[derive(Debug)]
pub struct Console {
    pub(crate) controller: Controller,
    pub(crate) auth: Auth,
    pub(crate) config: ConsoleConfig,
    templates: render::Templates,
    /// Limits reports and comparisons to one at a time, because they read whole run directories.
    analyses: Semaphore,
    streams: Arc<Semaphore>,
}

impl Console {
    /// Makes the console of `controller`.
    ///
    /// # Errors
    /// When the kernel cannot provide random numbers.
    pub fn new(controller: Controller, config: ConsoleConfig) -> Result<Arc<Self>, String> {
        Ok(Arc::new(Self {
            controller,
            auth: Auth::new(config.token.clone(), config.tls)?,
            config,
            templates: render::Templates::new(),
            analyses: Semaphore::new(1),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        }))
    }
}

/// The routes of the console.
pub fn router(console: Arc<Console>) -> Router {
    // A multipart body adds headers to the file.
    let upload = DefaultBodyLimit::max(MAX_FILE + SMALL_BODY);
    Router::new()
        .route("/", get(pages::overview))
        .route(
            "/submit",
            get(pages::submit).post(actions::submit).layer(upload),
        )
        .route("/matrix", get(matrix::page))
        .route("/history", get(pages::history))
        .route("/agents", get(pages::agents))
        .route("/compare", get(pages::compare))
        .route("/compare/report", get(files::comparison))
        .route("/jobs/{id}", get(pages::job))
        .route("/jobs/{id}/report", get(files::report))
        .route("/jobs/{id}/files/{name}", get(files::artifact))
        .route("/archive/{name}", get(files::table))
        .route(
            "/jobs/{id}/cancel",
            get(pages::cancel).post(actions::cancel),
        )
        .route("/jobs/{id}/move", post(actions::shift))
        .route("/jobs/{id}/again", post(actions::again))
        .route(
            "/login",
            get(pages::login)
                .post(actions::login)
                .layer(DefaultBodyLimit::max(LOGIN_BODY)),
        )
        .route("/logout", post(actions::logout))
        .route("/events", get(events::stream))
        .route("/metrics", get(metrics::page))
        .route("/assets/{name}", get(assets::serve))
        .route("/api/jobs", get(api::list).post(api::submit).layer(upload))
        .route("/api/jobs/{id}", get(api::info))
        .route("/api/jobs/{id}/cancel", post(api::cancel))
        .route("/api/jobs/{id}/move", post(api::shift))
        .route("/api/live", get(api::live))
        .route("/api/agents", get(api::agents))
        .route(
            "/controller/cli/submit.action",
            post(cosbench::submit).layer(upload),
        )
        .route(
            "/controller/cli/config.action",
            post(cosbench::submit).layer(upload),
        )
        .route(
            "/controller/cli/index.action",
            get(cosbench::index).post(cosbench::index),
        )
        .route("/controller/cli/cancel.action", post(cosbench::cancel))
        .route(
            "/controller/cli/workload.action",
            get(cosbench::workload).post(cosbench::workload),
        )
        .fallback(pages::not_found)
        .layer(DefaultBodyLimit::max(SMALL_BODY))
        .layer(from_fn_with_state(Arc::clone(&console), guard::guard))
        .with_state(console)
}
