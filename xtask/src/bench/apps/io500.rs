//! `bucketload io500` beside the real IO500: the same configuration and ranks, on a tmpfs, phase by phase.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::super::median;
use super::ways::mpirun;
use crate::files::{self, TempDir};
use crate::process::Process;
use crate::program::run_bucketload;
use crate::sh::{Result, ensure};

/// Bounds of the ratio, ours over the real one.
const GOAL: (f64, f64) = (0.95, 1.10);
/// Longest run of the real program.
const PATIENCE: Duration = Duration::from_secs(600);

/// Amounts of work that end before the stonewall, so that both do the same; only the random reads last until it.
const FULL: &str = "[debug]\nstonewall-time = 10\n[ior-easy]\nblockSize = 512m\n[ior-hard]\nsegmentCount = 5000\n\
                    [mdtest-easy]\nn = 20000\n[mdtest-hard]\nn = 5000\n";
const QUICK: &str = "[debug]\nstonewall-time = 2\n[ior-easy]\nblockSize = 64m\n[ior-hard]\nsegmentCount = 500\n\
                     [mdtest-easy]\nn = 1000\n[mdtest-hard]\nn = 500\n";

/// Figures by phase, in the order of the phases.
type Phases = Vec<(String, f64)>;

/// Measures both programs in turn and compares each phase.
pub(super) fn table(
    program: &Path,
    library: &Path,
    repetitions: u32,
    is_quick: bool,
    missed: &mut Vec<String>,
) -> Result<String> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for repetition in 0..repetitions {
        for first in [true, false] {
            match first == (repetition % 2 == 0) {
                true => ours.push(run(None, library, is_quick)?),
                false => theirs.push(run(Some(program), library, is_quick)?),
            }
        }
    }
    let mut table = String::from(
        "| phase | goal | ours / real | ours: median (range) | real: median (range) |\n|---|--:|--:|--:|--:|\n",
    );
    for (at, (name, _)) in theirs[0].iter().enumerate() {
        let of = |runs: &[Phases]| -> Result<Vec<f64>> {
            let values = runs.iter().map(|phases| match phases.get(at) {
                Some((other, value)) if other == name => Ok(*value),
                _ => Err(format!("{name} is missing in a result")),
            });
            values.collect()
        };
        let (ours, theirs) = (of(&ours)?, of(&theirs)?);
        let ratio = median(&ours) / median(&theirs);
        let has_goal = !name.starts_with("score");
        let goal = match has_goal {
            true => format!("{} to {:.2}", GOAL.0, GOAL.1),
            false => String::new(),
        };
        let line = format!(
            "| {name} | {goal} | {ratio:.2} | {} | {} |",
            spread(&ours),
            spread(&theirs)
        );
        eprintln!("{line}");
        let _ = writeln!(table, "{line}");
        if has_goal && !(GOAL.0..=GOAL.1).contains(&ratio) {
            missed.push(line);
        }
    }
    Ok(table)
}

fn spread(values: &[f64]) -> String {
    let (least, most) = super::range(values);
    format!("{:.3} ({least:.3}-{most:.3})", median(values))
}

/// Runs the real program, or ours, in a new directory.
fn run(program: Option<&Path>, library: &Path, is_quick: bool) -> Result<Phases> {
    let dir = TempDir::in_memory("bench-io500")?;
    let config = dir.file("config.ini");
    let (data, results) = (dir.file("data"), dir.file("results"));
    let work = if is_quick { QUICK } else { FULL };
    files::write(
        &config,
        format!(
            "[global]\ndatadir = {data}\nresultdir = {results}\ntimestamp-datadir = FALSE\n\
             timestamp-resultdir = FALSE\n{work}"
        ),
    )?;
    let text = match program {
        None => {
            let line =
                format!("io500 --config {config} --ranks 2 --no-calibration --out {results}");
            run_bucketload(&line, &[].into())?.stdout
        }
        Some(program) => {
            let mut command = mpirun(program, library);
            let process = Process::recorded(command.arg(&config).current_dir(dir.path()))?;
            let outcome = process.end(PATIENCE)?;
            outcome.expect_code(0)?;
            outcome.stdout
        }
    };
    let phases = phases(&text);
    ensure(phases.len() > 10, || format!("no result of IO500: {text}"))?;
    Ok(phases)
}

/// The figures that both programs print: a line per phase, and the scores.
fn phases(text: &str) -> Phases {
    let mut phases = Vec::new();
    for line in text.lines() {
        let Some((mark, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        else {
            continue;
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        match (mark.trim(), &words[..]) {
            ("RESULT" | "", [name, value, unit, ":", "time", ..]) if *name != "timestamp" => {
                phases.extend(
                    value
                        .parse()
                        .map(|value| (format!("{name}, {unit}"), value)),
                );
            }
            (
                "SCORE",
                [
                    "Bandwidth",
                    bandwidth,
                    _,
                    ":",
                    "IOPS",
                    rate,
                    _,
                    ":",
                    "TOTAL",
                    total,
                    ..,
                ],
            ) => {
                for (name, value) in [("BW", bandwidth), ("MD", rate), ("total", total)] {
                    phases.extend(value.parse().map(|value| (format!("score, {name}"), value)));
                }
            }
            _ => {}
        }
    }
    phases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_and_scores_are_read() {
        let text = "IO500 version io500\nERROR INVALID (src/x.c:1) stonewall\n\
                    [RESULT]       ior-easy-write        0.158865 GiB/s : time 1.079 seconds [INVALID]\n\
                    [      ]            timestamp        0.000000 kIOPS : time 0.000 seconds\n\
                    [      ]  ior-rnd4K-easy-read        0.210173 GiB/s : time 2.010 seconds\n\
                    [SCORE ] Bandwidth 0.129293 GiB/s : IOPS 18.604063 kiops : TOTAL 1.550929 [INVALID]\n\
                    [      ] without find: IOPS 12.662284 kiops : TOTAL 1.498872 [INVALID] (mapping files)\n";
        let names = [
            "ior-easy-write, GiB/s",
            "ior-rnd4K-easy-read, GiB/s",
            "score, BW",
            "score, MD",
            "score, total",
        ];
        let values = [0.158865, 0.210173, 0.129293, 18.604063, 1.550929];
        let expected: Phases = names.map(str::to_owned).into_iter().zip(values).collect();
        assert_eq!(phases(text), expected);
    }
}
