//! A scripted HTTP responder on loopback, and helpers to make requests.
//!
//! The responder runs on the test's own thread. A script maps each request to an [`Answer`]; all received requests are
//! recorded.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use bucketload_core::driver::{Driver, WorkerId};
use bucketload_core::op::{Op, OpClass, Request};
use bucketload_core::record::Probe;
use bucketload_drivers::conformance::{Quirks, Suite};
use bucketload_drivers::s3::{Credentials, Endpoint, S3Config, S3Driver, S3Session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

/// A request as it was received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Number of the connection, from 1.
    pub(crate) connection: usize,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.target)
    }
}

/// What the responder does with a request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The response.
    pub(crate) bytes: Vec<u8>,
    /// Whether to close the connection afterwards.
    pub(crate) close: bool,
    /// Whether to answer without reading the request's body.
    pub(crate) early: bool,
    /// Whether to send nothing and keep the connection open.
    pub(crate) silent: bool,
}

impl Answer {
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            bytes: bytes.into(),
            close: false,
            early: false,
            silent: false,
        }
    }

    pub(crate) fn status(status: u16, body: impl AsRef<[u8]>) -> Self {
        Self::with_fields(status, "", body)
    }

    /// `fields` are complete lines.
    pub(crate) fn with_fields(status: u16, fields: &str, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut bytes = format!(
            "HTTP/1.1 {status} Whatever\r\nContent-Length: {}\r\n{fields}\r\n",
            body.len()
        )
        .into_bytes();
        bytes.extend_from_slice(body);
        Self::raw(bytes)
    }

    pub(crate) fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::status(200, body)
    }

    pub(crate) fn error(status: u16, code: &str) -> Self {
        Self::status(
            status,
            format!("<Error><Code>{code}</Code><Message>because</Message></Error>"),
        )
    }

    pub(crate) fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    pub(crate) fn early(mut self) -> Self {
        self.early = true;
        self
    }
}

/// A running responder.
#[derive(Clone)]
pub(crate) struct Responder {
    pub(crate) addr: SocketAddr,
    pub(crate) received: Rc<RefCell<Vec<Received>>>,
    pub(crate) connections: Rc<Cell<usize>>,
}

impl Responder {
    /// Starts a responder; `script` sees the head of a request and, unless the answer is early, its body.
    pub(crate) async fn start(script: impl Fn(&Received) -> Answer + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let responder = Self {
            addr: listener.local_addr().unwrap(),
            received: Rc::default(),
            connections: Rc::default(),
        };
        let (this, script) = (responder.clone(), Rc::new(script));
        spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                this.connections.set(this.connections.get() + 1);
                spawn_local(serve(this.clone(), stream, Rc::clone(&script)));
            }
        });
        responder
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.received.borrow().iter().map(Received::line).collect()
    }

    pub(crate) fn last(&self) -> Received {
        self.received.borrow().last().cloned().unwrap()
    }

    pub(crate) fn config(&self) -> S3Config {
        let endpoint = Endpoint::parse(&format!("http://{}", self.addr), "test").unwrap();
        let credentials = Credentials::new("AKID", "secretsecret");
        S3Config::new(vec![endpoint], "us-east-1", Some(credentials))
    }

    pub(crate) async fn session(&self) -> S3Session {
        open(self.config()).await
    }
}

pub(crate) async fn open(config: S3Config) -> S3Session {
    let driver = S3Driver::new(config).unwrap();
    driver.open(WORKER, &mut probe()).await.unwrap()
}

async fn serve<S: Fn(&Received) -> Answer>(this: Responder, mut stream: TcpStream, script: Rc<S>) {
    let connection = this.connections.get();
    let mut held = Vec::new();
    loop {
        let Some(mut request) = head(&mut stream, &mut held).await else {
            return;
        };
        request.connection = connection;
        let length: usize = request
            .header("content-length")
            .map_or(0, |v| v.parse().unwrap());
        let mut answer = script(&request);
        if !answer.early {
            while held.len() < length {
                if read(&mut stream, &mut held).await == 0 {
                    return;
                }
            }
            request.body = held.drain(..length).collect();
            // A stateful script sees a request without a body only once.
            if length > 0 {
                answer = script(&request);
            }
        }
        this.received.borrow_mut().push(request);
        if answer.silent {
            // Until the client gives up.
            while read(&mut stream, &mut held).await > 0 {}
            return;
        }
        if stream.write_all(&answer.bytes).await.is_err() {
            return;
        }
        if answer.early {
            // Closing while the rest of the body is still arriving would cause a reset, which could overtake the answer.
            stream.shutdown().await.unwrap();
            while read(&mut stream, &mut held).await > 0 {
                held.clear();
            }
            return;
        }
        if answer.close {
            return;
        }
    }
}

async fn read(stream: &mut TcpStream, held: &mut Vec<u8>) -> usize {
    let mut buffer = vec![0; 64 * 1024];
    let n = stream.read(&mut buffer).await.unwrap_or(0);
    held.extend_from_slice(&buffer[..n]);
    n
}

async fn head(stream: &mut TcpStream, held: &mut Vec<u8>) -> Option<Received> {
    let end = loop {
        if let Some(at) = held.windows(4).position(|w| w == b"\r\n\r\n") {
            break at;
        }
        if read(stream, held).await == 0 {
            return None;
        }
    };
    let text = String::from_utf8(held.drain(..end + 4).collect()).unwrap();
    let mut lines = text.trim_end().split("\r\n");
    let mut first = lines.next()?.split(' ');
    Some(Received {
        method: first.next()?.to_owned(),
        target: first.next()?.to_owned(),
        headers: lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        body: Vec::new(),
        connection: 0,
    })
}

/// Runs `test` on a current-thread runtime with a `LocalSet`.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test)
}

/// A clock that counts its readings on all threads: some drivers read it on the threads that perform their calls.
pub(crate) fn clock() -> u64 {
    static TICKS: AtomicU64 = AtomicU64::new(0);
    TICKS.fetch_add(1, Ordering::Relaxed) + 1
}

/// A probe with [`clock`]: its times are in the order of the readings.
pub(crate) fn probe() -> Probe {
    Probe::new(clock)
}

pub(crate) const WORKER: WorkerId = WorkerId {
    thread: 0,
    worker: 0,
};

/// Runs the shared suite and fails unless every check passes; `what` describes the driver's settings.
pub(crate) async fn suite_passes(driver: &impl Driver, quirks: Quirks, what: &str) {
    let suite = Suite {
        bucket: "suite".to_owned(),
        quirks,
        clock,
    };
    let results = suite.run(driver).await.unwrap();
    let failures: Vec<_> = results.iter().filter(|r| r.failure.is_some()).collect();
    assert!(failures.is_empty(), "{what}: {failures:#?}");
}

pub(crate) fn op(class: OpClass, size: u64) -> Op {
    Op {
        size,
        ..Op::new(class)
    }
}

pub(crate) fn request(op: &Op) -> Request<'_> {
    Request::new(op, "bucket", "key")
}

/// The libs3 library of the tests, compiled by rustc with an optional cfg. Replaces an older file by a rename, because a
/// loaded library must not be overwritten.
pub(crate) fn libs3_library(flavour: Option<&'static str>) -> std::path::PathBuf {
    static MADE: std::sync::Mutex<Vec<Option<&str>>> = std::sync::Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap();
    let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let name = flavour.unwrap_or("memory");
    let path = place.join(format!("libs3-{name}.so.4"));
    if made.contains(&flavour) {
        return path;
    }
    let new = place.join(format!("libs3-{name}-{}.so.4", std::process::id()));
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut rustc = std::process::Command::new(rustc);
    rustc.args([
        "--edition",
        "2024",
        "--crate-type",
        "cdylib",
        "--crate-name",
        "s3",
        "-O",
    ]);
    rustc.args(flavour.iter().flat_map(|flavour| ["--cfg", flavour]));
    rustc.arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/libs3_memory.rs"
    ));
    let output = rustc.arg("-o").arg(&new).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    std::fs::rename(&new, &path).unwrap();
    made.push(flavour);
    path
}
