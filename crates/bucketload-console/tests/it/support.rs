//! A controller with scripted runs, and requests to its router.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use bucketload_console::controller::{Controller, ControllerConfig, Source};
use bucketload_console::fleet::Fleet;
use bucketload_console::launcher::{BoxFuture, CheckResult, Launcher, RunningProcess, Task};
use bucketload_console::options::RunOptions;
use bucketload_console::queue::{JobId, JobState, ProcessExit};
use bucketload_console::web::{Console, ConsoleConfig, router};
use bucketload_token::AccessToken;
use http_body_util::BodyExt as _;
use tokio::sync::watch;
use tower::ServiceExt as _;

/// The token of closed consoles.
pub(crate) const TOKEN: &str = "correct-horse-battery-staple";
/// Grace time of a cancelled run.
pub(crate) const GRACE: Duration = Duration::from_secs(60);

/// A process that does what the test says.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) task: Task,
    ended: watch::Sender<Option<ProcessExit>>,
    /// The received signals: `INT`, `KILL`.
    pub(crate) signals: Arc<Mutex<Vec<&'static str>>>,
    /// Whether it stops on `INT`.
    obeys: bool,
}

impl Process {
    pub(crate) fn end(&self, ended: ProcessExit) {
        self.ended.send_replace(Some(ended));
    }

    pub(crate) fn signals(&self) -> Vec<&'static str> {
        self.signals.lock().unwrap().clone()
    }
}

impl RunningProcess for Process {
    fn wait(&mut self) -> BoxFuture<'_, io::Result<ProcessExit>> {
        let mut ended = self.ended.subscribe();
        Box::pin(async move {
            let ended = ended.wait_for(Option::is_some).await;
            Ok((*ended.unwrap()).unwrap())
        })
    }

    fn interrupt(&mut self) {
        self.signals.lock().unwrap().push("INT");
        if self.obeys {
            self.end(ProcessExit::Code(130));
        }
    }

    fn kill(&mut self) {
        self.signals.lock().unwrap().push("KILL");
        self.end(ProcessExit::Signal(9));
    }
}

/// Starts scripted processes.
pub(crate) struct Script {
    started: watch::Sender<Vec<Process>>,
    pub(crate) stubborn: bool,
    /// The refusal of a workload check, if any.
    pub(crate) refusal: Mutex<Option<String>>,
}

impl Script {
    pub(crate) fn new(stubborn: bool) -> Arc<Self> {
        Arc::new(Self {
            started: watch::Sender::new(Vec::new()),
            stubborn,
            refusal: Mutex::new(None),
        })
    }

    /// The `n`th process, as soon as it was started.
    pub(crate) async fn process(&self, n: usize) -> Process {
        let mut started = self.started.subscribe();
        let started = started.wait_for(|list| list.len() > n).await.unwrap();
        started[n].clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.started.borrow().len()
    }
}

impl Launcher for Script {
    fn check<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<CheckResult, String>> {
        let refusal = self.refusal.lock().unwrap().clone();
        Box::pin(async move {
            match refusal {
                Some(text) => Err(text),
                None => Ok(CheckResult {
                    // The name in the file.
                    name: std::fs::read_to_string(task.dir.join(&task.workload))
                        .ok()
                        .and_then(|text| Some(text.split('"').nth(1)?.to_owned()))
                        .unwrap_or_else(|| task.workload.clone()),
                    notes: vec!["line 7: <b>`Ratio`</b> is ignored".to_owned()],
                }),
            }
        })
    }

    fn start(&self, task: &Task) -> io::Result<Box<dyn RunningProcess>> {
        let process = Process {
            task: task.clone(),
            ended: watch::Sender::new(None),
            signals: Arc::default(),
            obeys: !self.stubborn,
        };
        self.started.send_modify(|list| list.push(process.clone()));
        Ok(Box::new(process))
    }

    fn wait_until_unused<'a>(&'a self, _dir: &'a Path) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

/// Makes a controller in a directory, with a clock that advances one second per call.
pub(crate) fn controller(dir: &Path, script: &Arc<Script>) -> Controller {
    let now = AtomicU64::new(1_800_000_000_000);
    Controller::open(ControllerConfig {
        data: dir.join("data"),
        launcher: Arc::clone(script) as Arc<dyn Launcher>,
        grace: GRACE,
        clock: Arc::new(move || now.fetch_add(1000, Ordering::Relaxed)),
    })
    .unwrap()
}

/// A console of a controller whose queue is not driven.
pub(crate) struct Site {
    pub(crate) controller: Controller,
    pub(crate) router: Router,
    pub(crate) script: Arc<Script>,
    pub(crate) dir: tempfile::TempDir,
}

/// Makes a console, `closed` with a token and TLS as off loopback.
pub(crate) fn site(closed: bool) -> Site {
    site_with(closed, Arc::default())
}

/// Like [`site`], with agents.
pub(crate) fn site_with(closed: bool, fleet: Arc<Fleet>) -> Site {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(false);
    let controller = controller(dir.path(), &script);
    let config = ConsoleConfig {
        token: closed.then(|| AccessToken::parse("", TOKEN).unwrap()),
        tls: closed,
        fleet,
        ..ConsoleConfig::default()
    };
    let console = Console::new(controller.clone(), config).unwrap();
    Site {
        controller,
        router: router(console),
        script,
        dir,
    }
}

/// A response, read completely.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) head: Response<()>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.head
            .headers()
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

impl Site {
    pub(crate) async fn ask(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            head: Response::from_parts(parts, ()),
        }
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask(request("GET", path, headers, "")).await
    }

    /// The CSRF token in the forms of an open console.
    pub(crate) async fn csrf(&self, headers: &[(&str, &str)]) -> String {
        let mut headers = headers.to_vec();
        headers.push(("accept", "text/html"));
        let page = self.get("/submit", &headers).await.text;
        let at = page.find("name=\"csrf\" value=\"").unwrap() + 19;
        page[at..].split('"').next().unwrap().to_owned()
    }

    pub(crate) async fn submit(&self, name: &str, text: &str) -> JobId {
        let source = Source::File {
            name: name.to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        self.controller
            .submit(source, RunOptions::default())
            .await
            .unwrap()
    }
}

/// A request with a Host header, unless one is given.
pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", "127.0.0.1:19088");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.into()).unwrap()
}

/// A form with parts: (name, file name or empty, content).
pub(crate) fn multipart(parts: &[(&str, &str, &[u8])]) -> (String, Vec<u8>) {
    let mut body = Vec::new();
    for (name, file, content) in parts {
        let file = if file.is_empty() {
            String::new()
        } else {
            format!("; filename=\"{file}\"")
        };
        body.extend_from_slice(
            format!("--xyz\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n")
                .as_bytes(),
        );
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--xyz--\r\n");
    ("multipart/form-data; boundary=xyz".to_owned(), body)
}

pub(crate) fn state(controller: &Controller, id: JobId) -> JobState {
    controller.with_queue(|queue| queue.get(id).unwrap().state)
}

/// Waits until a job has a state.
pub(crate) async fn until(controller: &Controller, id: JobId, wanted: JobState) {
    let mut changes = controller.watch();
    while state(controller, id) != wanted {
        changes.changed().await.unwrap();
    }
}
