//! The rows of the comparison and the servers they need.

use std::path::Path;

use super::candidate::{Candidate, pinned};
use super::sockets::Counter::{self, Received, Sent};
use crate::files::TempDir;
use crate::process::Process;
use crate::program::{Serve, quoted, self_signed};
use crate::server::free_port;
use crate::sh::{Result, root};

/// Core that servers are pinned to.
pub(super) const SERVER_CORE: usize = 1;

/// The unit of work that a cost refers to.
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
    /// The kernel's counter for this unit of work.
    pub(super) fn counter(self) -> Counter {
        match self {
            Self::Op => Counter::Answers,
            Self::GiB(counter) | Self::GiBMore(counter) => counter,
        }
    }
}

/// A comparison of two candidates.
pub(super) struct Row<'a> {
    pub(super) name: &'static str,
    pub(super) against: &'static str,
    /// Largest median ratio that meets the goal.
    pub(super) goal: f64,
    pub(super) per: Per,
    /// True if both sides have enough concurrency to fill their core.
    pub(super) saturates: bool,
    pub(super) ours: Candidate,
    pub(super) theirs: Candidate,
    /// The server that our side talks to.
    pub(super) server: &'a Serve,
}

/// Largest cost of our program relative to the build before a change.
const NO_WORSE: f64 = 1.02;

/// Compares our side of `rows` with another build of ours, each command line once.
pub(super) fn beside<'a>(rows: Vec<Row<'a>>, program: &Path) -> Vec<Row<'a>> {
    let mut seen: Vec<String> = Vec::new();
    rows.into_iter()
        .filter_map(|row| {
            let Candidate::Ours(line) = &row.ours else {
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

/// The servers of the benchmark: null stores for small and large objects, plain and over TLS, and iperf3.
pub(super) struct Setup {
    small: Serve,
    large: Serve,
    small_tls: Serve,
    large_tls: Serve,
    _iperf: Process,
    iperf_port: u16,
    ca: String,
    _certificates: TempDir,
}

/// The goal of small requests beside wrk, which signs nothing: SHA-256 without instructions for it costs more.
fn wrk_goal() -> f64 {
    #[cfg(target_arch = "x86_64")]
    let has_sha = std::arch::is_x86_feature_detected!("sha");
    // 64-bit Arm servers have them.
    #[cfg(not(target_arch = "x86_64"))]
    let has_sha = true;
    if has_sha { 1.0 } else { 1.2 }
}

impl Setup {
    /// Starts all servers on the server core.
    pub(super) fn start() -> Result<Self> {
        let certificates = TempDir::new("bench-tls")?;
        let (cert, key) = (certificates.file("cert.pem"), certificates.file("key.pem"));
        self_signed(&cert, &key)?;
        let launcher = format!("taskset -c {SERVER_CORE}");
        let tls = format!("--tls-cert {cert} --tls-key {key}");
        let serve = |size: &str, tls: &str| {
            Serve::start_with(
                &launcher,
                &format!("--store null --null-size {size} --threads 1 --no-signature-check {tls}"),
            )
        };
        let iperf_port = free_port()?;
        let mut iperf = pinned("iperf3", SERVER_CORE);
        iperf.args(["-s", "-B", "127.0.0.1", "-p", &iperf_port.to_string()]);
        iperf.stdout(std::process::Stdio::null());
        Ok(Self {
            small: serve("4KiB", "")?,
            large: serve("64MiB", "")?,
            small_tls: serve("4KiB", &tls)?,
            large_tls: serve("64MiB", &tls)?,
            _iperf: Process::start(&mut iperf)?,
            iperf_port,
            ca: cert,
            _certificates: certificates,
        })
    }

    fn ours(&self, server: &Serve, tls: bool, args: &str) -> Candidate {
        let (scheme, bundle) = match tls {
            true => ("https", format!("--ca-bundle {}", self.ca)),
            false => ("http", String::new()),
        };
        Candidate::Ours(format!(
            "{args} --no-calibration --create-bucket --target s3://bench/b --endpoint-url {scheme}://{} {bundle}",
            server.endpoint().0
        ))
    }

    fn small(&self, verb: &str, workers: &str, tls: bool) -> Candidate {
        let server = if tls { &self.small_tls } else { &self.small };
        let line = format!("{verb} --size 4KiB --objects 10000 --workers {workers}");
        self.ours(server, tls, &line)
    }

    fn engine(&self, verb: &str, engine: &str) -> Candidate {
        match self.small(verb, "64", false) {
            Candidate::Ours(line) => Candidate::Engine(format!("{line} --engine {engine}")),
            other => other,
        }
    }

    fn large(&self, verb: &str, tls: bool, more: &str) -> Candidate {
        let server = if tls { &self.large_tls } else { &self.large };
        let line = format!("{verb} --size 64MiB --objects 4 --workers 1 {more}");
        self.ours(server, tls, &line)
    }

    fn wrk(&self, connections: &str, put: bool) -> Result<Candidate> {
        let script = match put {
            true => format!("-s {}", quoted(&root().join("xtask/bench/put.lua"))?),
            false => String::new(),
        };
        let url = self.small.url();
        Ok(Candidate::Wrk(format!(
            "-t1 -c{connections} {script} {url}/bench/k"
        )))
    }

    fn iperf(&self, args: &str) -> Candidate {
        let port = self.iperf_port;
        Candidate::Iperf(format!("-c 127.0.0.1 -p {port} -l 1M {args}"))
    }

    /// All rows; each name begins with the number of its goal in the performance plan.
    pub(super) fn rows(&self) -> Result<Vec<Row<'_>>> {
        use Per::{GiB, GiBMore, Op};
        const VERIFIED: &str = "--verify --payload zeros";
        let row = |name, against, goal, per, saturates, (ours, theirs)| Row {
            name,
            against,
            goal,
            per,
            saturates,
            ours,
            theirs,
            server: &self.small,
        };
        let beside_wrk = |name, goal, verb, workers| {
            let wrk = self.wrk(workers, verb == "put")?;
            let sides = (self.small(verb, workers, false), wrk);
            let saturates = workers != "1";
            Ok::<_, String>(row(name, "wrk, unsigned", goal, Op, saturates, sides))
        };
        let beside_epoll = |name, goal, verb| {
            let floor = format!("epoll {verb} {} 64", self.small.endpoint().0);
            let sides = (self.small(verb, "64", false), Candidate::Floor(floor));
            row(name, "epoll loop, constant request", goal, Op, true, sides)
        };
        let beside_iperf = |name, against, goal, counter, verb, more, flags| {
            let sides = (self.large(verb, false, more), self.iperf(flags));
            row(name, against, goal, GiB(counter), false, sides)
        };
        let send = format!("send {} 67108864", self.large.endpoint().0);
        let puts = (self.large("put", false, ""), Candidate::Floor(send));
        let small = (
            self.small("get", "64", true),
            self.small("get", "64", false),
        );
        let large = (
            self.large("get", true, VERIFIED),
            self.large("get", false, VERIFIED),
        );
        let (down, up) = ("iperf3 -R -l 1M", "iperf3 -l 1M, sender");
        let plain = "our own without TLS";
        let copied = "our own without TLS, copied and verified like it; seconds more";
        Ok(vec![
            beside_wrk("1 GET 4 KiB, c=64", wrk_goal(), "get", "64")?,
            beside_wrk("2 PUT 4 KiB, c=64", wrk_goal(), "put", "64")?,
            beside_wrk("3 GET 4 KiB, c=256", wrk_goal(), "get", "256")?,
            beside_wrk("3 PUT 4 KiB, c=256", wrk_goal(), "put", "256")?,
            beside_epoll("4 GET 4 KiB, c=64", 1.15, "get"),
            beside_epoll("4 PUT 4 KiB, c=64", 1.25, "put"),
            beside_wrk("5 GET 4 KiB, c=1", 1.0, "get", "1")?,
            beside_iperf(
                "9 GET 64 MiB, counted",
                down,
                0.30,
                Received,
                "get",
                "",
                "-R",
            ),
            beside_iperf(
                "10 GET 64 MiB, verified",
                down,
                0.75,
                Received,
                "get",
                VERIFIED,
                "-R",
            ),
            beside_iperf("11 PUT 64 MiB", up, 0.75, Sent, "put", "", ""),
            row(
                "11 PUT 64 MiB",
                "bare send loop",
                1.10,
                GiB(Sent),
                false,
                puts,
            ),
            row("13 GET 4 KiB over TLS, c=64", plain, 1.25, Op, true, small),
            row(
                "13 GET 64 MiB over TLS",
                copied,
                0.20,
                GiBMore(Received),
                false,
                large,
            ),
        ])
    }

    /// Rows against other client engines. Building those takes minutes, so the rows are measured only on request.
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
