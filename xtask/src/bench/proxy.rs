//! What the idle fault line of a drill adds: CPU time of its process per request and per GiB, and response time.
//!
//! One client sends requests in slices that take turns: straight to the server, and through a fault line that breaks
//! nothing. As in all rows, the client has core 0 and the server core 1; so has the fault line, which runs on the last core in
//! a drill. CPU time is what the fault line's own clock says between the ends of its slices; response times are those of
//! one request at a time, compared by the medians of neighbouring slices. With 64 connections, a slice sends a request
//! over each and then takes the answers.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::{Value, json};

use super::candidate::{CLIENT_CORE, pinned};
use super::rows::SERVER_CORE;
use super::slices::alternating;
use super::{finish, median, option, quartiles};
use crate::process::Process;
use crate::program::{Serve, program, whole};
use crate::sh::{Result, ensure, need_programs};

/// Longest wait for bytes of an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Limits: CPU time per request of 4 KiB, and response time added to the median, nanoseconds.
const CPU_NS: f64 = 12_000.0;
const ADDED_NS: f64 = 60_000.0;

/// What a slice does.
struct Load {
    size: &'static str,
    connections: usize,
    /// Requests over each connection.
    requests: u32,
}

const ALONE: Load = Load {
    size: "4KiB",
    connections: 1,
    requests: 400,
};
const MANY: Load = Load {
    size: "4KiB",
    connections: 64,
    requests: 20,
};
const LARGE: Load = Load {
    size: "64MiB",
    connections: 1,
    requests: 4,
};

/// Measures and compares with the limits. `--repetitions N` sets the pairs of slices (default 100), `--write` puts the table
/// into `docs/performance.md`.
pub(super) fn main(args: &[String]) -> Result {
    need_programs(&[("taskset", "util-linux")])?;
    let repetitions = option(args, "--repetitions", 100)?;
    let mut here = CpuSet::new();
    here.set(CLIENT_CORE);
    sched_setaffinity(None, &here).map_err(|e| format!("a core for the client: {e}"))?;
    let (alone, many) = (measure(&ALONE, repetitions)?, measure(&MANY, repetitions)?);
    let large = measure(&LARGE, repetitions.div_ceil(10))?;
    let of = |pairs: &[Pair], value: fn(&Pair) -> f64| pairs.iter().map(value).collect::<Vec<_>>();
    let gib = |pair: &Pair| pair.cpu_ns / pair.bytes * (1u64 << 30) as f64;
    let rows = [
        (
            "CPU time per GET 4 KiB, c=64",
            Some(CPU_NS),
            of(&many, Pair::cpu_per_request),
        ),
        (
            "CPU time per GET 4 KiB, c=1",
            None,
            of(&alone, Pair::cpu_per_request),
        ),
        (
            "added to the median response time, GET 4 KiB, c=1",
            Some(ADDED_NS),
            of(&alone, |pair| pair.through_ns - pair.straight_ns),
        ),
        (
            "median response time without it",
            None,
            of(&alone, |pair| pair.straight_ns),
        ),
        ("CPU time per GiB, GET 64 MiB, c=1", None, of(&large, gib)),
    ];
    let mut table = String::from("| fault line | limit | median (quartiles, n) |\n|---|--:|--:|\n");
    let mut missed = Vec::new();
    for (name, limit, values) in &rows {
        let unit = |ns: f64| match ns >= 1e7 {
            true => format!("{:.3} s", ns / 1e9),
            false => format!("{:.1} µs", ns / 1e3),
        };
        let (middle, (low, high)) = (median(values), quartiles(values));
        let wanted = limit.map_or_else(|| "none".to_owned(), |limit| format!("≤ {}", unit(limit)));
        table += &format!(
            "| {name} | {wanted} | {} ({} to {}, n={}) |\n",
            unit(middle),
            unit(low),
            unit(high),
            values.len()
        );
        if limit.is_some_and(|limit| middle > limit) {
            missed.push(format!(
                "{name}: {} is above the limit {wanted}",
                unit(middle)
            ));
        }
    }
    finish("proxy", args, &table, &missed)
}

/// Two neighbouring slices.
struct Pair {
    /// Median response times, nanoseconds; 0 with several connections.
    straight_ns: f64,
    through_ns: f64,
    /// CPU time of the fault line in its slice, the requests, and the bytes that it carried.
    cpu_ns: f64,
    requests: f64,
    bytes: f64,
}

impl Pair {
    fn cpu_per_request(&self) -> f64 {
        self.cpu_ns / self.requests
    }
}

/// Pairs of slices of `load`.
fn measure(load: &Load, repetitions: u32) -> Result<Vec<Pair>> {
    let server = Serve::start_with(
        &format!("taskset -c {SERVER_CORE}"),
        &format!(
            "--store null --null-size {} --threads 1 --no-signature-check",
            load.size
        ),
    )?;
    let line = RefCell::new(Line::before(server.endpoint().0)?);
    let straight = RefCell::new(Client::to(server.endpoint().0, load)?);
    let through = RefCell::new(Client::to(&line.borrow().address, load)?);
    let slice = |client: &RefCell<Client>| {
        let before = line.borrow_mut().cost()?;
        let ns = client.borrow_mut().median_ns(load.requests)?;
        let after = line.borrow_mut().cost()?;
        Ok((ns, after.0 - before.0, after.1 - before.1))
    };
    // Connections and caches settle.
    slice(&straight)?;
    slice(&through)?;
    let pairs = alternating(repetitions, || slice(&through), || slice(&straight))?;
    let pairs = pairs
        .into_iter()
        .map(|((through_ns, cpu_ns, bytes), (straight_ns, _, strays))| {
            ensure(bytes > 0.0 && strays == 0.0, || {
                format!(
                    "the fault line carried {bytes} bytes in its slice and {strays} in the other"
                )
            })?;
            Ok(Pair {
                straight_ns,
                through_ns,
                cpu_ns,
                requests: f64::from(load.requests) * load.connections as f64,
                bytes,
            })
        });
    pairs.collect()
}

/// A fault line that breaks nothing; it ends with its standard input.
struct Line {
    orders: ChildStdin,
    reports: BufReader<ChildStdout>,
    address: String,
    _process: Process,
}

impl Line {
    /// Starts one before the server at `address`.
    fn before(address: &str) -> Result<Self> {
        let mut command = pinned(&program()?.to_string_lossy(), SERVER_CORE);
        command.arg("fault-line");
        let mut process = Process::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let (Some(orders), Some(reports)) =
            (process.child.stdin.take(), process.child.stdout.take())
        else {
            return Err("the fault line has no pipes".to_owned());
        };
        let mut line = Self {
            orders,
            reports: BufReader::new(reports),
            address: String::new(),
            _process: process,
        };
        let setup = json!({"seed": 1, "endpoints": [address], "faults": [], "struck": []});
        let report = line.ask(&setup)?;
        let listening = report["listening"][0].as_str();
        line.address = listening
            .ok_or_else(|| format!("the fault line does not listen: {report}"))?
            .to_owned();
        Ok(line)
    }

    fn ask(&mut self, question: &Value) -> Result<Value> {
        let failed = |e: std::io::Error| format!("the fault line: {e}");
        self.orders
            .write_all(format!("{question}\n").as_bytes())
            .map_err(failed)?;
        let mut answer = String::new();
        self.reports.read_line(&mut answer).map_err(failed)?;
        serde_json::from_str(&answer).map_err(|e| format!("the fault line said {answer:?}: {e}"))
    }

    /// CPU time so far (nanoseconds), and bytes carried.
    fn cost(&mut self) -> Result<(f64, f64)> {
        let report = self.ask(&json!("cost"))?;
        let of = |field: &str| whole(&report["cost"][field]) as f64;
        ensure(of("cpu_ns") > 0.0, || format!("no cost in {report}"))?;
        Ok((of("cpu_ns"), of("bytes")))
    }
}

/// A client of one thread.
struct Client {
    streams: Vec<TcpStream>,
    buffer: Vec<u8>,
}

impl Client {
    fn to(address: &str, load: &Load) -> Result<Self> {
        let failed = |e: std::io::Error| format!("{address}: {e}");
        let connect = |_| {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        let streams = (0..load.connections)
            .map(connect)
            .collect::<std::io::Result<_>>();
        Ok(Self {
            streams: streams.map_err(failed)?,
            buffer: vec![0; 256 << 10],
        })
    }

    /// Sends `count` requests over each connection; returns the median time from a request to the end of the answers.
    fn median_ns(&mut self, count: u32) -> Result<f64> {
        let mut times = Vec::new();
        for _ in 0..count {
            let began = Instant::now();
            for stream in &mut self.streams {
                let sent = stream.write_all(b"GET /bench/k HTTP/1.1\r\nHost: bench\r\n\r\n");
                sent.map_err(|e| format!("GET: {e}"))?;
            }
            for stream in &mut self.streams {
                take(stream, &mut self.buffer)?;
            }
            times.push(began.elapsed().as_nanos() as f64);
        }
        Ok(median(&times))
    }
}

/// Reads an answer.
fn take(stream: &mut TcpStream, buffer: &mut [u8]) -> Result {
    let (mut seen, mut wanted) = (0, usize::MAX);
    while seen < wanted {
        // The head stays in front until it is whole.
        let free = if wanted == usize::MAX { seen } else { 0 };
        let n = stream
            .read(&mut buffer[free..])
            .map_err(|e| format!("GET: {e}"))?;
        ensure(n > 0, || "GET: the server closed the connection")?;
        seen += n;
        if wanted == usize::MAX {
            wanted = whole_length(&buffer[..seen])?.unwrap_or(wanted);
        }
    }
    Ok(())
}

/// Length of the answer that `bytes` begin, head included; `None` if the head is not whole.
fn whole_length(bytes: &[u8]) -> Result<Option<usize>> {
    let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    ensure(head.starts_with("http/1.1 200 "), || format!("GET: {head}"))?;
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|text| text.trim().parse::<usize>().ok());
    length
        .map(|length| Some(end + 4 + length))
        .ok_or_else(|| format!("no length in {head}"))
}

#[cfg(test)]
mod tests {
    use super::whole_length;

    #[test]
    fn an_answer_is_as_long_as_its_head_says() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab";
        assert_eq!(whole_length(answer), Ok(Some(answer.len() + 3)));
        assert_eq!(whole_length(&answer[..20]), Ok(None));
        assert!(whole_length(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n").is_err());
    }
}
