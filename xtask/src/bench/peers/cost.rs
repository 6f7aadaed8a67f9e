//! CPU time per request and memory of each tool, in turn against one server.
//!
//! A tool runs the whole time, on the client core, and only in its turns ([`slices`](super::super::slices)), so neither
//! its start nor the machine's speed matters. The kernel's counters of its sockets say how much it did: nobody's own
//! count is believed.

use std::fmt::Write as _;

use super::super::candidate::Candidate;
use super::super::slices::{Moved, Slice, Sliced};
use super::super::sockets::Counter;
use super::super::{median, quartiles};
use super::Peer;
use super::tools::Load;
use crate::files::{self, TempDir};
use crate::program::Serve;
use crate::sh::{Result, ensure};

/// A column of the table.
struct Job {
    name: &'static str,
    put: bool,
    size: u64,
    connections: u32,
}

const fn job(name: &'static str, put: bool, size: u64, connections: u32) -> Job {
    Job {
        name,
        put,
        size,
        connections,
    }
}

const JOBS: [Job; 6] = [
    job("GET 4 KiB", false, 4 << 10, 64),
    job("PUT 4 KiB", true, 4 << 10, 64),
    job("GET 1 MiB", false, 1 << 20, 16),
    job("PUT 1 MiB", true, 1 << 20, 16),
    job("GET 64 MiB", false, 64 << 20, 4),
    job("PUT 64 MiB", true, 64 << 20, 4),
];

/// The goal for GET and PUT of 4 KiB: ours over warp's.
const BESIDE_WARP: f64 = 0.15;

impl Job {
    /// What the kernel counts: answers of small requests, bytes of larger ones.
    fn counter(&self) -> Counter {
        match (self.size < 1 << 16, self.put) {
            (true, _) => Counter::Answers,
            (false, true) => Counter::Sent,
            (false, false) => Counter::Received,
        }
    }

    /// What a tool moves before its first turn, while it starts and prepares.
    fn beginning(&self, prepares: bool) -> u64 {
        match (self.counter(), prepares) {
            (Counter::Answers, true) => 30_000,
            (Counter::Answers, false) => 1_000,
            (_, true) => 1 << 30,
            (_, false) => 256 << 20,
        }
    }

    /// CPU time per request, nanoseconds.
    fn cost(&self, slice: &Slice) -> f64 {
        match self.counter() {
            Counter::Answers => slice.cpu_ns / slice.moved,
            Counter::Sent | Counter::Received => slice.cpu_ns / slice.moved * self.size as f64,
        }
    }
}

/// A tool that runs.
struct Side {
    name: String,
    sliced: Sliced,
    costs: Vec<f64>,
}

/// What was measured of a tool for a job.
enum Cell {
    Measured { costs: Vec<f64>, peak: u64 },
    Failed(String),
}

/// Measures all jobs. The tables and what failed, as text; adds to `missed` if ours costs more than its share of warp.
///
/// # Errors
/// Our program fails.
pub(super) fn table(peers: &[Peer], turns: u32, missed: &mut Vec<String>) -> Result<String> {
    let mut names = vec![
        "Bucketload".to_owned(),
        "Bucketload, content verified".to_owned(),
    ];
    names.extend(peers.iter().map(|peer| peer.name.clone()));
    let mut columns = Vec::new();
    for job in &JOBS {
        columns.push(measure(job, peers, turns)?);
    }
    let head: String = JOBS.iter().map(|job| format!(" {} |", job.name)).collect();
    let rule = "--:|".repeat(JOBS.len());
    let mut time = format!("| µs of CPU time per request | sends |{head}\n|---|---|{rule}\n");
    let mut memory = format!("| peak memory, MB | |{head}\n|---|---|{rule}\n");
    let mut failed = String::new();
    for (at, name) in names.iter().enumerate() {
        let sends = match at.checked_sub(2) {
            None => "S3, signed, a key out of many",
            Some(peer) => peers[peer].sends,
        };
        let _ = write!(time, "| {name} | {sends} |");
        let _ = write!(memory, "| {name} | |");
        for (job, cells) in JOBS.iter().zip(&columns) {
            match &cells[at] {
                Some(Cell::Measured { costs, peak }) => {
                    let (least, most) = quartiles(costs);
                    let shown = |ns: f64| micros(ns / 1e3);
                    let _ = write!(
                        time,
                        " {} ({}-{}) |",
                        shown(median(costs)),
                        shown(least),
                        shown(most)
                    );
                    let _ = write!(memory, " {} |", peak / 1_000_000);
                }
                Some(Cell::Failed(why)) => {
                    eprintln!("FAILED: {name}, {}: {why}", job.name);
                    let _ = writeln!(
                        failed,
                        "- {name} failed at {}: {}",
                        job.name,
                        first_line(why)
                    );
                    time += " failed |";
                    memory += " failed |";
                }
                None => {
                    time += " – |";
                    memory += " – |";
                }
            }
        }
        time.push('\n');
        memory.push('\n');
    }
    missed.extend(beside_warp(peers, &columns));
    Ok(format!(
        "{time}\nMedians (quartiles) of {turns} turns of a tenth of a second.\n\n{memory}\n{failed}"
    ))
}

/// Three digits are enough, and more than the noise has.
fn micros(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// If warp was measured, small requests of ours must cost at most their share of its.
fn beside_warp(peers: &[Peer], columns: &[Vec<Option<Cell>>]) -> Vec<String> {
    let warp = peers.iter().position(|peer| peer.name == "warp");
    let small = JOBS
        .iter()
        .zip(columns)
        .filter(|(job, _)| job.size == 4 << 10);
    small
        .filter_map(|(job, cells)| {
            let costs = |at: usize| match &cells[at] {
                Some(Cell::Measured { costs, .. }) => Some(median(costs)),
                _ => None,
            };
            let ratio = costs(0)? / costs(warp? + 2)?;
            (ratio > BESIDE_WARP)
                .then(|| format!("{}: {ratio:.3} of warp is above {BESIDE_WARP}", job.name))
        })
        .collect()
}

/// Measures one job with ours, ours with verified content, and every peer, in that order.
fn measure(job: &Job, peers: &[Peer], turns: u32) -> Result<Vec<Option<Cell>>> {
    let dir = TempDir::new("bench-peers")?;
    let place = dir.file("");
    let place = place.trim_end_matches('/');
    let server = Serve::start_with(
        "taskset -c 1",
        &format!(
            "--store null --null-size {} --threads 1 --no-signature-check",
            job.size
        ),
    )?;
    let (address, access_key, secret_key) = server.endpoint();
    let load = Load {
        address,
        access_key,
        secret_key,
        put: job.put,
        size: job.size,
        connections: job.connections,
        dir: place,
    };
    inputs(&load)?;
    let mut sides: Vec<Option<std::result::Result<Side, String>>> = Vec::new();
    for verified in [false, true] {
        let wanted = !(verified && job.put);
        sides.push(
            wanted
                .then(|| start_ours(job, verified, &dir, &server))
                .transpose()?
                .map(Ok),
        );
    }
    for peer in peers {
        let command = peer.load(&load);
        sides.push(command.map(|mut command| start(&peer.name, &mut command, job, false)));
    }
    for turn in 0..turns {
        let mut order: Vec<usize> = (0..sides.len()).collect();
        if turn % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let Some(Ok(side)) = &mut sides[at] else {
                continue;
            };
            match side.sliced.slice() {
                Ok(slice) => side.costs.push(job.cost(&slice)),
                Err(why) if at < 2 => return Err(why),
                Err(why) => sides[at] = Some(Err(why)),
            }
        }
    }
    Ok(sides
        .into_iter()
        .map(|side| side.map(|side| cell(job, side)))
        .collect())
}

fn cell(job: &Job, side: std::result::Result<Side, String>) -> Cell {
    let checked = side.and_then(|side| {
        complete(job, &side.sliced).map_err(|why| format!("{}: {why}", side.name))?;
        let peak = side.sliced.peak_bytes().ok_or("it ended early")?;
        Ok((side.costs, peak))
    });
    match checked {
        Ok((costs, peak)) => Cell::Measured { costs, peak },
        Err(why) => Cell::Failed(why),
    }
}

/// Fails if a tool's small requests moved less than an object each: answers were errors, or nothing was sent.
fn complete(job: &Job, sliced: &Sliced) -> Result {
    let Counter::Answers = job.counter() else {
        return Ok(());
    };
    let way = if job.put {
        Counter::Sent
    } else {
        Counter::Received
    };
    let each = sliced.traffic(way) / sliced.traffic(Counter::Answers).max(1);
    ensure(each >= job.size && each < 2 * job.size, || {
        format!("{each} bytes per request of {}", job.size)
    })
}

fn start_ours(job: &Job, verified: bool, dir: &TempDir, server: &Serve) -> Result<Side> {
    let verb = if job.put { "put" } else { "get" };
    let objects = if job.size < 1 << 16 { 10_000 } else { 64 };
    let (size, workers, url) = (job.size, job.connections, server.url());
    // The null store makes up zeros.
    let verify = if verified {
        "--verify --payload zeros"
    } else {
        ""
    };
    let name = if verified { "verified" } else { "ours" };
    let ours = Candidate::Ours(format!(
        "{verb} --size {size} --objects {objects} --workers {workers} --no-calibration --create-bucket {verify} \
         --target s3://bench/b --endpoint-url {url}"
    ));
    start(name, &mut ours.command(&dir.file(name), server)?, job, true)
}

fn start(
    name: &str,
    command: &mut std::process::Command,
    job: &Job,
    prepares: bool,
) -> Result<Side> {
    Ok(Side {
        name: name.to_owned(),
        sliced: Sliced::start(command, Moved::Over(job.counter()), job.beginning(prepares))?,
        costs: Vec::new(),
    })
}

/// Writes the files that tools read their request from.
fn inputs(load: &Load<'_>) -> Result {
    let Load {
        dir, address, size, ..
    } = load;
    let content: Vec<u8> = (0..*size as u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    files::write(format!("{dir}/body"), content)?;
    files::write(
        format!("{dir}/put.lua"),
        format!("wrk.method = \"PUT\"\nwrk.body = io.open(\"{dir}/body\", \"rb\"):read(\"*a\")\n"),
    )?;
    let (verb, body) = match load.put {
        true => ("PUT", format!("@{dir}/body\n")),
        false => ("GET", String::new()),
    };
    files::write(
        format!("{dir}/target"),
        format!("{verb} http://{address}/bench/k\n{body}"),
    )
}
