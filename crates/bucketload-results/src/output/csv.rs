//! The result as one table (RFC 4180): a row per phase and operation class.

use bucketload_core::stats::quantile::Print;

use crate::result::latency::QUANTILES;
use crate::result::{ClassResult, Latency, PhaseResult, RunResult};

/// Columns before the latencies; new ones are appended at the end of the table only.
const COLUMNS: [&str; 18] = [
    "run_id",
    "workload",
    "scenario_hash",
    "verdict",
    "phase",
    "work",
    "operation",
    "window_s",
    "ok",
    "failed",
    "cancelled",
    "retries",
    "bytes",
    "ops_per_s",
    "ops_per_s_half_width",
    "bytes_per_s",
    "bytes_per_s_half_width",
    "offered_ops_per_s",
];

/// Columns after the errors: what identifies the workload, and the backlog of the phase.
const IDENTITY: [&str; 9] = [
    "profile",
    "compat",
    "schedule_hash",
    "seed",
    "scale",
    "payload",
    "popularity",
    "backlog_max_s",
    "backlog_mean_s",
];

/// The result as CSV with a header line.
///
/// `verdict` is that of the phase, empty for phases that do not measure. Percentiles that rest on
/// too few values are empty, like figures that do not exist. `offered_ops_per_s` is that of the
/// whole phase.
#[must_use]
pub fn csv(result: &RunResult) -> String {
    let mut head: Vec<String> = COLUMNS.map(str::to_owned).to_vec();
    for metric in ["response", "service", "ttfb", "failed_response"] {
        head.push(format!("{metric}_n"));
        head.push(format!("{metric}_mean_ns"));
        for q in QUANTILES {
            head.push(format!("{metric}_p{}_ns", quantile_name(q)));
        }
        head.push(format!("{metric}_max_ns"));
    }
    head.push("errors".to_owned());
    head.extend(IDENTITY.map(str::to_owned));
    let mut out = String::new();
    row(&mut out, &head);
    for phase in &result.phases {
        for class in &phase.classes {
            row(&mut out, &cells(result, phase, class));
        }
    }
    out
}

/// 50, 90, 95, 99, 999: digits after "0.", at least two.
fn quantile_name(q: f64) -> String {
    let digits = format!("{q}");
    let digits = digits.trim_start_matches("0.");
    format!("{digits:0<2}")
}

fn cells(result: &RunResult, phase: &PhaseResult, class: &ClassResult) -> Vec<String> {
    let half = |h: Option<f64>| h.map_or_else(String::new, |h| format!("{h:.3}"));
    let mut cells = vec![
        result.run.run_id.clone(),
        result.run.workload.clone(),
        result.run.scenario_hash.clone(),
        phase
            .verdict
            .as_ref()
            .map_or_else(String::new, |v| v.word.name().to_owned()),
        phase.name.clone(),
        class.work_name.clone(),
        class.class.to_string(),
        format!("{:.3}", phase.window.seconds()),
        class.ok.to_string(),
        class.failed.to_string(),
        class.cancelled.to_string(),
        class.retries.to_string(),
        class.bytes.to_string(),
        format!("{:.3}", class.ops_per_s.mean),
        half(class.ops_per_s.half_width),
        format!("{:.3}", class.bytes_per_s.mean),
        half(class.bytes_per_s.half_width),
        format!("{:.3}", phase.rates.offered_ops_per_s),
    ];
    for latency in [
        &class.response,
        &class.service,
        &class.ttfb,
        &class.failed_response,
    ] {
        cells.extend(latency_cells(latency));
    }
    let errors: Vec<String> = class
        .errors
        .iter()
        .map(|e| format!("{}={}", e.kind, e.count))
        .collect();
    cells.push(errors.join(" "));
    let run = &result.run;
    let popularity: Vec<String> = run
        .popularity
        .iter()
        .filter(|p| p.phase == phase.name)
        .map(crate::result::PopularityId::line)
        .collect();
    // Cells without commas need no quotes, which simple readers do not know.
    let plain = |text: String| text.replace(',', ";");
    let backlog = |of: fn(&crate::result::Backlog) -> f64| {
        phase
            .backlog
            .as_ref()
            .map_or_else(String::new, |b| format!("{:.3}", of(b)))
    };
    cells.extend([
        run.profile.clone(),
        run.compat.clone(),
        run.schedule_hash.clone(),
        run.seed.to_string(),
        run.scale.to_string(),
        plain(run.payload.clone()),
        plain(popularity.join(" | ")),
        backlog(|b| b.max_s),
        backlog(|b| b.mean_s),
    ]);
    cells
}

fn latency_cells(latency: &Latency) -> Vec<String> {
    let some = |text: String| if latency.n == 0 { String::new() } else { text };
    let mut cells = vec![
        latency.n.to_string(),
        some(format!("{:.0}", latency.mean_ns)),
    ];
    for q in QUANTILES {
        let shown = latency.percentile(q).filter(|p| p.print != Print::Omit);
        cells.push(shown.map_or_else(String::new, |p| p.value_ns.to_string()));
    }
    cells.push(some(latency.max_ns.to_string()));
    cells
}

fn row(out: &mut String, cells: &[String]) {
    for (i, cell) in cells.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        if cell.contains([',', '"', '\n', '\r']) {
            out.push('"');
            out.push_str(&cell.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(cell);
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::{quantile_name, row};

    #[test]
    fn quantiles_are_named_by_their_digits() {
        assert_eq!(
            [0.5, 0.9, 0.95, 0.999].map(quantile_name),
            ["50", "90", "95", "999"]
        );
    }

    #[test]
    fn cells_are_quoted_where_needed() {
        let mut out = String::new();
        row(
            &mut out,
            &["a".to_owned(), "b,\"c\"".to_owned(), String::new()],
        );
        assert_eq!(out, "a,\"b,\"\"c\"\"\",\n");
    }
}
