//! The rows of the comparison and the servers they need.

use std::path::Path;

use super::candidate::{Candidate, pinned};
use super::sockets::Counter::{self, Received, Sent};
use crate::own::{Serve, TempDir};
use crate::server::free_port;
use crate::sh::{Result, root};

/// Core that servers are pinned to.
const SERVER_CORE: usize = 1;

/// What a ratio is taken over.
#[derive(Clone, Copy)]
pub(super) enum Per {
    /// CPU time per request.
    Op,
    /// CPU time per GiB.
    GiB(Counter),
    /// Difference of the CPU times per GiB, in seconds.
    GiBMore(Counter),
}

impl Per {
    /// What is counted.
    pub(super) fn counter(self) -> Counter {
        match self {
            Self::Op => Counter::Answers,
            Self::GiB(counter) | Self::GiBMore(counter) => counter,
        }
    }
}

/// One comparison.
pub(super) struct Row<'a> {
    pub(super) name: &'static str,
    pub(super) against: &'static str,
    /// Largest median ratio that meets the goal.
    pub(super) goal: f64,
    pub(super) per: Per,
    /// Whether both sides have enough concurrency to fill their core.
    pub(super) saturates: bool,
    pub(super) ours: Candidate,
    pub(super) theirs: Candidate,
    /// The server that our side talks to.
    pub(super) server: &'a Serve,
}

/// What our program may cost more than the one before a change.
const NO_WORSE: f64 = 1.02;

/// Our side of `rows`, each once, beside another build of ours.
pub(super) fn beside<'a>(rows: Vec<Row<'a>>, program: &Path) -> Vec<Row<'a>> {
    let mut seen: Vec<Vec<String>> = Vec::new();
    rows.into_iter()
        .filter_map(|row| {
            let Candidate::Own(line) = &row.ours else {
                return None;
            };
            let line = line.clone();
            if seen.contains(&line) {
                return None;
            }
            seen.push(line.clone());
            Some(Row {
                against: "the program before",
                goal: NO_WORSE,
                per: match row.per {
                    Per::GiBMore(counter) => Per::GiB(counter),
                    per => per,
                },
                theirs: Candidate::Before(program.to_owned(), line),
                ..row
            })
        })
        .collect()
}

/// The servers of a benchmark: null stores for small and large objects, plain and TLS, and iperf3.
pub(super) struct Setup {
    small: Serve,
    large: Serve,
    small_tls: Serve,
    large_tls: Serve,
    iperf: std::process::Child,
    iperf_port: u16,
    ca: String,
    _certificates: TempDir,
}

impl Drop for Setup {
    fn drop(&mut self) {
        let _ = self.iperf.kill();
        let _ = self.iperf.wait();
    }
}

impl Setup {
    /// Starts all servers on the server core.
    pub(super) fn start() -> Result<Self> {
        let certificates = TempDir::new("bench-tls")?;
        let (cert, key) = (certificates.file("cert.pem"), certificates.file("key.pem"));
        crate::own::self_signed(&cert, &key)?;
        let core = SERVER_CORE.to_string();
        let launcher = ["taskset", "-c", core.as_str()];
        let serve = |size: &str, tls: bool| {
            let mut args = vec![
                "--store",
                "null",
                "--null-size",
                size,
                "--threads",
                "1",
                "--no-signature-check",
            ];
            if tls {
                args.extend(["--tls-cert", cert.as_str(), "--tls-key", key.as_str()]);
            }
            Serve::start_with(&launcher, &args)
        };
        let iperf_port = free_port()?;
        let mut iperf = pinned("iperf3", SERVER_CORE);
        iperf.args(["-s", "-B", "127.0.0.1", "-p", &iperf_port.to_string()]);
        iperf.stdout(std::process::Stdio::null());
        Ok(Self {
            small: serve("4KiB", false)?,
            large: serve("64MiB", false)?,
            small_tls: serve("4KiB", true)?,
            large_tls: serve("64MiB", true)?,
            iperf: iperf.spawn().map_err(|e| format!("iperf3: {e}"))?,
            iperf_port,
            ca: cert,
            _certificates: certificates,
        })
    }

    fn own(&self, server: &Serve, tls: bool, args: &[&str]) -> Candidate {
        let scheme = if tls { "https" } else { "http" };
        let mut line: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        line.extend(
            [
                "--no-calibration",
                "--create-bucket",
                "--target",
                "s3://bench/b",
                "--endpoint-url",
            ]
            .map(str::to_owned),
        );
        line.push(format!("{scheme}://{}", server.endpoint().0));
        if tls {
            line.extend(["--ca-bundle".to_owned(), self.ca.clone()]);
        }
        Candidate::Own(line)
    }

    fn small(&self, verb: &str, workers: &str, tls: bool) -> Candidate {
        let server = if tls { &self.small_tls } else { &self.small };
        self.own(
            server,
            tls,
            &[
                verb,
                "--size",
                "4KiB",
                "--objects",
                "10000",
                "--workers",
                workers,
            ],
        )
    }

    fn engine(&self, verb: &str, engine: &str) -> Candidate {
        match self.small(verb, "64", false) {
            Candidate::Own(mut line) => {
                line.extend(["--engine", engine].map(str::to_owned));
                Candidate::Engine(line)
            }
            other => other,
        }
    }

    fn large(&self, verb: &str, tls: bool, more: &[&str]) -> Candidate {
        let server = if tls { &self.large_tls } else { &self.large };
        let args = [
            &[verb, "--size", "64MiB", "--objects", "4", "--workers", "1"],
            more,
        ]
        .concat();
        self.own(server, tls, &args)
    }

    fn wrk(&self, connections: &str, put: bool) -> Candidate {
        let mut line = vec!["-t1".to_owned(), format!("-c{connections}")];
        if put {
            line.extend([
                "-s".to_owned(),
                root()
                    .join("xtask/bench/put.lua")
                    .to_string_lossy()
                    .into_owned(),
            ]);
        }
        line.push(format!("http://{}/bench/k", self.small.endpoint().0));
        Candidate::Wrk(line)
    }

    fn floor(&self, args: &[&str]) -> Candidate {
        Candidate::Floor(args.iter().map(|arg| (*arg).to_owned()).collect())
    }

    fn iperf(&self, args: &[&str]) -> Candidate {
        let port = self.iperf_port.to_string();
        let base = ["-c", "127.0.0.1", "-p", &port, "-l", "1M"];
        Candidate::Iperf(
            [&base, args]
                .concat()
                .iter()
                .map(|arg| (*arg).to_owned())
                .collect(),
        )
    }

    /// All rows; names begin with the number of the goal in the performance plan.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let row = |name, against, goal, per, saturates, ours, theirs| Row {
            name,
            against,
            goal,
            per,
            saturates,
            ours,
            theirs,
            server: &self.small,
        };
        let (small, large) = (self.small.endpoint().0, self.large.endpoint().0);
        use Per::{GiB, GiBMore, Op};
        vec![
            row(
                "1 GET 4 KiB, c=64",
                "wrk, unsigned",
                0.90,
                Op,
                true,
                self.small("get", "64", false),
                self.wrk("64", false),
            ),
            row(
                "2 PUT 4 KiB, c=64",
                "wrk, unsigned",
                0.90,
                Op,
                true,
                self.small("put", "64", false),
                self.wrk("64", true),
            ),
            row(
                "3 GET 4 KiB, c=256",
                "wrk, unsigned",
                0.95,
                Op,
                true,
                self.small("get", "256", false),
                self.wrk("256", false),
            ),
            row(
                "3 PUT 4 KiB, c=256",
                "wrk, unsigned",
                0.95,
                Op,
                true,
                self.small("put", "256", false),
                self.wrk("256", true),
            ),
            row(
                "4 GET 4 KiB, c=64",
                "epoll loop, constant request",
                1.15,
                Op,
                true,
                self.small("get", "64", false),
                self.floor(&["epoll", "get", small, "64"]),
            ),
            row(
                "4 PUT 4 KiB, c=64",
                "epoll loop, constant request",
                1.25,
                Op,
                true,
                self.small("put", "64", false),
                self.floor(&["epoll", "put", small, "64"]),
            ),
            row(
                "5 GET 4 KiB, c=1",
                "wrk, unsigned",
                1.0,
                Op,
                false,
                self.small("get", "1", false),
                self.wrk("1", false),
            ),
            row(
                "9 GET 64 MiB, counted",
                "iperf3 -R -l 1M",
                0.30,
                GiB(Received),
                false,
                self.large("get", false, &[]),
                self.iperf(&["-R"]),
            ),
            row(
                "10 GET 64 MiB, verified",
                "iperf3 -R -l 1M",
                0.75,
                GiB(Received),
                false,
                self.large("get", false, &["--verify", "--payload", "zeros"]),
                self.iperf(&["-R"]),
            ),
            row(
                "11 PUT 64 MiB",
                "iperf3 -l 1M, sender",
                0.75,
                GiB(Sent),
                false,
                self.large("put", false, &[]),
                self.iperf(&[]),
            ),
            row(
                "11 PUT 64 MiB",
                "bare send loop",
                1.10,
                GiB(Sent),
                false,
                self.large("put", false, &[]),
                self.floor(&["send", large, "67108864"]),
            ),
            row(
                "13 GET 4 KiB over TLS, c=64",
                "our own without TLS",
                1.25,
                Op,
                true,
                self.small("get", "64", true),
                self.small("get", "64", false),
            ),
            row(
                "13 GET 64 MiB over TLS",
                "our own without TLS, copied and verified like it; seconds more",
                0.20,
                GiBMore(Received),
                false,
                self.large("get", true, &["--verify", "--payload", "zeros"]),
                self.large("get", false, &["--verify", "--payload", "zeros"]),
            ),
        ]
    }

    /// Rows against other client engines, which take minutes to build: they are measured when they
    /// are named.
    pub(super) fn engine_rows(&self) -> Vec<Row<'_>> {
        let row = |name, verb, against, goal| Row {
            name,
            against,
            goal,
            per: Per::Op,
            saturates: true,
            ours: self.small(verb, "64", false),
            theirs: self.engine(verb, against),
            server: &self.small,
        };
        vec![
            row("7 engines: GET 4 KiB, c=64", "get", "aws-sdk", 0.15),
            row("7 engines: PUT 4 KiB, c=64", "put", "aws-sdk", 0.15),
            row("7 engines: GET 4 KiB, c=64", "get", "object-store", 0.50),
            row("7 engines: PUT 4 KiB, c=64", "put", "object-store", 0.50),
            row("7 engines: GET 4 KiB, c=64", "get", "opendal", 0.50),
            row("7 engines: PUT 4 KiB, c=64", "put", "opendal", 0.50),
        ]
    }
}
