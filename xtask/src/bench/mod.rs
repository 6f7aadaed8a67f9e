//! Peer benchmarks: what the client costs beside wrk, iperf3 and loops that do nothing else.
//!
//! Every figure is CPU time over requests or bytes. One repetition measures both sides of a row once,
//! in alternating order, pinned to one core with the server on the other; the ratio is taken inside
//! the repetition and the median of the repetitions is compared with the goal. A repetition in which
//! a client used less than 0.8 of its core although it had 32 connections or more is repeated: then
//! the server or the scheduler was the limit and every figure rises.

mod candidate;
mod drivers;
pub(crate) mod floor;
pub(crate) mod gateway;
mod libs3;
mod posix;
mod rows;
mod slices;

use std::fmt::Write as _;

use candidate::Sample;
use rows::{Per, Row};

use crate::sh::{Result, need_programs, root};

/// Measures all rows, or those whose name contains one of the arguments, and compares with the goals.
/// `--repetitions N` (default 7, at least 7 for a verdict), `--seconds N` (default 2), `--write` puts
/// the table into `docs/performance.md`. The word `engines` names the rows against other clients;
/// `drivers`, as the first word, the native drivers beside the S3 driver, `posix` files beside fio,
/// `gateway` the ways to the objects of a directory, `libs3` the libs3 library beside files.
pub(crate) fn main(args: &[String]) -> Result {
    match args.first().map(String::as_str) {
        Some("drivers") => return drivers::main(args),
        Some("posix") => return posix::main(&args[1..]),
        Some("gateway") => return gateway::main(&args[1..]),
        Some("libs3") => return libs3::main(&args[1..]),
        _ => {}
    }
    need_programs(&[
        ("wrk", "wrk"),
        ("iperf3", "iperf3"),
        ("taskset", "util-linux"),
    ])?;
    let repetitions = option(args, "--repetitions", 7)?;
    let seconds = option(args, "--seconds", 2)?;
    let words: Vec<&String> = args
        .iter()
        .filter(|arg| !arg.starts_with("--") && arg.parse::<u32>().is_err())
        .collect();
    let setup = rows::Setup::start()?;
    let mut table = String::from(
        "| row | against | goal | measured: median (range, n) | our cost | its cost |\n|---|---|--:|--:|--:|--:|\n",
    );
    let mut missed = Vec::new();
    let mut rows = setup.rows();
    if words.iter().any(|word| word.contains("engines")) {
        rows.extend(setup.engine_rows());
    }
    for row in rows {
        if !words.is_empty() && !words.iter().any(|word| row.name.contains(word.as_str())) {
            continue;
        }
        let figures = measure(&row, repetitions, seconds)?;
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
    println!("{table}");
    if args.iter().any(|arg| arg == "--write") {
        write_table("ratios", &table)?;
    }
    if missed.is_empty() {
        Ok(())
    } else {
        Err(missed.join("\n"))
    }
}

/// The number behind the flag `name`.
fn option(args: &[String], name: &str, default: u32) -> Result<u32> {
    match args.iter().position(|arg| arg == name) {
        None => Ok(default),
        Some(at) => args
            .get(at + 1)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| format!("{name} needs a number")),
    }
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
        let (lo, hi) = self
            .ratios
            .iter()
            .fold((f64::MAX, f64::MIN), |(lo, hi), &x| (lo.min(x), hi.max(x)));
        let cost = |values: &[f64]| match row.per {
            Per::Op => format!("{:.2} µs", median(values) / 1e3),
            Per::GiB | Per::GiBMore => format!("{:.3} s/GiB", median(values) / 1e9),
        };
        format!(
            "| {} | {} | ≤ {} | {:.2} ({lo:.2}-{hi:.2}, n={}) | {} | {} |",
            row.name,
            row.against,
            row.goal,
            self.median(),
            self.ratios.len(),
            cost(&self.ours),
            cost(&self.theirs)
        )
    }
}

fn measure(row: &Row<'_>, repetitions: u32, seconds: u32) -> Result<Figures> {
    let mut figures = Figures {
        ratios: Vec::new(),
        ours: Vec::new(),
        theirs: Vec::new(),
    };
    let mut discarded = 0;
    while (figures.ratios.len() as u32) < repetitions {
        let ours_first = figures.ratios.len().is_multiple_of(2);
        let mut pair = [None, None];
        for side in if ours_first { [0, 1] } else { [1, 0] } {
            let candidate = if side == 0 { &row.ours } else { &row.theirs };
            pair[side] = Some(candidate.sample(seconds, row.server)?);
        }
        let [Some(ours), Some(theirs)] = pair else {
            continue;
        };
        let idle = |sample: &Sample| row.saturates && sample.cpu_ns / sample.wall_ns < 0.8;
        if (idle(&ours) || idle(&theirs)) && discarded < repetitions {
            discarded += 1;
            eprintln!("{}: a core was not used; repeated", row.name);
            continue;
        }
        let cost = |sample: &Sample| match row.per {
            Per::Op => sample.cpu_ns / sample.ops,
            Per::GiB | Per::GiBMore => sample.cpu_ns / sample.bytes * (1u64 << 30) as f64,
        };
        let (ours, theirs) = (cost(&ours), cost(&theirs));
        figures.ratios.push(match row.per {
            Per::Op | Per::GiB => ours / theirs,
            Per::GiBMore => (ours - theirs) / 1e9,
        });
        figures.ours.push(ours);
        figures.theirs.push(theirs);
    }
    Ok(figures)
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

/// Replaces the part of `docs/performance.md` between the markers called `name` by the new table.
fn write_table(name: &str, table: &str) -> Result {
    let path = root().join("docs/performance.md");
    let at = |e: std::io::Error| format!("{}: {e}", path.display());
    let text = std::fs::read_to_string(&path).map_err(at)?;
    let begin = format!("<!-- {name} -->\n");
    let end = format!("<!-- end of {name} -->");
    let (Some(from), Some(to)) = (text.find(&begin), text.find(&end)) else {
        return Err(format!("{}: the markers are missing", path.display()));
    };
    let mut new = text[..from + begin.len()].to_owned();
    let _ = writeln!(new, "\n{table}");
    new.push_str(&text[to..]);
    std::fs::write(&path, new).map_err(at)
}
