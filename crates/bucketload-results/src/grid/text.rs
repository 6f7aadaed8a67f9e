//! A grid for the terminal: tables as in the study, then every cell in full.

use super::rows::Row;
use super::{GridResult, Record, StepCell};
use crate::{study, units};

/// Explains the marks after a figure.
const MARKS: &str = "c: the client was the limit (less than twice its floor, or the verdict of a run); \
                     !: one process took more than 1.2 times the mean; x: operations failed";

/// One line about a trial, printed when it ends.
#[must_use]
pub fn trial_line(record: &Record, row: &Row) -> String {
    let steps: Vec<String> = record
        .steps
        .iter()
        .map(|step| {
            let mean = step.t_s().iter().sum::<f64>() / step.t_ns.len().max(1) as f64;
            let failed = match step.failed {
                0 => String::new(),
                n => format!(" ({n} failed)"),
            };
            format!("{} {}{failed}", step.step, time(mean))
        })
        .collect();
    format!(
        "{:<6} {:>6} x {:<11} {:>4} {}  run {:<2} {}",
        record.row,
        row.files,
        row.size_bytes,
        record.processes,
        if record.floor { "floor" } else { "proc." },
        record.repetition + 1,
        steps.join("  ")
    )
}

/// The whole result.
#[must_use]
pub fn text(result: &GridResult) -> String {
    let header = &result.header;
    let mut out = format!(
        "Grid on {}\n  {} {}, {} in flight per process, {} runs per cell, scale {}\n",
        header.target,
        if header.processes.len() == 1 {
            "processes"
        } else {
            "numbers of processes"
        },
        header
            .processes
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(", "),
        header.streams,
        header.repetitions,
        header.scale
    );
    for row in &header.dropped {
        out += &format!("  dropped: {row}\n");
    }
    for figure in THROUGHPUT.iter().chain(&METADATA) {
        out += &wide(result, figure);
    }
    out += &format!("\n{MARKS}\n");
    out += &cells(result);
    for warning in &result.warnings {
        out += &format!("caution: {warning}\n");
    }
    let interrupted = study::interrupted(result.measured(), result.wanted());
    let remarks = interrupted
        .into_iter()
        .chain(study::unreadable(result.damaged));
    out.extend(remarks.map(|line| line + "\n"));
    out
}

/// A table in the study's layout: title, step, and the figure it shows.
pub(super) type StudyTable = (&'static str, &'static str, fn(&StepCell) -> f64);

/// Tables of files with content.
pub(super) const THROUGHPUT: [StudyTable; 2] = [
    ("Write, MiB/s (A_mean)", "write", |s| s.figures.a_mean),
    ("Read, MiB/s (A_mean)", "read", |s| s.figures.a_mean),
];
/// Tables of empty files.
pub(super) const METADATA: [StudyTable; 3] = [
    ("Write empty files, files/s (R_mean)", "write", |s| {
        s.figures.r_mean
    }),
    ("Read empty files, files/s (R_mean)", "read", |s| {
        s.figures.r_mean
    }),
    ("Touch, files/s (R_mean)", "touch", |s| s.figures.r_mean),
];

/// The measured rows of such a table: the row, its name, and the step for each number of processes.
pub(super) fn wide_rows<'a>(
    result: &'a GridResult,
    (title, step, _): &StudyTable,
) -> Vec<(&'a Row, String, Vec<Option<&'a StepCell>>)> {
    let moves = THROUGHPUT.iter().any(|(known, _, _)| known == title);
    // Touched files are read as well; that step adds no information.
    let wanted = |row: &&Row| match moves {
        true => row.size_bytes > 0,
        false => row.size_bytes == 0 && row.touch == (*step == "touch"),
    };
    let processes = &result.header.processes;
    let rows = result.header.rows.iter().filter(wanted).map(|row| {
        let of = |&n: &u32| result.cell(&row.name, n).and_then(|cell| cell.step(step));
        let name = format!("{} x {}", row.files, row.size_bytes);
        (row, name, processes.iter().map(of).collect())
    });
    let measured = |(_, _, cells): &(_, _, Vec<Option<_>>)| cells.iter().any(Option::is_some);
    rows.filter(measured).collect()
}

/// Files and sizes in rows, numbers of processes in columns, in the study's layout.
fn wide(result: &GridResult, table: &StudyTable) -> String {
    let (title, _, figure) = table;
    let shown = |cell: Option<&StepCell>| match cell {
        Some(s) => format!("{}{}", rate(figure(s)), marks(s)),
        None => "-".to_owned(),
    };
    let rows = wide_rows(result, table).into_iter();
    let rows = rows.map(|(_, name, cells)| (name, cells.into_iter().map(shown).collect()));
    let mut rows: Vec<(String, Vec<String>)> = rows.collect();
    rows.retain(|(_, cells)| cells.iter().any(|cell| cell != "-"));
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{title}\n  {:<22}", "files x bytes");
    for n in &result.header.processes {
        out += &format!(" {:>12}", format!("P={n}"));
    }
    out.push('\n');
    for (name, cells) in rows {
        let cells: String = cells.iter().map(|cell| format!(" {cell:>12}")).collect();
        out += &format!("  {name:<22}{cells}\n");
    }
    out
}

/// Every step of every cell.
fn cells(result: &GridResult) -> String {
    let mut out = String::from(
        "\n  row    step     P     A_mean     A_slow     A_wall      A_sum     R_mean    mean T  max/mean  \
         CV %      p50      p99  floor x\n",
    );
    for cell in &result.cells {
        for step in &cell.steps {
            let f = step.figures;
            out += &format!(
                "  {:<6} {:<6} {:>3} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9.2} {:>5.1} {:>8} {:>8} {:>8}{}\n",
                cell.row,
                step.step,
                cell.processes,
                rate(f.a_mean),
                rate(f.a_slow),
                rate(f.a_wall),
                rate(f.a_sum),
                rate(f.r_mean),
                time(f.mean_s),
                f.max_over_mean,
                f.cv * 100.0,
                time(step.latency_s[0]),
                time(step.latency_s[2]),
                step.floor_ratio
                    .map_or_else(|| "-".to_owned(), |r| format!("{r:.1}")),
                match marks(step).as_str() {
                    "" => String::new(),
                    marks => format!(" {marks}"),
                }
            );
        }
    }
    out
}

/// `c`, `!` and `x` where they apply.
pub(super) fn marks(step: &StepCell) -> String {
    let marks = [
        ('c', step.client_bound),
        ('!', step.uneven),
        ('x', step.failed > 0),
    ];
    marks
        .iter()
        .filter(|(_, applies)| *applies)
        .map(|(mark, _)| *mark)
        .collect()
}

/// A rate with four significant digits, as the study prints them.
pub(super) fn rate(value: f64) -> String {
    match value {
        0.0 => "-".to_owned(),
        v if v < 1.0 => format!("{v:.4}"),
        v if v < 10.0 => format!("{v:.3}"),
        v if v < 100.0 => format!("{v:.2}"),
        v if v < 1000.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

pub(super) fn time(seconds: f64) -> String {
    units::ns(seconds * 1e9)
}
