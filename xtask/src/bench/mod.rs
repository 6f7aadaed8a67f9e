//! Peer benchmarks: the client's CPU time compared with wrk, iperf3 and loops that only move bytes.
//!
//! Every figure is CPU time per request or per byte. Both sides of a row run the whole time, pinned to one core, with
//! their server on the other. They take turns of a tenth of a second ([`slices`]). Ratios are taken between
//! neighbouring slices, and their median is compared with the goal. If a client with 32 or more connections used less
//! than 0.8 of its core in a slice, the server or the scheduler was the limit and all figures are too high, so the
//! pair is repeated.

mod ai;
mod apps;
mod candidate;
mod drivers;
pub(crate) mod gateway;
mod libs3;
mod peers;
mod posix;
mod proxy;
mod ranks;
mod rows;
mod scale;
mod slices;
mod sockets;

use rows::{Per, Row};
use slices::{Slice, alternating};

use crate::program;
use crate::sh::{Result, cmd, need_programs, none_of, root, run, write_between};

const OPTIONS: [&str; 3] = ["--repetitions", "--write", "--before"];

/// Measures all rows, or those whose name contains one of the arguments, and compares with the goals.
///
/// `--repetitions N` sets the pairs of slices (default 100), `--write` puts the table into `docs/performance.md`,
/// `--before PROGRAM` compares with another build of ours instead. The word `engines` adds the rows against other
/// clients. The first word names another bench: `ai` what training, checkpoints and caches of language models cost,
/// `drivers` the native drivers beside the S3 driver, `posix` files beside fio, `ranks` ranks on files beside bare
/// system calls, `proxy` a connection through the idle fault line beside a plain one, `gateway` the access paths to a
/// directory, `libs3` the libs3 library beside files, `peers` the whole program beside other load generators, `apps`
/// applications under the libs3 library beside files, `scale` runs that are far larger than usual ones.
pub(crate) fn main(args: &[String]) -> Result {
    match args.first().map(String::as_str) {
        Some("ai") => return ai::main(&args[1..]),
        Some("drivers") => return drivers::main(args),
        Some("posix") => return posix::main(&args[1..]),
        Some("proxy") => return proxy::main(&args[1..]),
        Some("ranks") => return ranks::main(&args[1..]),
        Some("gateway") => return gateway::main(&args[1..]),
        Some("libs3") => return libs3::main(&args[1..]),
        Some("apps") => return apps::main(&args[1..]),
        Some("peers") => return peers::main(&args[1..]),
        Some("scale") => return scale::main(&args[1..]),
        _ => {}
    }
    need_programs(&[
        ("wrk", "wrk"),
        ("iperf3", "iperf3"),
        ("taskset", "util-linux"),
    ])?;
    if let Some(unknown) = args
        .iter()
        .find(|arg| arg.starts_with("--") && !OPTIONS.contains(&arg.as_str()))
    {
        return Err(format!("unknown option {unknown}: {}", OPTIONS.join(", ")));
    }
    let repetitions = option(args, "--repetitions", 100)?;
    let before = value_of(args, "--before")?;
    let words: Vec<&String> = args
        .iter()
        .filter(|arg| before != Some(arg))
        .filter(|arg| !arg.starts_with("--") && arg.parse::<u32>().is_err())
        .collect();
    let setup = rows::Setup::start()?;
    let mut table = String::from(
        "| row | against | goal | measured: median (quartiles, n) | our cost | its cost |\n|---|---|--:|--:|--:|--:|\n",
    );
    let mut missed = Vec::new();
    let mut rows = setup.rows()?;
    if words.iter().any(|word| word.contains("engines")) {
        rows.extend(setup.engine_rows());
    }
    if let Some(program) = before {
        let program = std::path::absolute(program).map_err(|e| format!("{program}: {e}"))?;
        rows = rows::beside(rows, &program);
    }
    for row in rows {
        if !words.is_empty() && !words.iter().any(|word| row.name.contains(word.as_str())) {
            continue;
        }
        let figures = measure(&row, repetitions)?;
        let line = figures.line(&row);
        eprintln!("{line}");
        table.push_str(&line);
        table.push('\n');
        if figures.median() > row.goal {
            missed.push(format!(
                "{}: {:.3} is above the goal {}",
                row.name,
                figures.median(),
                row.goal
            ));
        }
    }
    finish("ratios", args, &table, &missed)
}

/// Prints the table, puts it into `docs/performance.md` if `args` has `--write`, and fails if goals were missed.
fn finish(name: &str, args: &[String], table: &str, missed: &[String]) -> Result {
    println!("{table}");
    if args.iter().any(|arg| arg == "--write") {
        write_between(&root().join("docs/performance.md"), name, table)?;
    }
    none_of(missed)
}

/// Runs a reference client.
pub(crate) fn floor(args: &[String]) -> Result {
    let program = program::example("floor")?;
    run(&mut cmd(&program.to_string_lossy(), args))
}

/// The number that follows the flag `name`.
fn option(args: &[String], name: &str, default: u32) -> Result<u32> {
    match value_of(args, name)? {
        None => Ok(default),
        Some(text) => (text.parse().ok())
            .filter(|number| *number > 0)
            .ok_or_else(|| format!("{name} needs a number above 0")),
    }
}

/// The argument that follows the flag `name`.
fn value_of<'a>(args: &'a [String], name: &str) -> Result<Option<&'a String>> {
    let Some(at) = args.iter().position(|arg| arg == name) else {
        return Ok(None);
    };
    let value = args.get(at + 1);
    value
        .map(Some)
        .ok_or_else(|| format!("{name} needs a value"))
}

struct Figures {
    ratios: Vec<f64>,
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

impl Figures {
    fn median(&self) -> f64 {
        median(&self.ratios)
    }

    fn line(&self, row: &Row<'_>) -> String {
        let (lo, hi) = quartiles(&self.ratios);
        let n = self.ratios.len();
        let cost = |values: &[f64]| match row.per {
            Per::Op => format!("{:.2} µs", median(values) / 1e3),
            Per::GiB(_) | Per::GiBMore(_) => format!("{:.3} s/GiB", median(values) / 1e9),
        };
        format!(
            "| {} | {} | ≤ {} | {:.2} ({lo:.2}-{hi:.2}, n={n}) | {} | {} |",
            row.name,
            row.against,
            row.goal,
            self.median(),
            cost(&self.ours),
            cost(&self.theirs)
        )
    }
}

fn measure(row: &Row<'_>, repetitions: u32) -> Result<Figures> {
    let mut figures = Figures {
        ratios: Vec::new(),
        ours: Vec::new(),
        theirs: Vec::new(),
    };
    let counter = row.per.counter();
    let ours = row.ours.start(counter, row.server)?;
    let theirs = row.theirs.start(counter, row.server)?;
    let idle = |slice: &Slice| row.saturates && slice.cpu_ns / slice.wall_ns < 0.8;
    let mut pairs = alternating(repetitions, || ours.slice(), || theirs.slice())?;
    pairs.retain(|(ours, theirs)| !idle(ours) && !idle(theirs));
    if pairs.len() < repetitions as usize {
        let more = repetitions - pairs.len() as u32;
        eprintln!(
            "{}: a core was not busy in {more} pairs; repeated",
            row.name
        );
        pairs.extend(alternating(more, || ours.slice(), || theirs.slice())?);
    }
    ours.finish()?;
    theirs.finish()?;
    let cost = |slice: &Slice| match row.per {
        Per::Op => slice.cpu_ns / slice.moved,
        Per::GiB(_) | Per::GiBMore(_) => slice.cpu_ns / slice.moved * (1u64 << 30) as f64,
    };
    for (ours, theirs) in &pairs {
        let (ours, theirs) = (cost(ours), cost(theirs));
        figures.ratios.push(match row.per {
            Per::Op | Per::GiB(_) => ours / theirs,
            Per::GiBMore(_) => (ours - theirs) / 1e9,
        });
        figures.ours.push(ours);
        figures.theirs.push(theirs);
    }
    Ok(figures)
}

/// The lower and the upper quartile; the extremes of a hundred slices say nothing.
fn quartiles(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    (sorted[n / 4], sorted[n - 1 - n / 4])
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}
