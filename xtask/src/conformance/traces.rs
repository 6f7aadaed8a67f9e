//! Prepares a trace of 10 GiB for replay in constant memory.

use std::io::Write;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::files::TempDir;
use crate::process::status_bytes;
use crate::program::{bucketload, whole};
use crate::random::Random;
use crate::sh::Result;

/// Size of the generated trace, in bytes.
const BYTES: u64 = 10 << 30;
/// Largest resident memory of the importing process, in bytes.
const MEMORY: u64 = 100 << 20;
/// One in this many lines is broken: fewer than the tolerated thousandth.
const BROKEN: u64 = 5_000;

/// Generates lines in IBM's format, with times up to a minute out of order and 40 % new keys, and pipes them into a
/// dry run. Every line must be accounted for, and the process must stay below 100 MiB.
pub(crate) fn constant_memory() -> Result {
    let dir = TempDir::new("traces")?;
    let mut command = bucketload("replay - --dry-run --output json --quiet")?;
    command
        .current_dir(dir.path())
        .arg("--temp")
        .arg(dir.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|e| format!("bucketload replay: {e}"))?;
    let input = child.stdin.take().ok_or("no standard input")?;
    let (done, highest) = (AtomicBool::new(false), AtomicU64::new(0));
    let watched = child.id();
    let (lines, out) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let high_water = status_bytes(watched, "VmHWM").unwrap_or(0);
                highest.fetch_max(high_water, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let lines = scope.spawn(move || feed(std::io::BufWriter::with_capacity(1 << 20, input)));
        let out = wait(child);
        done.store(true, Ordering::Relaxed);
        (lines.join(), out)
    });
    let lines = lines
        .map_err(|_| "the generator panicked")?
        .map_err(|e| e.to_string())?;
    let found: Value = serde_json::from_str(&out?).map_err(|e| e.to_string())?;
    let trace = &found["trace"];
    let (records, broken) = (
        whole(&trace["records"]),
        whole(&trace["dropped"]["unknown-op"]),
    );
    let memory = highest.load(Ordering::Relaxed);
    eprintln!(
        "{lines} lines, {records} records, {broken} broken, {} keys, at most {} MiB",
        whole(&trace["keys"]),
        memory >> 20
    );
    if broken != lines.div_ceil(BROKEN) || records + broken != lines {
        return Err(format!(
            "{lines} lines became {records} records and {broken} broken ones"
        ));
    }
    match memory {
        0 => Err("the memory could not be measured".to_owned()),
        1..=MEMORY => Ok(()),
        more => Err(format!("the import took {} MiB, more than 100", more >> 20)),
    }
}

fn wait(child: Child) -> Result<String> {
    let out = child.wait_with_output().map_err(|e| e.to_string())?;
    if !out.status.success() {
        return Err(format!("bucketload replay: {}", out.status));
    }
    String::from_utf8(out.stdout).map_err(|e| e.to_string())
}

/// Writes the trace; returns the number of lines.
fn feed(mut out: impl Write) -> std::io::Result<u64> {
    let (mut bytes, mut lines) = (0, 0u64);
    let mut line = String::new();
    let mut random = Random(1);
    while bytes < BYTES {
        use std::fmt::Write as _;
        line.clear();
        let ms = lines / 2 + random.next() % 60_000;
        let (op, key) = match random.next() % 10 {
            0..4 => ("PUT", random.next()),
            _ => ("GET", random.next() % 1_000_000),
        };
        let op = if lines.is_multiple_of(BROKEN) {
            "BREW"
        } else {
            op
        };
        let size = 1 + key % 1_000_000;
        let _ = writeln!(line, "{ms} REST.{op}.OBJECT {key:016x} {size}");
        out.write_all(line.as_bytes())?;
        bytes += line.len() as u64;
        lines += 1;
    }
    out.flush()?;
    Ok(lines)
}
