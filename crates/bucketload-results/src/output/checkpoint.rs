//! Checkpoints of a language model as tables, for the text and for the report.

use std::fmt::{self, Write as _};

use bucketload_core::plan::checkpoint::CheckpointAction;

use super::TextOptions;
use crate::kit::{Section, Table};
use crate::result::checkpoint::{CheckpointMean, CheckpointResult};
use crate::units;

/// Most incomplete ranks that are listed one by one.
const MOST_LISTED: usize = 16;

/// Appends the tables.
pub(super) fn write(out: &mut String, result: &CheckpointResult, on: TextOptions) -> fmt::Result {
    writeln!(out, "{}", intro(result))?;
    for table in tables(result) {
        if !table.title.is_empty() {
            writeln!(out, "\n{}", table.title)?;
        }
        table.render_within(on.width, on.colour, out);
    }
    writeln!(out)
}

/// The section of the report.
pub(crate) fn section(result: &CheckpointResult) -> Section {
    Section::new("Checkpoints", intro(result)).tables(tables(result))
}

fn intro(result: &CheckpointResult) -> String {
    let scale = match result.scale {
        (parts, of) if parts == of => String::new(),
        (parts, of) => format!(", scale {parts}/{of}"),
    };
    let ranks = match u64::from(result.ranks) == result.job_ranks {
        true => format!("{} ranks", result.ranks),
        false => format!("{} of {} ranks", result.ranks, result.job_ranks),
    };
    format!(
        "Checkpoints of {}{scale}: {ranks}, {} objects, {} each.",
        result.model,
        units::count(result.objects),
        units::bytes(result.bytes as f64)
    )
}

fn tables(result: &CheckpointResult) -> Vec<Table> {
    let mut tables = vec![means(result), each(result)];
    tables.extend(incomplete(result));
    tables
}

fn gib(value: f64) -> String {
    format!("{value:.3} GiB/s")
}

fn exact(value: f64) -> String {
    format!("{value:.3} s")
}

fn means(result: &CheckpointResult) -> Table {
    let mut table = Table::new(1, ["", "mean", "deviation", "complete"]);
    let mut direction = |name: &str, mean: &Option<CheckpointMean>| {
        let Some(mean) = mean else { return };
        let complete = format!("{} of {}", mean.complete, mean.begun);
        for (what, (value, stdev), show) in [
            (
                "from barrier to last byte",
                mean.seconds,
                exact as fn(f64) -> String,
            ),
            ("throughput", mean.gib_per_s, gib),
            ("slowest rank (DLIO duration)", mean.dlio_seconds, exact),
            ("lowest rate (DLIO io)", mean.dlio_gib_per_s, gib),
            ("rate of rank 0 (DLIO log)", mean.dlio_rank0_gib_per_s, gib),
        ] {
            table.texts([
                format!("{name}: {what}"),
                show(value),
                show(stdev),
                complete.clone(),
            ]);
        }
    };
    direction("write", &result.write);
    direction("read", &result.read);
    let mut more = |what: String, value: String| {
        table.texts([what, value, String::new(), String::new()]);
    };
    if let Some(latest) = result.latest_s {
        more("marker `latest`".to_owned(), exact(latest));
    }
    if !result.races.is_empty() {
        let numbers: Vec<String> = result.races.iter().map(u32::to_string).collect();
        let what = "RACE: somebody else had changed `latest`, so it was not written";
        more(what.to_owned(), format!("after {}", numbers.join(", ")));
    }
    if let Some(loss) = &result.loss {
        let interval = units::seconds(result.interval_s);
        more(
            "training lost per checkpoint".to_owned(),
            exact(loss.per_checkpoint_s),
        );
        more(
            format!("share of time lost at one per {interval} of training"),
            format!("{:.3} %", loss.share * 100.0),
        );
        if let (Some(restart), Some(failure)) = (loss.restart_s, loss.per_failure_s) {
            more("restart after a failure".to_owned(), exact(restart));
            more(
                "lost per failure, with half an interval".to_owned(),
                exact(failure),
            );
        }
    }
    table
}

fn each(result: &CheckpointResult) -> Table {
    let rows = result.checkpoints.iter().map(|one| {
        let [least, median, most] = one.ranks_s;
        [
            one.phase.clone(),
            exact(one.seconds),
            gib(one.gib_per_s),
            exact(least),
            exact(median),
            exact(most),
            one.last_rank.to_string(),
            match one.incomplete.len() {
                0 => "yes".to_owned(),
                1 => "NO: 1 rank".to_owned(),
                n => format!("NO: {n} ranks"),
            },
        ]
    });
    let head = [
        "checkpoint",
        "time",
        "throughput",
        "first rank",
        "median rank",
        "last rank",
        "which",
        "complete",
    ];
    Table::new(1, head)
        .titled("Each checkpoint, and when its ranks were done")
        .with(rows)
}

/// The ranks from which bytes are missing; `None` if there are none.
fn incomplete(result: &CheckpointResult) -> Option<Table> {
    let all: Vec<_> = result
        .checkpoints
        .iter()
        .flat_map(|one| one.incomplete.iter().map(move |rank| (one, rank)))
        .collect();
    let rows = all.iter().take(MOST_LISTED).map(|(one, rank)| {
        let verb = match one.action {
            CheckpointAction::Read => "read",
            _ => "wrote",
        };
        [
            one.phase.clone(),
            rank.rank.to_string(),
            format!("{verb} {} of {} bytes", rank.done, rank.planned),
            match (rank.reported, rank.failed) {
                (false, _) => "its process was lost".to_owned(),
                (true, 0) => "did not finish".to_owned(),
                (true, failed) => format!("{failed} operations failed"),
            },
        ]
    });
    let more = match all.len().saturating_sub(MOST_LISTED) {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let table = Table::new(4, ["checkpoint", "rank", "bytes", "why"])
        .titled(format!(
            "Incomplete checkpoints, which no mean contains{more}"
        ))
        .with(rows);
    (!all.is_empty()).then_some(table)
}
