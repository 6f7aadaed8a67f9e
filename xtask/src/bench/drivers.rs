//! CPU time per request of the native drivers, compared with the S3 driver. Runs the drivers' example `gets`, which
//! measures the drivers in turn: all of them against a thread that answers every request alike (the goal applies
//! here), and the HDFS drivers against Hadoop itself.

use std::process::Command;

use super::finish;
use crate::program;
use crate::server::Server;
use crate::sh::{Result, cmd, output};

/// Largest cost of a driver, as a ratio to the same number of requests by the S3 driver.
const GOAL: f64 = 1.3;
/// Delay of each answer of the slow S3 server: about as long as Hadoop takes for a GET.
const DELAY: &str = "2ms";

/// Rows measured in turn with each other.
struct Set {
    name: &'static str,
    title: &'static str,
    /// Number of times that each row is measured.
    repetitions: &'static str,
    /// Rows without a goal, shown for comparison.
    shown: &'static [&'static str],
}

const SETS: [Set; 3] = [
    Set {
        name: "kept",
        title: "Connections stay open",
        repetitions: "101",
        shown: &[],
    },
    Set {
        name: "closing",
        title: "Answers end their connection (by WebHDFS those of data nodes)",
        repetitions: "9",
        shown: &["floor", "s3-closing"],
    },
    Set {
        name: "hdfs",
        title: "Hadoop, and S3 from the embedded server",
        repetitions: "9",
        // Hadoop decides how fast and in how many writes it answers, so the goal applies to the first set only.
        shown: &["s3-slow", "hdfs", "hdfs-library", "webhdfs"],
    },
];

/// Measures and prints the tables; `--write` puts them into `docs/performance.md`.
pub(super) fn main(args: &[String]) -> Result {
    let mut tables = String::new();
    let mut missed = Vec::new();
    for set in &SETS {
        let printed = if set.name != "hdfs" {
            output(&mut gets(set)?)?
        } else if cmd("java", ["-version"]).output().is_ok() {
            let server = Server::start("hdfs")?;
            output(gets(set)?.arg(DELAY).envs(&server.env))?
        } else {
            missed.push("Hadoop was NOT measured: no java on PATH".to_owned());
            continue;
        };
        tables.push_str(&table(set, &printed, &mut missed)?);
    }
    finish("drivers", args, &tables, &missed)
}

/// The call of the example that measures `set`.
fn gets(set: &Set) -> Result<Command> {
    let gets = program::example_with("gets", "--features bucketload-drivers/hdfs")?;
    Ok(cmd(&gets.to_string_lossy(), [set.repetitions, set.name]))
}

/// Formats what the example printed for `set` as a table, and adds missed goals to `missed`.
fn table(set: &Set, printed: &str, missed: &mut Vec<String>) -> Result<String> {
    let mut table = format!(
        "{}:\n\n| driver | requests per object | compared with | goal | cost as a ratio: median \
         (quartiles, n) | CPU time per object |\n|---|--:|---|--:|--:|--:|\n",
        set.title
    );
    for line in printed.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, requests, against, median, first, third, cost_ns] = fields.as_slice() else {
            return Err(format!("gets printed {line:?}"));
        };
        let number = |text: &str| text.parse::<f64>().map_err(|e| format!("{line:?}: {e}"));
        let bound = !set.shown.contains(name);
        let goal = if bound {
            format!("≤ {GOAL}")
        } else {
            "–".to_owned()
        };
        table.push_str(&format!(
            "| {name} | {requests} | {against} | {goal} | {:.2} ({:.2}-{:.2}, n={}) | {:.2} µs |\n",
            number(median)?,
            number(first)?,
            number(third)?,
            set.repetitions,
            number(cost_ns)? / 1e3
        ));
        if bound && number(median)? > GOAL {
            missed.push(format!("{name}: {median} is above {GOAL}"));
        }
    }
    table.push('\n');
    Ok(table)
}
