//! What training, checkpoints and caches of language models cost the client: CPU time per GiB.
//!
//! A row runs the program twice, with little and with much data, and divides the difference in CPU time, by the kernel's
//! account of the finished process, by the difference in bytes. So neither the start of the program nor its report
//! counts, nor what else the machine does.

use std::fmt::Write as _;

use serde_json::Value;

use super::{finish, median, option, quartiles};
use crate::files::{self, TempDir};
use crate::process::accounted;
use crate::program::{self, Serve};
use crate::sh::{Result, need_programs};

/// Core of the servers; the program has both.
const SERVER_CORE: usize = 1;
/// Data that every read meets, GiB/s, and the cores that it has.
const RATE: f64 = 2.0;
const CORES: f64 = 2.0;
/// 4 GiB/s per core.
const CONTENT_GOAL: f64 = 0.25;
/// A tenth of two cores at 2 GiB/s.
const COUNTED_GOAL: f64 = 0.1;
/// Requests of the trace for the cache, and blocks of 64 MiB in each.
const REQUESTS: [u32; 2] = [2, 42];
const BLOCKS: u32 = 8;

/// A row: its name, the most seconds of CPU time per GiB, and the command lines with little and with much data. Bytes that
/// both lines write beside the ones to be measured do not count.
struct Row<'a> {
    name: &'static str,
    goal: f64,
    server: &'a Serve,
    lines: [String; 2],
    /// Which of the result's operations count.
    reads: bool,
}

/// Measures all rows, or those whose name contains one of the words. `--repetitions N` (default 5), `--write`.
pub(super) fn main(args: &[String]) -> Result {
    need_programs(&[("taskset", "util-linux")])?;
    let repetitions = option(args, "--repetitions", 5)?;
    let dir = TempDir::new("bench-ai")?;
    let launcher = format!("taskset -c {SERVER_CORE}");
    let serve = |store: &str| {
        Serve::start_with(&launcher, &format!("--store {store} --no-signature-check"))
    };
    // Objects of the null stores are as large as blocks of the cache, or larger than every object of which ranges are read.
    let blocks = serve("null --null-size 64MiB")?;
    let ranges = serve("null --null-size 4GiB")?;
    let memory = serve("memory")?;
    let traces = REQUESTS.map(|requests| trace(&dir, requests));
    let [few, many] = [traces[0].clone()?, traces[1].clone()?];
    let kept = dir.file("kept");
    let null_kept = dir.file("null-kept");
    let write = "checkpoint --phase write --pause 0s --count 4";
    for (server, out) in [(&memory, &kept), (&ranges, &null_kept)] {
        let line = format!("{write} --scale 1/200 --keep --out {out}");
        cpu(server, &dir, &line, false)?;
    }
    let train = "train --model unet3d --accelerator h100 --objects 28 --read-mode range --epochs";
    let cache = "kvcache --serial --block-bytes 64MiB --trace";
    let row = |name, goal, server, lines, reads| Row {
        name,
        goal,
        server,
        lines,
        reads,
    };
    let rows = [
        row(
            "checkpoint, written",
            CONTENT_GOAL,
            &blocks,
            ["1/100000", "1/100"].map(|scale| format!("{write} --scale {scale}")),
            false,
        ),
        row(
            "checkpoint, read and verified",
            CONTENT_GOAL,
            &memory,
            ["1", "4"]
                .map(|count| format!("checkpoint --pause 0s --read-from {kept} --count {count}")),
            true,
        ),
        row(
            "checkpoint, read and counted",
            COUNTED_GOAL,
            &ranges,
            ["1", "4"].map(|count| {
                format!("checkpoint --pause 0s --no-verify --read-from {null_kept} --count {count}")
            }),
            true,
        ),
        row(
            "train unet3d, counted",
            COUNTED_GOAL,
            &ranges,
            ["1", "9"].map(|epochs| format!("{train} {epochs}")),
            true,
        ),
        row(
            "kvcache, counted",
            COUNTED_GOAL,
            &blocks,
            [few, many].map(|file| format!("{cache} {file}")),
            true,
        ),
    ];
    let mut table = String::from(
        "| row | goal | CPU time: median (quartiles, n) | GiB/s per core | of two cores at 2 GiB/s |\n|---|--:|--:|--:|--:|\n",
    );
    let mut missed = Vec::new();
    let words: Vec<&String> = args
        .iter()
        .filter(|arg| !arg.starts_with("--") && arg.parse::<u32>().is_err())
        .collect();
    let wanted = |row: &&Row<'_>| {
        words.is_empty() || words.iter().any(|word| row.name.contains(word.as_str()))
    };
    for row in rows.iter().filter(wanted) {
        let costs = (0..repetitions).map(|_| cost(row, &dir));
        let costs: Vec<f64> = costs.collect::<Result<_>>()?;
        let (middle, (lo, hi)) = (median(&costs), quartiles(&costs));
        let line = format!(
            "| {} | ≤ {} s/GiB | {middle:.3} s/GiB ({lo:.3}-{hi:.3}, n={repetitions}) | {:.1} | {:.1} % |\n",
            row.name,
            row.goal,
            1.0 / middle,
            100.0 * middle * RATE / CORES
        );
        eprint!("{line}");
        table.push_str(&line);
        if middle > row.goal {
            missed.push(format!(
                "{}: {middle:.3} s/GiB are above the goal {}",
                row.name, row.goal
            ));
        }
    }
    finish("ai", args, &table, &missed)
}

/// Seconds of CPU time per GiB.
fn cost(row: &Row<'_>, dir: &TempDir) -> Result<f64> {
    let of = |line: &str| {
        cpu(
            row.server,
            dir,
            &format!("{line} --out {}", dir.file("out")),
            row.reads,
        )
    };
    let [(few_s, few), (many_s, many)] = [of(&row.lines[0])?, of(&row.lines[1])?];
    let (seconds, gib) = (many_s - few_s, (many - few) / (1u64 << 30) as f64);
    match gib > 0.5 && seconds > 0.0 {
        true => Ok(seconds / gib),
        false => Err(format!(
            "{}: {gib:.2} GiB more took {seconds:.3} s more, which is not measurable",
            row.name
        )),
    }
}

/// Runs `line` and returns the CPU time of the process, seconds, and the bytes that its measured operations read or wrote.
fn cpu(server: &Serve, dir: &TempDir, line: &str, reads: bool) -> Result<(f64, f64)> {
    let line = format!(
        "{line} --no-calibration --create-bucket --output json --quiet --target s3://bench/b --endpoint-url {}",
        server.url()
    );
    let mut command = program::bucketload(&line)?;
    command.envs(server.aws_env());
    let (said, used) = accounted(&mut command)?;
    let result: Value = serde_json::from_str(&said).map_err(|e| format!("{line}: {e}"))?;
    let out = dir.path().join("out");
    if out.exists() {
        files::remove_dir(&out)?;
    }
    let wanted = if reads { "get" } else { "put" };
    let phases = result["phases"].as_array().into_iter().flatten();
    let measured = phases.filter(|phase| phase["kind"] == "run");
    let classes = measured.flat_map(|phase| phase["classes"].as_array().into_iter().flatten());
    let counted = classes.filter(|class| program::text(&class["class"]).ends_with(wanted));
    let bytes: u64 = counted.map(|class| program::whole(&class["bytes"])).sum();
    match result["summary"]["failed"].as_u64() {
        Some(0) => Ok((used.cpu_s, bytes as f64)),
        _ => Err(format!("{line}: requests failed")),
    }
}

/// A trace whose requests all have the same prompt: the first writes its blocks, the others read them.
fn trace(dir: &TempDir, requests: u32) -> Result<String> {
    let ids: Vec<String> = (0..BLOCKS).map(|id| id.to_string()).collect();
    let mut text = String::new();
    for request in 0..requests {
        let _ = writeln!(
            text,
            "{{\"timestamp\": {request}, \"input_length\": {}, \"output_length\": 1, \"hash_ids\": [{}]}}",
            BLOCKS * 512,
            ids.join(", ")
        );
    }
    let file = dir.file(&format!("trace-{requests}.jsonl"));
    files::write(std::path::Path::new(&file), &text)?;
    Ok(file)
}
