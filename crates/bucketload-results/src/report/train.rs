//! Training: how busy the accelerators were, and when they waited.

use crate::kit::svg::{Body, Stack};
use crate::kit::{Axis, Chart, Section, Series, Table, Unit};
use crate::result::TrainResult;
use crate::result::train::AcceleratorResult;
use crate::units;

/// Most accelerators whose shares of time are drawn; the table has all.
const ROWS: usize = 32;

/// The section of a training.
pub(super) fn section(train: &TrainResult) -> Section {
    let percent = |au: Option<f64>| au.map_or_else(|| "-".to_owned(), |au| format!("{au:.2} %"));
    let number = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), units::number);
    let facts = Table::pairs("").with([
        ["accelerators".to_owned(), train.accelerators.to_string()],
        [
            "AU (as DLIO computes it)".to_owned(),
            percent(train.au.mean),
        ],
        ["mark".to_owned(), percent(Some(train.mark_percent))],
        [
            "AU of the rule book".to_owned(),
            percent(train.au_ideal_percent),
        ],
        [
            "AU by bytes received".to_owned(),
            percent(train.au_bytes_percent),
        ],
        ["samples/s".to_owned(), number(train.samples_per_s.mean)],
        [
            "input, MiB/s by nominal records".to_owned(),
            number(train.io_mib_per_s.mean),
        ],
        [
            "reads that failed".to_owned(),
            units::count(train.failed_reads),
        ],
        [
            "bytes received per byte used".to_owned(),
            units::number(train.amplification),
        ],
        [
            "computation longer than planned, mean and largest".to_owned(),
            format!(
                "{}, {}",
                units::ns(train.overshoot_ns.0),
                units::ns(train.overshoot_ns.1 as f64)
            ),
        ],
    ]);
    let epochs = Table::new(
        1,
        ["epoch", "steps", "length", "AU", "samples/s", "complete"],
    )
    .titled("Epochs")
    .with(train.epochs.iter().map(|epoch| {
        [
            epoch.epoch.to_string(),
            units::count(epoch.steps),
            units::seconds(epoch.seconds),
            percent(epoch.au_percent),
            number(epoch.samples_per_s),
            if epoch.complete { "yes" } else { "no" }.to_owned(),
        ]
    }));
    let intro = match train.passed {
        true => "The store kept the accelerators busy: their utilisation (AU) reaches the mark.",
        false => {
            "The training does not pass: see the utilisation (AU), the epochs and the reads that failed."
        }
    };
    let over_time = over_time(&train.each);
    Section::new(format!("Training, phase {}", train.phase), intro)
        .tables([facts, epochs])
        .charts([shares(&train.each)])
        .charts(Some(over_time).filter(|chart| !chart.is_empty()))
}

/// Waiting, computing and the barrier, per accelerator.
fn shares(each: &[AcceleratorResult]) -> Chart {
    let rows = each.iter().take(ROWS).map(|one| {
        let parts = vec![one.wait_s, one.compute_s, one.barrier_s];
        (format!("accelerator {}", one.accelerator), parts)
    });
    let parts = ["waits for a batch", "computes", "waits for the others"];
    let stack = Stack {
        parts: parts
            .iter()
            .map(|name| (*name).to_owned())
            .zip([1, 0, 2])
            .collect(),
        rows: rows.collect(),
        unit: Unit::Seconds,
    };
    let x = Axis::share("share of the time of all steps");
    Chart::new("What accelerators did", x.clone(), x, Body::Stack(stack))
        .noted("The time of all steps is to the right of each bar.")
        .wide()
}

/// The share of waiting over time, for the first accelerators.
fn over_time(each: &[AcceleratorResult]) -> Chart {
    let lines = each
        .iter()
        .filter(|one| !one.timeline.is_empty())
        .enumerate();
    let lines = lines.map(|(look, one)| {
        let points = one
            .timeline
            .iter()
            .map(|column| (column.t_s, column.waiting));
        Series {
            steps: true,
            ..Series::line(format!("accelerator {}", one.accelerator), look, points)
        }
    });
    Chart::lines(
        "Waiting for batches over time",
        Axis::linear("time", Unit::Seconds),
        Axis::linear("share of the time", Unit::Share),
        lines,
    )
    .noted("What is left of 1 is computation and the wait for other accelerators.")
    .wide()
}
