//! The way to a service over HTTP, for `bucketload doctor`: names, addresses, TLS, connections, clock, round trips.
//!
//! Every wait has a deadline, and at most [`ROUNDS`] requests are sent, none of which changes anything.

mod certificate;
mod encrypted;

use std::future::Future;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bucketload_core::driver::{ErrorKind, OpError, OpResult, Probe};
use bucketload_s3::date;
use bucketload_target::OpenError;
use bucketload_target::doctor::{Examination, Finding, State};
use bucketload_wire::{Sock, dns};
use tokio::task::LocalSet;

use super::client::{Client, IdFields};
use super::config::TlsConfig;
use super::connection::Connection;
use super::endpoint::Endpoint;
use super::exchange::Reply;
use super::outgoing::Plain;
use super::render::Render as _;
use super::sink::OneField;

/// Longest wait for a connection or an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Requests that measure the round trip.
const ROUNDS: usize = 20;
/// Time after which no further one of these is sent.
const ROUNDS_END: Duration = Duration::from_secs(2);
/// Endpoints that are examined; a longer list is cut.
const ENDPOINTS: usize = 8;
/// A name lookup that takes longer is worth a word: each new connection needs one.
const SLOW_LOOKUP: Duration = Duration::from_millis(500);
/// A server that thinks longer than this before each answer hides what the store can do.
const SLOW_ANSWER: Duration = Duration::from_millis(100);
/// Difference of the clocks that is worth a word, in seconds. Services refuse signatures from 300 or 900 on.
const SKEW: u64 = 60;

/// Runs `future` to its end on a runtime of its own.
///
/// # Errors
/// When the kernel provides no event queue.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, OpenError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| OpenError::Aborted(format!("cannot wait for the network: {e}")))?;
    let done = LocalSet::new().block_on(&runtime, future);
    // A name lookup that does not come back must not hold up the end of the program.
    runtime.shutdown_background();
    Ok(done)
}

/// Waits for `call`, at most [`PATIENCE`].
pub(crate) async fn patiently<T>(call: impl Future<Output = OpResult<T>>) -> OpResult<T> {
    match tokio::time::timeout(PATIENCE, call).await {
        Ok(result) => result,
        Err(_) => Err(OpError::new(
            ErrorKind::Timeout,
            format!("no complete answer within {} s", PATIENCE.as_secs()),
        )),
    }
}

/// Examines the way to `endpoints`. The findings say whether a service answers there.
///
/// # Errors
/// When this machine cannot provide what the examination needs.
pub(crate) fn way(
    endpoints: &[Endpoint],
    tls: &TlsConfig,
    exam: &mut Examination<'_>,
) -> Result<(), OpenError> {
    block_on(async {
        let mut way = Way {
            endpoints: &endpoints[..endpoints.len().min(ENDPOINTS)],
            tls,
            addresses: Vec::new(),
            connect: Duration::MAX,
        };
        let mut findings = Vec::new();
        way.examine(&mut findings).await;
        exam.findings.append(&mut findings);
    })
}

/// Examines names and addresses of `endpoints` alone, for services that do not speak HTTP.
///
/// # Errors
/// When this machine cannot provide what the examination needs.
#[cfg(feature = "hdfs")]
pub(crate) fn reach(endpoints: &[Endpoint], exam: &mut Examination<'_>) -> Result<(), OpenError> {
    block_on(async {
        let mut way = Way {
            endpoints,
            tls: &TlsConfig::default(),
            addresses: Vec::new(),
            connect: Duration::MAX,
        };
        let resolved = way.resolve(&mut exam.findings).await;
        if !resolved.is_empty() {
            let connect = way.connect(&resolved).await;
            exam.findings.push(connect);
        }
    })
}

struct Way<'a> {
    endpoints: &'a [Endpoint],
    tls: &'a TlsConfig,
    /// The addresses that accept connections, each with the index of its endpoint.
    addresses: Vec<(usize, SocketAddr)>,
    /// Time of the fastest connection.
    connect: Duration,
}

fn lasting(time: Duration) -> String {
    match time.as_secs_f64() * 1e3 {
        ms if ms < 1.0 => format!("{:.0} µs", ms * 1e3),
        ms => format!("{ms:.1} ms"),
    }
}

impl Way<'_> {
    async fn examine(&mut self, findings: &mut Vec<Finding>) {
        let resolved = self.resolve(findings).await;
        if resolved.is_empty() {
            return;
        }
        findings.push(self.connect(&resolved).await);
        if self.addresses.is_empty() {
            return;
        }
        let tls = encrypted::examine(self.endpoints, self.tls, &self.addresses).await;
        let failed = tls.state == State::Failed;
        findings.push(tls);
        if !failed {
            self.requests(findings).await;
        }
    }

    async fn resolve(&self, findings: &mut Vec<Finding>) -> Vec<(usize, SocketAddr)> {
        let (mut all, mut words) = (Vec::new(), Vec::new());
        let mut state = State::Ok;
        let mut failed = false;
        for (i, endpoint) in self.endpoints.iter().enumerate() {
            let host = &endpoint.host;
            match tokio::time::timeout(PATIENCE, dns::resolve(host, endpoint.port)).await {
                Ok(Ok(found)) => {
                    let shown = found.addrs.iter().map(|a| a.ip().to_string());
                    let shown = shown.collect::<Vec<_>>().join(", ");
                    words.push(match dns::literal(host) {
                        Some(_) => format!("{shown} needs no lookup"),
                        None => format!("{host}: {shown} in {}", lasting(found.took)),
                    });
                    if found.took > SLOW_LOOKUP {
                        state = state.max(State::Differs);
                    }
                    all.extend(found.addrs.into_iter().map(|addr| (i, addr)));
                }
                Ok(Err(error)) => {
                    words.push(format!("{host}: {error}"));
                    failed = true;
                }
                Err(_) => {
                    words.push(format!("{host}: no answer within {} s", PATIENCE.as_secs()));
                    failed = true;
                }
            }
        }
        if failed {
            state = State::Failed;
        }
        let remedy = match state {
            State::Failed => {
                "correct the host name in the endpoint URL, or make it known (DNS, /etc/hosts)"
            }
            State::Differs => {
                "each new connection waits for such a lookup: use a faster resolver, /etc/hosts, or the address"
            }
            _ => "",
        };
        let asked = "the addresses behind each endpoint's name";
        findings.push(Finding::new("resolve", asked, state, words.join("; ")).remedy(remedy));
        if failed { Vec::new() } else { all }
    }

    async fn connect(&mut self, resolved: &[(usize, SocketAddr)]) -> Finding {
        let (mut words, mut silent, mut dead) = (Vec::new(), false, None);
        for &(i, addr) in resolved {
            let began = Instant::now();
            match tokio::time::timeout(PATIENCE, Sock::connect(addr, None)).await {
                Ok(Ok(_)) => {
                    let took = began.elapsed();
                    self.connect = self.connect.min(took);
                    self.addresses.push((i, addr));
                    words.push(format!("{addr} in {}", lasting(took)));
                }
                Ok(Err(error)) => words.push(format!("{addr}: {error}")),
                Err(_) => {
                    silent = true;
                    words.push(format!("{addr}: no answer within {} s", PATIENCE.as_secs()));
                }
            }
        }
        for (i, endpoint) in self.endpoints.iter().enumerate() {
            if !self.addresses.iter().any(|(of, _)| *of == i) {
                dead = Some(endpoint.url());
            }
        }
        let (state, remedy) = match (&dead, silent) {
            (Some(url), _) => (
                State::Failed,
                format!("start the service at {url}, correct host and port, or open the firewall"),
            ),
            (None, true) => (
                State::Differs,
                "addresses are tried in this order, so a silent one delays each new connection: remove it from DNS, \
                 or name a working address in the endpoint URL"
                    .to_owned(),
            ),
            (None, false) => (State::Ok, String::new()),
        };
        let asked = "a connection to each address";
        if state == State::Failed {
            self.addresses.clear();
        }
        Finding::new("connect", asked, state, words.join("; ")).remedy(remedy)
    }

    /// Sends small requests without credentials to the first endpoint; any answer will do.
    async fn requests(&self, findings: &mut Vec<Finding>) {
        let http = "an answer in HTTP";
        let endpoint = &self.endpoints[0];
        let ids = IdFields {
            request: "",
            extended: "",
        };
        let client = match Client::new(self.endpoints.to_vec(), self.tls, ids) {
            Ok(client) => client,
            Err(error) => {
                findings.push(Finding::new("http", http, State::Failed, error.to_string()));
                return;
            }
        };
        let mut connection = Connection::new(0, None);
        let mut times: Vec<Duration> = Vec::new();
        let (mut dates, mut sockets) = (Vec::new(), Vec::new());
        let began = Instant::now();
        while times.len() < ROUNDS && (times.is_empty() || began.elapsed() < ROUNDS_END) {
            let mut date = Vec::new();
            let asked = patiently(ask(&mut connection, &client, endpoint, &mut date)).await;
            match asked {
                Ok((reply, took)) => {
                    if times.is_empty() {
                        let words = format!("status {} to HEAD {PATH}", reply.status);
                        findings.push(Finding::new("http", http, State::Ok, words));
                    }
                    if let Some(refusal) = &reply.refusal {
                        date = refusal.field("date").into_bytes();
                    }
                    times.push(took);
                    dates.push((
                        date,
                        date::since_epoch(std::time::SystemTime::now()).as_secs(),
                    ));
                    sockets.push(connection.route().connection);
                }
                Err(error) => {
                    let remedy = "is this the port of the storage service?";
                    let found = Finding::new("http", http, State::Failed, error.to_string());
                    findings.retain(|f| f.id != "http");
                    findings.push(found.remedy(remedy));
                    return;
                }
            }
        }
        findings.push(keep_alive(&mut sockets));
        findings.push(clock(&dates));
        findings.push(self.round_trip(&mut times));
    }

    fn round_trip(&self, times: &mut [Duration]) -> Finding {
        times.sort_unstable();
        let (least, median) = (times[0], times[times.len() / 2]);
        let each = 1.0 / median.as_secs_f64().max(1e-9);
        let words = format!(
            "{} at least, {} at the median of {} requests, beside {} for a connection: one worker sends at most {each:.0} \
             small requests a second",
            lasting(least),
            lasting(median),
            times.len(),
            lasting(self.connect),
        );
        // What the network takes is no fault of the server.
        let thinks = least.saturating_sub(self.connect);
        let (state, remedy) = match thinks > SLOW_ANSWER {
            true => (
                State::Differs,
                "the server waits before it answers: look for a proxy, an overloaded server or a lookup of the client's name",
            ),
            false => (State::Ok, ""),
        };
        Finding::new("round-trip", "the time of a small request", state, words).remedy(remedy)
    }
}

/// What is asked for without credentials. Whether it exists does not matter.
const PATH: &str = "/bucketload-doctor/none";

/// One request without credentials; the time is that from its first byte to the end of the answer.
async fn ask(
    connection: &mut Connection,
    client: &Client,
    endpoint: &Endpoint,
    date: &mut Vec<u8>,
) -> OpResult<(Reply, Duration)> {
    let mut head = endpoint.begin("HEAD");
    // Not of "/": radosgw answers that with a body, which no answer to HEAD may have.
    head.text(PATH);
    head.extend_from_slice(client.fields(0));
    let mut request = Plain::bare(head);
    let mut sink = OneField {
        name: "date",
        value: date,
    };
    connection
        .connect(client, endpoint, &mut Probe::untimed())
        .await?;
    let began = Instant::now();
    let reply = connection
        .perform(
            client,
            endpoint,
            &mut request,
            &mut sink,
            &mut Probe::untimed(),
        )
        .await?;
    Ok((reply, began.elapsed()))
}

fn keep_alive(sockets: &mut Vec<u64>) -> Finding {
    let requests = sockets.len();
    sockets.dedup();
    let words = match sockets.len() {
        1 => format!("{requests} requests on one connection"),
        n => format!("{requests} requests took {n} connections: the server closes them"),
    };
    let (state, remedy) = match sockets.len() {
        1 => (State::Ok, ""),
        _ => (
            State::Differs,
            "let the server (or the proxy before it) keep connections open; until then, each operation pays for a new one",
        ),
    };
    let asked = "further requests on the same connection";
    Finding::new("keep-alive", asked, state, words).remedy(remedy)
}

/// Compares the server's clock with ours; the answers carry whole seconds.
fn clock(dates: &[(Vec<u8>, u64)]) -> Finding {
    let asked = "the server's clock (Date)";
    let read = dates
        .iter()
        .find_map(|(date, now)| Some((date::parse_http(date)?, *now)));
    let Some((theirs, ours)) = read else {
        let words = match dates.first() {
            Some((date, _)) if !date.is_empty() => {
                format!(
                    "the answers carry an invalid date: {}",
                    String::from_utf8_lossy(date)
                )
            }
            _ => "the answers carry no Date field".to_owned(),
        };
        return Finding::new("clock", asked, State::Differs, words).remedy(
            "compare the clocks by other means; signed requests fail if they differ by minutes",
        );
    };
    let (skew, which) = match theirs >= ours {
        true => (theirs - ours, "ahead of"),
        false => (ours - theirs, "behind"),
    };
    match skew {
        0 | 1 => Finding::new("clock", asked, State::Ok, "the same as here, to the second"),
        _ => {
            let words = format!("{skew} s {which} this machine's");
            let (state, remedy) = match skew >= SKEW {
                true => (State::Differs, "set both clocks (NTP)"),
                false => (State::Ok, ""),
            };
            Finding::new("clock", asked, state, words).remedy(remedy)
        }
    }
}
