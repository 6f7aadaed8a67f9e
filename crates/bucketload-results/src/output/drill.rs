//! The figures of a drill as text.

use std::fmt::{self, Write as _};

use crate::drill::{DataTruth, DrillResult, Share, Times};
use crate::units;

/// Appends what broke and what users noticed.
pub(super) fn write(out: &mut String, drill: &DrillResult) -> fmt::Result {
    writeln!(out, "Drill:")?;
    writeln!(
        out,
        "  baseline {}: {} ops/s, p50 {}, p99 {}; in time within {}",
        if drill.why.is_empty() {
            "not judged"
        } else {
            &drill.why
        },
        units::rate(drill.ops_per_s),
        units::ns(drill.p50_ns as f64),
        units::ns(drill.p99_ns as f64),
        units::ns(drill.deadline_ns as f64)
    )?;
    if drill.faults.is_empty() {
        return writeln!(out, "  nothing was broken");
    }
    for fault in drill.faults.iter().take(10) {
        let kind = if fault.name == fault.what {
            String::new()
        } else {
            format!(" ({})", fault.what)
        };
        writeln!(
            out,
            "  {}{kind} from {:.2} s to {:.2} s",
            fault.name, fault.from_s, fault.to_s
        )?;
    }
    if drill.faults.len() > 10 {
        writeln!(out, "  and {} more", drill.faults.len() - 10)?;
    }
    match &drill.detect {
        Some(detect) => writeln!(out, "  noticed {} after the first break", bounded(detect))?,
        None => writeln!(
            out,
            "  not noticed: no interval was out of the baseline's band"
        )?,
    }
    match (&drill.recover, &drill.detect) {
        (Some(recover), _) => {
            writeln!(out, "  recovered {} after the last mend", bounded(recover))?
        }
        (None, Some(_)) => writeln!(out, "  did not recover before the load ended")?,
        (None, None) => {}
    }
    let times = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |r| format!("{r:.2}"));
    writeln!(
        out,
        "  during the faults: throughput {} of the baseline, p50 times {}, p99 times {}",
        drill
            .throughput_ratio
            .map_or_else(|| "-".to_owned(), units::percent),
        times(drill.p50_ratio),
        times(drill.p99_ratio)
    )?;
    writeln!(
        out,
        "  right and in time: {} before, {} during the faults, {} since the first break",
        share(&drill.available_before),
        share(&drill.available_during),
        share(&drill.available_since)
    )?;
    match drill.longest_gap.s > 0.0 {
        true => writeln!(
            out,
            "  longest time without a success: {}",
            bounded(&drill.longest_gap)
        )?,
        false => writeln!(out, "  every interval had a success")?,
    }
    let off = match &drill.worked_off {
        Some(off) => format!("worked off {} after the last mend", bounded(off)),
        None => "not worked off before the load ended".to_owned(),
    };
    writeln!(
        out,
        "  backlog at most {} operations, {off}",
        units::count(drill.backlog)
    )?;
    let failed: Vec<String> = drill
        .errors
        .iter()
        .map(|error| format!("{} {}", units::count(error.count), error.kind))
        .collect();
    if !failed.is_empty() || drill.retries > 0 {
        let retries = format!("{} retries", units::count(drill.retries));
        writeln!(
            out,
            "  failed: {}; {retries}",
            if failed.is_empty() {
                "none".to_owned()
            } else {
                failed.join(", ")
            }
        )?;
    }
    for endpoint in &drill.endpoints {
        writeln!(
            out,
            "  endpoint {}: {} of the operations before, {} during the faults, {} failed",
            endpoint.endpoint + 1,
            units::percent(endpoint.before),
            units::percent(endpoint.during),
            units::count(endpoint.failed)
        )?;
    }
    writeln!(
        out,
        "  error budget: {} of 30 days at {} burnt",
        units::percent(drill.budget_burnt),
        units::percent(drill.budget)
    )?;
    if let Some(truth) = &drill.data {
        data(out, truth)?;
    }
    for hook in &drill.hooks {
        writeln!(out, "  command failed: {hook}")?;
    }
    if let Some(line) = &drill.line {
        writeln!(
            out,
            "  fault line: {:.1} us of CPU per operation, {:.2} s per GiB; {} in {} connections, on a core of its own",
            line.cpu_us_per_op,
            line.cpu_s_per_gib,
            units::bytes(line.bytes as f64),
            units::count(line.connections)
        )?;
    }
    super::drill_picture::write(out, drill)
}

/// What became of acknowledged writes.
fn data(out: &mut String, data: &DataTruth) -> fmt::Result {
    let audit = if data.audited {
        format!(
            "{} writes and deletes, {} of unknown outcome",
            units::count(data.mutations),
            units::count(data.unknown)
        )
    } else {
        "the audit did not take place".to_owned()
    };
    match data.findings {
        0 => return writeln!(out, "  data: no wrong answer; {audit}"),
        n => writeln!(out, "  data: {} findings; {audit}", units::count(n))?,
    }
    for row in &data.by_stage {
        writeln!(out, "    {}: {}", row.kind, row.words())?;
    }
    Ok(())
}

/// A time with its bounds.
fn bounded(time: &Times) -> String {
    format!("{:.2} s ({:.2} to {:.2} s)", time.s, time.from_s, time.to_s)
}

fn share(share: &Share) -> String {
    units::percent(share.share)
}
