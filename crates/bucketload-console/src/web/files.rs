//! Reports, artifacts and comparisons.
//!
//! A report is a page with a script. It is served with a policy that gives it a separate origin: it can draw, but
//! neither read the console nor send requests to it. Requests select artifacts from a fixed list; no part of a
//! request becomes part of a path.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path as UrlPath, Query, State};
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{Html, IntoResponse as _, Response};
use bucketload_results::compare::{Options, Run, compare};
use bucketload_results::{analyze, output, report, rundir};
use serde::Serialize;
use tokio::sync::mpsc;

use super::guard::plain;
use super::pages::job_id;
use super::{Console, PageResult, differences};
use crate::auth::Caller;
use crate::controller::Controller;
use crate::launcher::LOG;
use crate::outcome::Outcome;
use crate::queue::JobId;
use crate::receiver_stream::ReceiverStream;

/// Name of the report in the run directory.
const REPORT: &str = "report.html";
/// Downloadable files of the run directory, in display order.
const FIXED: [&str; 8] = [
    rundir::MANIFEST,
    rundir::INTERVALS,
    rundir::EVENTS,
    rundir::SLOWEST,
    rundir::ORACLE,
    REPORT,
    "results.csv",
    crate::agents::FILE,
];
/// Maximum number of listed files: there is a histogram log per phase, and an operation log per minute.
const MAX_FILES: usize = 500;
/// Maximum number of runs per side of a comparison: each is held in memory.
const MAX_SIDE: usize = 10;
/// Size of the pieces in which a file is sent, bytes.
const CHUNK: usize = 64 << 10;
/// Allows a report only to draw.
const REPORT_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                             img-src data:; frame-ancestors 'none'; sandbox allow-scripts allow-popups";

/// A downloadable file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Artifact {
    /// File name, without folders.
    pub(super) name: String,
    /// The name, encoded for a URL path.
    pub(super) href: String,
    /// File size, bytes.
    pub(super) bytes: u64,
    #[serde(skip)]
    path: PathBuf,
}

/// The downloadable files of a job.
pub(super) fn available(controller: &Controller, id: JobId) -> Vec<Artifact> {
    let run = controller.run_dir(id);
    let mut paths: Vec<PathBuf> = FIXED.iter().map(|name| run.join(name)).collect();
    paths.extend(listed(&run, "ops-"));
    paths.extend(listed(&run.join(rundir::HIST), "phase-"));
    paths.push(controller.job_dir(id).join(LOG));
    paths
        .into_iter()
        .filter_map(Artifact::at)
        .take(MAX_FILES)
        .collect()
}

/// The files of a job in COSBench's archive, under COSBench's names; empty for TOML workloads.
pub(super) fn archived(controller: &Controller, id: JobId) -> Vec<Artifact> {
    let archive = controller.archive();
    listed(&archive, &format!("{id}-"))
        .into_iter()
        .take(1)
        .flat_map(|dir| listed(&dir, ""))
        .filter_map(Artifact::at)
        .collect()
}

/// The tables of COSBench's archive that cover all workloads.
pub(super) fn tables(controller: &Controller) -> Vec<Artifact> {
    let archive = controller.archive();
    ["run-history.csv", "workloads.csv"]
        .into_iter()
        .filter_map(|name| Artifact::at(archive.join(name)))
        .collect()
}

impl Artifact {
    /// The file at `path`, if it is a regular file.
    fn at(path: PathBuf) -> Option<Self> {
        let about = std::fs::symlink_metadata(&path).ok()?;
        let name = path.file_name()?.to_str()?.to_owned();
        about.is_file().then(|| Self {
            href: encoded(&name),
            name,
            bytes: about.len(),
            path,
        })
    }

    /// Sends the file.
    fn send(self) -> Response {
        match File::open(&self.path) {
            Ok(file) => download(file, &self),
            Err(e) => plain(StatusCode::NOT_FOUND, &format!("{}: {e}", self.name)),
        }
    }
}

/// Percent-encodes text for a path or a header (RFC 3986 section 2.3, RFC 8187 section 3.2).
pub(super) fn encoded(text: &str) -> String {
    use std::fmt::Write as _;

    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Files of a directory whose names begin with `prefix`, sorted by name.
fn listed(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with(prefix) && !name.ends_with(".new"))
        })
        .map(|entry| entry.path())
        .take(MAX_FILES)
        .collect();
    found.sort();
    found
}

pub(super) async fn artifact(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    UrlPath((id, name)): UrlPath<(String, String)>,
) -> PageResult {
    let id = job_id(&console, &who, &id)?;
    // The name only selects from the lists.
    let chosen = available(&console.controller, id)
        .into_iter()
        .chain(archived(&console.controller, id))
        .find(|artifact| artifact.name == name);
    match chosen {
        Some(artifact) => Ok(artifact.send()),
        None => Err(plain(
            StatusCode::NOT_FOUND,
            "this workload has no such file",
        )),
    }
}

/// Sends a table of COSBench's archive that covers all workloads.
pub(super) async fn table(
    State(console): State<Arc<Console>>,
    UrlPath(name): UrlPath<String>,
) -> Response {
    let chosen = tables(&console.controller)
        .into_iter()
        .find(|table| table.name == name);
    match chosen {
        Some(table) => table.send(),
        None => plain(
            StatusCode::NOT_FOUND,
            "there is no such table: the name is wrong, or no XML workload has run yet",
        ),
    }
}

/// Sends the current length of a file, even if the file grows meanwhile.
fn download(file: File, artifact: &Artifact) -> Response {
    let (tx, rx) = mpsc::channel::<io::Result<Vec<u8>>>(1);
    let mut file = file.take(artifact.bytes);
    tokio::task::spawn_blocking(move || {
        loop {
            let mut chunk = vec![0; CHUNK];
            let part = match file.read(&mut chunk) {
                Ok(0) => return,
                Ok(n) => {
                    chunk.truncate(n);
                    Ok(chunk)
                }
                Err(e) => Err(e),
            };
            let failed = part.is_err();
            // Stops when the client disconnects.
            if tx.blocking_send(part).is_err() || failed {
                return;
            }
        }
    });
    // Names in the archive come from the workload and may contain any characters (RFC 6266 section 4.3).
    let disposition = format!("attachment; filename*=UTF-8''{}", artifact.href);
    (
        [
            (CONTENT_TYPE, "application/octet-stream".to_owned()),
            (CONTENT_LENGTH, artifact.bytes.to_string()),
            (CONTENT_DISPOSITION, disposition),
        ],
        Body::from_stream(ReceiverStream(rx)),
    )
        .into_response()
}

/// Responds with an HTML page that runs its own script.
fn sandboxed(html: String) -> Response {
    let policy = HeaderValue::from_static(REPORT_POLICY);
    ([(CONTENT_SECURITY_POLICY, policy)], Html(html)).into_response()
}

/// Sends the report of a run. If the run was cut off, the report is made now.
pub(super) async fn report(
    State(console): State<Arc<Console>>,
    Extension(who): Extension<Caller>,
    UrlPath(id): UrlPath<String>,
) -> PageResult {
    let id = job_id(&console, &who, &id)?;
    let over = console
        .controller
        .with_queue(|queue| queue.get(id).is_some_and(|job| job.state.is_over()));
    if !over {
        return Err(plain(
            StatusCode::NOT_FOUND,
            "the report is made when the run has ended",
        ));
    }
    let run = console.controller.run_dir(id);
    let Ok(_turn) = console.analyses.acquire().await else {
        return Err(plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "the controller is stopping",
        ));
    };
    match tokio::task::spawn_blocking(move || report_of(&run)).await {
        Ok(Ok(html)) => {
            console.controller.note_verdict(id);
            Ok(sandboxed(html))
        }
        Ok(Err(e)) => Err(plain(StatusCode::NOT_FOUND, &e)),
        Err(_) => Err(plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the report could not be made; see the controller's output",
        )),
    }
}

/// The head of an ended job's result.
pub(super) async fn outcome(console: &Console, id: JobId) -> Result<Outcome, String> {
    let _turn = match Outcome::stored(&console.controller.run_dir(id)) {
        Some(_) => None,
        None => {
            let turn = console.analyses.acquire().await;
            Some(turn.map_err(|e| e.to_string())?)
        }
    };
    console.controller.outcome(id).await
}

fn report_of(run: &Path) -> Result<String, String> {
    let path = run.join(REPORT);
    if let Ok(html) = std::fs::read_to_string(&path) {
        return Ok(html);
    }
    let result = analyze(run).map_err(|e| format!("there is no result: {e}"))?;
    let html = report::html(&result);
    // If writing fails, the report is made again the next time.
    let _ = rundir::write_verdict(run, &result.verdict);
    let _ = std::fs::write(&path, &html);
    Ok(html)
}

/// The two sets of runs to compare.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ComparisonQuery {
    a: Vec<JobId>,
    b: Vec<JobId>,
    differ: bool,
}

impl ComparisonQuery {
    /// Reads `a=w1&a=w2&b=w3&differ=1`.
    pub(super) fn read(query: &[(String, String)]) -> Result<Self, String> {
        let mut choice = Self::default();
        for (name, value) in query.iter().filter(|(_, value)| !value.is_empty()) {
            match name.as_str() {
                "a" => choice.a.push(value.parse()?),
                "b" => choice.b.push(value.parse()?),
                "differ" => choice.differ = true,
                _ => {}
            }
        }
        if choice.a.len().max(choice.b.len()) > MAX_SIDE {
            return Err(format!(
                "at most {MAX_SIDE} runs per side can be compared here"
            ));
        }
        Ok(choice)
    }

    /// Whether no run has been selected yet.
    pub(super) const fn is_empty(&self) -> bool {
        self.a.is_empty() && self.b.is_empty()
    }

    /// The query string for the same comparison.
    pub(super) fn query(&self) -> String {
        let side = |name: &str, ids: &[JobId]| -> Vec<String> {
            ids.iter().map(|id| format!("{name}={id}")).collect()
        };
        let mut parts = side("a", &self.a);
        parts.extend(side("b", &self.b));
        if self.differ {
            parts.push("differ=1".to_owned());
        }
        parts.join("&")
    }
}

/// Compares two sets of runs, as text or as a page.
pub(super) async fn comparison_of(
    console: &Arc<Console>,
    choice: &ComparisonQuery,
    page: bool,
) -> Result<String, String> {
    let directories = |ids: &[JobId]| -> Vec<PathBuf> {
        ids.iter()
            .map(|id| console.controller.run_dir(*id))
            .collect()
    };
    let (a, b) = (directories(&choice.a), directories(&choice.b));
    if a.is_empty() || b.is_empty() {
        return Err("select at least one run for A and one for B".to_owned());
    }
    let mut options = Options::default();
    if choice.differ {
        options.allow = vec!["workload".to_owned(), "verdict".to_owned()];
    }
    let _turn = console
        .analyses
        .acquire()
        .await
        .map_err(|e| e.to_string())?;
    let work = move || -> Result<String, String> {
        let load = |dirs: Vec<PathBuf>| -> Result<Vec<Run>, String> {
            dirs.iter()
                .map(|dir| Run::load(dir).map_err(|e| e.to_string()))
                .collect()
        };
        let (a, b) = (load(a)?, load(b)?);
        let comparison = compare(&a, &b, &options).map_err(|e| differences::words(&e))?;
        Ok(if page {
            report::comparison_html(&comparison, &a, &b)
        } else {
            output::comparison_text(&comparison, output::TextOptions::default())
        })
    };
    let jobs = format!("{}/", console.controller.jobs_dir().display());
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| "the comparison could not be made".to_owned())?
        // Does not reveal where the controller keeps its runs.
        .map_err(|e| e.replace(&jobs, "").replace("/run", ""))
}

pub(super) async fn comparison(
    State(console): State<Arc<Console>>,
    Query(query): Query<Vec<(String, String)>>,
) -> Response {
    let page = match ComparisonQuery::read(&query) {
        Ok(choice) => comparison_of(&console, &choice, true).await,
        Err(e) => Err(e),
    };
    match page {
        Ok(html) => sandboxed(html),
        Err(e) => plain(StatusCode::UNPROCESSABLE_ENTITY, &e),
    }
}
