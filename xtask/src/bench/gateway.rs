//! Access paths to the objects of a directory on tmpfs, measured in one run: `bucketload s3-hpc` with versitygw as an
//! additional row.
//!
//! Goals: over the gateway, the library writes and reads at least ten times as many small objects as the same number
//! of HTTP clients of versitygw on the same file system, and moves large objects at 0.7 times the bandwidth of plain
//! files or more. In the process it moves large objects at 0.95 times that bandwidth or more.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{finish, option};
use crate::files::{self, TempDir};
use crate::process::{Process, wait_until};
use crate::program::{self, bucketload, done, items, quoted};
use crate::server::{free_port, home};
use crate::sh::{Result, run, script, words};

/// Sizes of small and large objects, in bytes.
const SMALL: u64 = 4096;
const LARGE: u64 = 16 << 20;
/// Client counts for small objects; a client is a process with one operation in flight. Large objects have one
/// client.
const CLIENTS: [u32; 3] = [1, 4, 8];

/// Environment variable that names a library to load instead of the release build.
const INSTEAD: &str = "BUCKETLOAD_LIBS3";

/// libs3-bucketload, built on first use.
pub(crate) fn library() -> Result<PathBuf> {
    if let Some(instead) = std::env::var_os(INSTEAD) {
        return std::path::absolute(&instead).map_err(|e| format!("{INSTEAD}: {e}"));
    }
    program::libs3(4)
}

/// versitygw serving a directory of the caller; ended when dropped.
pub(crate) struct Versity {
    _process: Process,
    pub(crate) endpoint: String,
}

pub(crate) const ACCESS_KEY: &str = "testaccesskey0001";
pub(crate) const SECRET_KEY: &str = "testsecretkey00000000000000000000001";

impl Versity {
    pub(crate) fn start(objects: &Path) -> Result<Self> {
        run(&mut script("versitygw", "install"))?;
        files::make_dir(objects)?;
        let address = format!("127.0.0.1:{}", free_port()?);
        let mut command = Command::new(home().join("versitygw/bin/versitygw"));
        command
            .args(["--port", &address])
            .args(words("--region us-east-1 --quiet --keep-alive posix"))
            .arg(objects)
            .env("ROOT_ACCESS_KEY", ACCESS_KEY)
            .env("ROOT_SECRET_KEY", SECRET_KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let process = Process::start(&mut command)?;
        wait_until("versitygw listens", Duration::from_secs(30), || {
            Ok(std::net::TcpStream::connect(&address).is_ok())
        })?;
        Ok(Self {
            _process: process,
            endpoint: format!("http://{address}"),
        })
    }
}

/// Runs `bucketload s3-hpc` with versitygw below `place` and returns its result.
pub(crate) fn compare(place: &Path, flags: &str) -> Result<Value> {
    let versity = Versity::start(&place.join("versitygw"))?;
    let (place, library, endpoint) = (place.display(), library()?, &versity.endpoint);
    let line = format!(
        "s3-hpc --root {place}/objects --library {} --out {place}/study \
         --row 'versitygw=--target s3://bench --endpoint-url {endpoint} --region us-east-1' --output json {flags}",
        quoted(&library)?
    );
    let mut command = bucketload(&line)?;
    command
        .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
    done(&mut command)?.json()
}

/// The figure of `step` in the cell with this row, object size and number of client processes.
pub(crate) fn figure<'v>(
    result: &'v Value,
    row: &str,
    size: u64,
    clients: u32,
    step: &str,
) -> Option<&'v Value> {
    let cell = items(&result["cells"]).find(|cell| {
        cell["row"] == row && cell["size_bytes"] == size && cell["processes"] == clients
    })?;
    items(&cell["figures"]).find(|figure| figure["step"] == step)
}

struct Goal {
    what: &'static str,
    row: &'static str,
    against: &'static str,
    size: u64,
    step: &'static str,
    unit: &'static str,
    /// Smallest ratio that meets the goal; 0 for no goal.
    least: f64,
}

const fn small(what: &'static str, row: &'static str, step: &'static str, least: f64) -> Goal {
    Goal {
        what,
        row,
        against: "versitygw",
        size: SMALL,
        step,
        unit: "ops_per_s",
        least,
    }
}

const fn large(what: &'static str, row: &'static str, step: &'static str, least: f64) -> Goal {
    Goal {
        what,
        row,
        against: "posix",
        size: LARGE,
        step,
        unit: "bytes_per_s",
        least,
    }
}

/// Large objects over TCP on loopback have no goal: the kernel spends more per byte there than on reading a file.
const GOALS: [Goal; 14] = [
    small("write 4 KiB", "remote", "write", 10.0),
    small("read 4 KiB", "remote", "read", 10.0),
    small("stat", "remote", "stat", 0.0),
    small("delete", "remote", "delete", 0.0),
    small("write 4 KiB", "remote-unix", "write", 10.0),
    small("read 4 KiB", "remote-unix", "read", 10.0),
    small("stat", "remote-unix", "stat", 0.0),
    small("delete", "remote-unix", "delete", 0.0),
    large("write 16 MiB", "remote-unix", "write", 0.7),
    large("read 16 MiB", "remote-unix", "read", 0.7),
    large("write 16 MiB", "remote", "write", 0.0),
    large("read 16 MiB", "remote", "read", 0.0),
    large("write 16 MiB", "embedded", "write", 0.95),
    large("read 16 MiB", "embedded", "read", 0.95),
];

impl Goal {
    /// Returns a line of the table, and whether the goal was missed.
    fn judge(&self, result: &Value, clients: u32) -> Result<(String, bool)> {
        let of = |row| {
            figure(result, row, self.size, clients, self.step).and_then(|f| f[self.unit].as_f64())
        };
        let (Some(ours), Some(theirs)) = (of(self.row), of(self.against)) else {
            return Err(format!("no figure for {} of {}", self.what, self.row));
        };
        let ratio = ours / theirs;
        let shown = |value: f64| match self.unit {
            "bytes_per_s" => format!("{:.0} MiB/s", value / f64::from(1 << 20)),
            _ => format!("{:.1} k/s", value / 1e3),
        };
        let wanted = match self.least > 0.0 {
            true => format!("≥ {}", self.least),
            false => "none".to_owned(),
        };
        let line = format!(
            "| {} | {} | {clients} | {} | {wanted} | {ratio:.2} | {} | {} |\n",
            self.what,
            self.row,
            self.against,
            shown(ours),
            shown(theirs)
        );
        Ok((line, ratio < self.least))
    }
}

/// Measures and compares with the goals. `--repetitions N` (default 7), `--write`.
pub(super) fn main(args: &[String]) -> Result {
    let repetitions = option(args, "--repetitions", 7)?.to_string();
    let clients = CLIENTS.map(|clients| clients.to_string()).join(",");
    let mut table = String::from(
        "| step | way | clients | against | goal | measured | the way | the other |\n\
         |---|---|--:|---|--:|--:|--:|--:|\n",
    );
    let mut missed = Vec::new();
    for (size, rows, clients) in [
        ("4KiB", "posix,remote,remote-unix", &*clients),
        ("16MiB", "posix,embedded,remote,remote-unix", "1"),
    ] {
        let place = TempDir::in_memory("bench-gateway")?;
        let flags = format!(
            "--sizes {size} --rows {rows} --processes {clients} --objects 20000 --max-bytes 1GiB \
             --repetitions {repetitions} --no-floors"
        );
        let result = compare(place.path(), &flags)?;
        let of_size = |goal: &&Goal| (goal.size == LARGE) == (size == "16MiB");
        for goal in GOALS.iter().filter(of_size) {
            let all: &[u32] = if goal.size == LARGE { &[1] } else { &CLIENTS };
            for clients in all {
                let (line, is_missed) = goal.judge(&result, *clients)?;
                table += &line;
                if is_missed {
                    missed.push(line);
                }
            }
        }
    }
    finish("gateway", args, &table, &missed)
}
