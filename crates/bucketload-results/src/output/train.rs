//! A training as text.

use std::fmt::{self, Write as _};

use crate::result::TrainResult;
use crate::result::train::MeanAndStdev;
use crate::units;

/// Appends how busy the accelerators were.
pub(super) fn write(out: &mut String, train: &TrainResult) -> fmt::Result {
    let percent = |au: Option<f64>| au.map_or_else(|| "-".to_owned(), |au| format!("{au:.2} %"));
    let verdict = match (train.passed, train.au.mean) {
        (true, _) => "passes".to_owned(),
        (false, None) => "no step counts".to_owned(),
        (false, Some(_)) if train.failed_reads > 0 => {
            let failed = units::count(train.failed_reads);
            format!("does not pass: {failed} reads failed")
        }
        (false, Some(au)) if au < train.mark_percent => "does not pass".to_owned(),
        (false, Some(_)) => "does not pass: not all epochs were completed".to_owned(),
    };
    writeln!(
        out,
        "Training, phase {}: accelerators {}, AU {} (mark {} %): {verdict}",
        train.phase,
        train.accelerators,
        with_stdev(train.au, |au| format!("{au:.2} %")),
        train.mark_percent,
    )?;
    writeln!(
        out,
        "  {} samples/s, input {} MiB/s by nominal records; AU of the rule book {}, by bytes received {}",
        with_stdev(train.samples_per_s, units::number),
        with_stdev(train.io_mib_per_s, units::number),
        percent(train.au_ideal_percent),
        percent(train.au_bytes_percent),
    )?;
    for epoch in &train.epochs {
        writeln!(
            out,
            "  epoch {}: {} steps in {}, AU {}{}",
            epoch.epoch,
            units::count(epoch.steps),
            units::seconds(epoch.seconds),
            percent(epoch.au_percent),
            if epoch.complete {
                ""
            } else {
                ", not completed"
            },
        )?;
    }
    let (mean, max) = train.overshoot_ns;
    writeln!(
        out,
        "  computation {} per step, longer than planned by {} (largest {}); {} bytes received per byte used",
        units::seconds(train.computation_s),
        units::ns(mean),
        units::ns(max as f64),
        units::number(train.amplification),
    )
}

fn with_stdev(figure: MeanAndStdev, show: impl Fn(f64) -> String) -> String {
    match (figure.mean, figure.stdev) {
        (Some(mean), Some(stdev)) if stdev > 0.0 => format!("{} ± {}", show(mean), show(stdev)),
        (Some(mean), _) => show(mean),
        _ => "-".to_owned(),
    }
}
