//! Unmodified MPI applications (IOR, mdtest, MD-Workbench, IO500) under the libs3 library and on plain files, in turn.
//!
//! The programs are built elsewhere, against any libs3 of version 4, and given by path. Everything lies on a tmpfs, and
//! two ranks run each program. A repetition runs every way once, in reverse order every other time; the figures are
//! those that the applications print.

mod io500;
mod programs;
mod ways;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use programs::{Figure, PROGRAMS, Program};
use ways::Way;

use super::gateway::library;
use super::{finish, median, option, value_of};
use crate::sh::{Result, ensure, need_programs};

const OPTIONS: [&str; 7] = [
    "--ior",
    "--mdtest",
    "--md-workbench",
    "--io500",
    "--libs3",
    "--versitygw",
    "--minio",
];

/// The values of a way in all repetitions, for each figure of a program.
type Values = Vec<Vec<f64>>;

/// Measures the applications whose paths are given, and compares with the goals.
///
/// `--ior`, `--mdtest`, `--md-workbench` and `--io500` name a program, or a directory that has it, or has it in `src`.
/// `--libs3 FILE` is the original library; with it, `--versitygw FILE` and `--minio FILE` are servers to run it against.
/// `--repetitions N` (default 5), `--quick` (small amounts of work, two repetitions), `--write` (the tables go into
/// `docs/performance.md`).
///
/// # Errors
/// An argument is unknown, a program fails, or a goal is missed.
pub(super) fn main(args: &[String]) -> Result {
    known(args)?;
    need_programs(&[("mpirun", "openmpi-bin")])?;
    let is_quick = args.iter().any(|arg| arg == "--quick");
    let repetitions = option(args, "--repetitions", if is_quick { 2 } else { 5 })?;
    let mut found = Vec::new();
    for program in &PROGRAMS {
        if let Some(path) = located(args, program.name)? {
            found.push((program, path));
        }
    }
    let io500 = located(args, "io500")?;
    ensure(
        !found.is_empty() || io500.is_some(),
        || "nothing to measure: name programs with --ior, --mdtest, --md-workbench or --io500",
    )?;
    let library = library()?;
    let ours = library.parent().ok_or("the library has no directory")?;
    let mut missed = Vec::new();
    if !found.is_empty() {
        let ways = Way::all(ours, args)?;
        let mut table = head(&ways);
        for (program, path) in found {
            table += &measure(program, &path, &ways, repetitions, is_quick, &mut missed)?;
        }
        finish("apps", args, &table, &[])?;
    }
    if let Some(program) = io500 {
        let table = io500::table(&program, ours, repetitions.min(3), is_quick, &mut missed)?;
        finish("io500", args, &table, &[])?;
    }
    crate::sh::none_of(&missed)
}

/// Refuses arguments that have no meaning, and options without a value.
fn known(args: &[String]) -> Result {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--quick" | "--write" => {}
            name if OPTIONS.contains(&name) || name == "--repetitions" => {
                rest.next().ok_or_else(|| format!("{name} needs a value"))?;
            }
            _ => {
                let options = OPTIONS.join(" PATH, ");
                return Err(format!(
                    "unknown argument {arg}: {options} PATH, --repetitions N, --quick, --write"
                ));
            }
        }
    }
    for server in ["--versitygw", "--minio"] {
        let has = |name| args.iter().any(|arg| arg == name);
        ensure(!has(server) || has("--libs3"), || {
            format!("{server} needs --libs3: the original library to run against it")
        })?;
    }
    Ok(())
}

/// The program that the option of this name gives.
fn located(args: &[String], name: &str) -> Result<Option<PathBuf>> {
    let Some(given) = value_of(args, &format!("--{name}"))? else {
        return Ok(None);
    };
    let given = std::path::absolute(given).map_err(|e| format!("--{name} {given}: {e}"))?;
    let places = [
        given.clone(),
        given.join(name),
        given.join("src").join(name),
    ];
    match places.into_iter().find(|path| path.is_file()) {
        Some(path) => Ok(Some(path)),
        None => Err(format!(
            "--{name}: {} is neither a program nor a directory with {name} or src/{name}; build it first",
            given.display()
        )),
    }
}

fn head(ways: &[Way]) -> String {
    let names: String = ways.iter().map(|way| format!(" {} |", way.name)).collect();
    let rules = "--:|".repeat(ways.len());
    format!("| program | figure |{names} embedded / POSIX | goal |\n|---|---|{rules}--:|--:|\n")
}

/// The lines of a program in the table.
fn measure(
    program: &Program,
    path: &Path,
    ways: &[Way],
    repetitions: u32,
    is_quick: bool,
    missed: &mut Vec<String>,
) -> Result<String> {
    let mut lines = String::new();
    for work in program.works(is_quick) {
        let mut values: Vec<Values> = vec![vec![Vec::new(); program.figures.len()]; ways.len()];
        let mut failed = vec![false; ways.len()];
        for repetition in 0..repetitions {
            let mut order: Vec<usize> = (0..ways.len()).collect();
            if repetition % 2 == 1 {
                order.reverse();
            }
            for at in order {
                if failed[at] || ways[at].is_foreign() && program.is_long(work) {
                    continue;
                }
                let run = ways[at].run(path, program, work);
                match run.and_then(|text| program.add(&text, &mut values[at])) {
                    Ok(()) => {}
                    // A foreign server's fault is not ours.
                    Err(why) if ways[at].is_foreign() => {
                        eprintln!("FAILED: {} {work}, {}: {why}", program.name, ways[at].name);
                        failed[at] = true;
                        values[at].fill(vec![f64::NAN]);
                    }
                    Err(why) => return Err(why),
                }
            }
        }
        for (at, figure) in program.figures.iter().enumerate() {
            let of_ways: Vec<&[f64]> = values.iter().map(|values| &*values[at]).collect();
            let (line, miss) = line(program.name, work, figure, &of_ways);
            eprint!("{line}");
            lines += &line;
            if miss {
                missed.push(line.trim_end().to_owned());
            }
        }
    }
    Ok(lines)
}

/// A line of the table, and whether its goal was missed.
fn line(program: &str, work: &str, figure: &Figure, values: &[&[f64]]) -> (String, bool) {
    let mut text = format!("| {program} {work} | {} |", figure.name);
    for values in values {
        if values.is_empty() || values[0].is_nan() {
            text += if values.is_empty() {
                " – |"
            } else {
                " failed |"
            };
            continue;
        }
        let (least, most) = range(values);
        let _ = write!(
            text,
            " {} ({}-{}) |",
            short(median(values)),
            short(least),
            short(most)
        );
    }
    let (posix, ours) = (median(values[0]), median(values[1]));
    let goals = [
        figure
            .of_posix
            .map(|goal| (format!("≥ {goal} of POSIX"), ours / posix < goal)),
        figure
            .at_least
            .map(|goal| (format!("≥ {}", short(goal)), ours < goal)),
    ];
    let miss = goals.iter().flatten().any(|(_, miss)| *miss);
    let goal: Vec<String> = goals.into_iter().flatten().map(|(goal, _)| goal).collect();
    let _ = writeln!(text, " {:.2} | {} |", ours / posix, goal.join(", "));
    (text, miss)
}

fn range(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(0.0, f64::max))
}

/// Three digits.
fn short(value: f64) -> String {
    match value {
        1e5.. => format!("{:.0} k", value / 1e3),
        1e4.. => format!("{:.1} k", value / 1e3),
        100.0.. => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURE: Figure = Figure {
        name: "writes",
        of_posix: Some(0.5),
        at_least: Some(100.0),
        read: |_| None,
    };

    #[test]
    fn both_goals_of_a_figure_count() {
        let posix: &[f64] = &[300.0, 200.0, 100.0];
        let (text, miss) = line("ior", "-t 1m", &FIGURE, &[posix, &[110.0]]);
        assert!(!miss, "{text}");
        assert_eq!(
            text,
            "| ior -t 1m | writes | 200 (100-300) | 110 (110-110) | 0.55 | ≥ 0.5 of POSIX, ≥ 100 |\n"
        );
        assert!(line("ior", "", &FIGURE, &[posix, &[99.0]]).1);
        assert!(line("ior", "", &FIGURE, &[&[400.0], &[150.0]]).1);
    }

    #[test]
    fn arguments_without_meaning_are_refused() {
        let refused = |line: &str| known(&crate::sh::words(line)).unwrap_err();
        assert!(refused("--iro x").contains("unknown argument --iro"));
        assert!(refused("--ior").contains("needs a value"));
        assert!(refused("--minio x").contains("--libs3"));
        assert_eq!(
            known(&crate::sh::words("--ior x --quick --repetitions 3")),
            Ok(())
        );
    }
}
