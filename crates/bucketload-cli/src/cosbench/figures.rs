//! Figures of COSBench's tables: the rows of a stage, of its workers and of its drivers.

use std::ops::Range;

use bucketload_core::histogram::Histogram;
use bucketload_core::plan::Plan;
use bucketload_core::plan::crews::{Pins, crew};
use bucketload_core::rows::{PhaseRows, RowSums, WorkerRow, WorkerSpan};
use bucketload_cosbench::artifacts::{DriverRecord, Figures, OperationLine, Row, StageRecord};
use bucketload_cosbench::{Stage, Work};

use super::STRICT;

/// The percentiles of the tables, as shares.
const SHARES: [f64; 5] = [0.60, 0.80, 0.90, 0.95, 0.99];

/// The measurement of a stage.
pub(super) struct MeasuredStage<'a> {
    pub(super) plan: &'a Plan,
    /// Index of the stage's phase in the plan.
    pub(super) phase: usize,
    pub(super) rows: &'a PhaseRows,
    /// The drivers to which works are pinned.
    pub(super) pins: &'a Pins,
}

/// The rows of an operation, and how its figures are computed.
struct Operations<'a> {
    rows: Vec<&'a WorkerRow>,
    spans: &'a [&'a WorkerSpan],
    /// Measured time of the work, in seconds.
    window_s: f64,
    /// Whether to compute COSBench's own numbers.
    strict: bool,
    /// Whether the operation has no samples, as COSBench's init and dispose.
    silent: bool,
}

impl Operations<'_> {
    fn rows(&self, workers: &Range<u32>) -> impl Iterator<Item = &WorkerRow> {
        let rows = self.rows.iter().copied();
        rows.filter(|row| !self.silent && workers.contains(&row.worker))
    }

    /// The figures of one worker.
    fn worker(&self, row: &WorkerRow) -> Figures {
        let span = self.spans.iter().find(|s| s.worker == row.worker);
        worker(self.sums(row), span.copied(), self.strict)
    }

    const fn sums<'r>(&self, row: &'r WorkerRow) -> &'r RowSums {
        if self.strict {
            &row.inside
        } else {
            &row.finished
        }
    }

    /// The figures of several workers. Rates use the time of the whole work, so that the rates of its drivers add up;
    /// COSBench instead adds the rates of the workers.
    fn figures(&self, workers: &Range<u32>) -> Figures {
        let mut sums = RowSums::default();
        let mut rates = (0.0, 0.0);
        for row in self.rows(workers) {
            sums.merge(self.sums(row));
            let figures = self.worker(row);
            rates.0 += figures.throughput;
            rates.1 += figures.bandwidth;
        }
        let mut figures = means(&sums, self.strict);
        (figures.throughput, figures.bandwidth) = match self.strict {
            true => rates,
            false if self.window_s > 0.0 => (
                sums.ok as f64 / self.window_s,
                sums.bytes as f64 / self.window_s,
            ),
            false => (0.0, 0.0),
        };
        figures
    }
}

/// Fills in the rows and workers of a stage, and each driver's share of them.
pub(super) fn fill(
    out: &mut StageRecord,
    drivers: &mut [DriverRecord],
    stage: &Stage,
    measured: &MeasuredStage<'_>,
) {
    let rows = measured.rows;
    let Some(phase) = measured.plan.phases.get(measured.phase) else {
        return;
    };
    let strict = measured.plan.compat == STRICT;
    let of = drivers.len() as u32;
    for (index, work) in stage.works.iter().enumerate() {
        let number = index as u16;
        let spans: Vec<&WorkerSpan> = rows.spans.iter().filter(|s| s.work == number).collect();
        let Some(named) = phase.works.get(index).and_then(|w| w.model.named()) else {
            continue;
        };
        let window_s = match named.runtime_ns {
            0 => wall_s(&spans),
            runtime => runtime as f64 / 1e9,
        };
        for (entry, operation) in work.operations.iter().enumerate() {
            let entry = entry as u16;
            let of_entry = rows.workers.iter();
            let operations = Operations {
                rows: of_entry
                    .filter(|r| (r.work, r.entry) == (number, entry))
                    .collect(),
                spans: &spans,
                window_s,
                strict,
                silent: strict && is_silent(work),
            };
            let line = |figures| OperationLine {
                kind: operation.kind.name(),
                sample: operation.kind.sample_type(),
                figures,
            };
            let all = 0..u32::MAX;
            for row in operations.rows(&all) {
                out.workers.push(line(operations.worker(row)));
            }
            for (rank, driver) in drivers.iter_mut().enumerate() {
                let crew = crew(phase, index, (rank as u32, of), measured.pins);
                // A driver without a worker has no mission.
                if !crew.is_empty() {
                    if !out.missions.contains(&rank) {
                        out.missions.push(rank);
                    }
                    driver.lines.push(line(operations.figures(&crew)));
                }
            }
            let silent = operations.silent;
            let latencies = rows
                .latencies
                .iter()
                .find(|l| (l.work, l.entry) == (number, entry));
            let histogram = latencies
                .map(|l| l.legacy.clone())
                .filter(|_| !silent)
                .unwrap_or_default();
            let percentiles = latencies
                .filter(|_| operation.target.histogram && !silent)
                .and_then(|l| match strict {
                    true => legacy_percentiles(&l.legacy),
                    false => percentiles(&l.fine),
                });
            out.rows.push(Row {
                work: index,
                work_name: work.name.clone(),
                name: operation.display_name.clone(),
                kind: operation.kind.name(),
                sample: operation.kind.sample_type(),
                workers: work.workers,
                figures: operations.figures(&all),
                percentiles,
                histogram,
                ratio: operation.ratio,
                config: operation.config.text().to_owned(),
            });
        }
    }
}

/// Whether COSBench records no samples of the work's operation.
fn is_silent(work: &Work) -> bool {
    use bucketload_cosbench::WorkKind::{Dispose, Init};
    matches!(work.kind, Init | Dispose)
}

/// Time from the first start to the last end of all workers, in seconds.
fn wall_s(spans: &[&WorkerSpan]) -> f64 {
    let first = spans.iter().map(|s| s.first_ns).min().unwrap_or(0);
    let last = spans.iter().map(|s| s.last_ns).max().unwrap_or(0);
    last.saturating_sub(first) as f64 / 1e9
}

fn means(sums: &RowSums, strict: bool) -> Figures {
    let ok = sums.ok.max(1) as f64;
    // COSBench adds whole milliseconds.
    let (response_ms, transfer_ms) = match strict {
        true => (sums.response_ms as f64 / ok, sums.transfer_ms as f64 / ok),
        false => (
            sums.response_ns as f64 / ok / 1e6,
            sums.transfer_ns as f64 / ok / 1e6,
        ),
    };
    Figures {
        ops: sums.ok,
        bytes: sums.bytes,
        response_ms,
        processing_ms: response_ms - transfer_ms,
        throughput: 0.0,
        bandwidth: 0.0,
        success: (sums.samples > 0).then(|| sums.ok as f64 / sums.samples as f64),
    }
}

/// The figures of a worker over the time from its first start to its last end.
fn worker(sums: &RowSums, span: Option<&WorkerSpan>, strict: bool) -> Figures {
    let mut figures = means(sums, strict);
    if let Some(span) = span {
        let seconds = match strict {
            true => {
                (span.last_ns / 1_000_000).saturating_sub(span.first_ns / 1_000_000) as f64 / 1e3
            }
            false => span.last_ns.saturating_sub(span.first_ns) as f64 / 1e9,
        };
        figures.throughput = sums.ok as f64 / seconds;
        figures.bandwidth = sums.bytes as f64 / seconds;
    }
    if sums.ok == 0 {
        figures.throughput = 0.0;
    }
    if sums.bytes == 0 {
        figures.bandwidth = 0.0;
    }
    figures
}

/// COSBench's percentiles: the upper edge of the first bucket at which the cumulative count reaches the rank, rounded
/// down.
fn legacy_percentiles(buckets: &[(u32, u64)]) -> Option<[f64; 6]> {
    let total: u64 = buckets.iter().map(|b| b.1).sum();
    let edge = |bucket: u32| f64::from(bucket + 1) * 10.0;
    let last = edge(buckets.last()?.0);
    let at = |share: f64| {
        let wanted = (total as f64 * share).floor() as u64;
        if wanted == 0 {
            // Rank 0 is reached in the very first bucket.
            return edge(0);
        }
        let mut sum = 0;
        let found = buckets.iter().find(|(_, count)| {
            sum += count;
            sum >= wanted
        });
        found.map_or(last, |b| edge(b.0))
    };
    let [a, b, c, d, e] = SHARES.map(at);
    Some([a, b, c, d, e, last])
}

/// Our percentiles: nearest rank, from buckets with a resolution of 0.1 %.
fn percentiles(buckets: &[(u32, u64)]) -> Option<[f64; 6]> {
    let total: u64 = buckets.iter().map(|b| b.1).sum();
    let edge = |bucket: u32| Histogram::highest_of(bucket as usize) as f64 / 1e6;
    let last = edge(buckets.last()?.0);
    let at = |share: f64| {
        let wanted = ((total as f64 * share).ceil() as u64).max(1);
        let mut sum = 0;
        let found = buckets.iter().find(|(_, count)| {
            sum += count;
            sum >= wanted
        });
        found.map_or(last, |b| edge(b.0))
    };
    let [a, b, c, d, e] = SHARES.map(at);
    Some([a, b, c, d, e, last])
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
