//! What the native drivers cost per request, beside the S3 driver: runs the drivers' example `gets`, which
//! measures them in turn, against a thread that answers everything alike (all of them, the goal's measure) and

//! against Hadoop itself.

use std::process::Command;

use super::finish;
use crate::own;
use crate::server::Server;
use crate::sh::{Result, cmd, output};

/// Most that a driver may cost, as a ratio to what as many requests by the S3 driver cost.
const GOAL: f64 = 1.3;
/// How long the slow S3 server holds back an answer: about as long as Hadoop takes for a GET.
const DELAY: &str = "2ms";

/// Measurements that are made together.
struct Set {
    name: &'static str,
    title: &'static str,
    /// How often all rows are measured in turn.
    repetitions: &'static str,
    /// Rows that have no goal: what they cost is shown.
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
        // How fast and in how many writes Hadoop answers is no driver's doing: what drivers cost is the first set.
        shown: &["s3-slow", "hdfs", "hdfs-library", "webhdfs"],
    },
];

/// Measures, prints the tables, and writes them into `docs/performance.md` with `--write`.
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
            missed.push("Hadoop was NOT measured: there is no java on the PATH".to_owned());
            continue;
        };
        tables.push_str(&table(set, &printed, &mut missed)?);
    }
    finish("drivers", args, &tables, &missed)
}

/// The example with the measurements of `set`.
fn gets(set: &Set) -> Result<Command> {
    let gets = own::example_with("gets", "--features bucketload-drivers/hdfs")?;
    Ok(cmd(&gets.to_string_lossy(), [set.repetitions, set.name]))
}

/// The table of what `set` printed; notes the goals that were missed.
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
