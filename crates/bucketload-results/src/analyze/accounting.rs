//! Backlog, streams, size classes, bandwidth and gates of a phase.

use bucketload_core::histogram::Histogram;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{ArrivalLaw, KeysetPlan, PhaseKind, PhasePlan, SizeKind, WorkPlan};
use bucketload_core::rows::PhaseRows;
use bucketload_core::sink::StreamSum;
use bucketload_core::tally::{Cell, Tally};
use bucketload_workload::spec::law::KeySpec;

use super::bins::Counts;
use crate::result::latency::{LOW_QUANTILES, QUANTILES};
use crate::result::{
    Backlog, Bandwidth, Gate, Latency, PhaseResult, PopularityId, SizeClass, Streams, Totals,
};

/// The backlog of a phase with arrivals. `all` are the bins of the whole phase, `window` those of its window.
pub(crate) fn backlog(plan: &PhasePlan, all: &[Counts], window: &[Counts]) -> Backlog {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let max_ns = all.iter().map(|b| b.backlog_ns).max().unwrap_or(0);
    let sum: f64 = window.iter().map(|b| seconds(b.backlog_ns)).sum();
    let period_ns = plan
        .works
        .iter()
        .find_map(|work| match work.model.open()?.arrival {
            ArrivalLaw::PeriodicBatch { period_ns, .. } => Some(period_ns),
            _ => None,
        });
    Backlog {
        max_s: seconds(max_ns),
        mean_s: sum / window.len().max(1) as f64,
        end_s: window.last().map_or(0.0, |b| seconds(b.backlog_ns)),
        period_s: period_ns.map(seconds),
        // The oldest arrival's batch, plus one for each period since then.
        max_batches: period_ns.map(|period| match max_ns {
            0 => 0,
            age => age / period.max(1) + 1,
        }),
    }
}

/// Throughput from the streams' point of view; `None` without streams.
pub(crate) fn streams(sums: &[StreamSum]) -> Option<Streams> {
    let first = |of: fn(&StreamSum) -> u64| sums.iter().map(of).min();
    let last = |of: fn(&StreamSum) -> u64| sums.iter().map(of).max();
    let (begin, end) = (first(|s| s.first_start_ns)?, last(|s| s.last_stop_ns)?);
    let all_begun = last(|s| s.first_start_ns)?;
    let any_ended = first(|s| s.last_stop_ns)?;
    let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
    let over = |amount: f64, seconds: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    let (any_active_s, all_active_s) = (seconds(begin, end), seconds(all_begun, any_ended));
    let span = |s: &StreamSum| seconds(s.active.first_start_ns, s.active.last_stop_ns);
    let total = |of: fn(&StreamSum) -> u64| sums.iter().map(of).sum::<u64>() as f64;
    let (spans, busy) = sums.iter().fold((0.0, 0.0), |(spans, busy), s| {
        (spans + span(s), busy + s.active.busy_ns as f64 / 1e9)
    });
    let (start_skew_s, stop_skew_s) = (seconds(begin, all_begun), seconds(any_ended, end));
    Some(Streams {
        streams: sums.len() as u64,
        net_bytes_per_s: sums
            .iter()
            .map(|s| over(s.active.bytes as f64, s.active.busy_ns as f64 / 1e9))
            .sum(),
        net_with_gap_bytes_per_s: sums
            .iter()
            .map(|s| over(s.active.bytes as f64, span(s)))
            .sum(),
        simplified_bytes_per_s: over(total(|s| s.bytes), any_active_s),
        any_active_ops_per_s: over(total(|s| s.ops), any_active_s),
        all_active_ops_per_s: over(total(|s| s.active.ops), all_active_s),
        all_active_s,
        any_active_s,
        gap: if spans > 0.0 {
            (1.0 - busy / spans).max(0.0)
        } else {
            0.0
        },
        start_skew_s,
        stop_skew_s,
        skew: over(start_skew_s + stop_skew_s, any_active_s),
    })
}

/// The size classes of a phase, sorted by work, class and size.
pub(crate) fn size_classes(plan: &PhasePlan, tally: &Tally) -> Vec<SizeClass> {
    let mut cells: Vec<_> = tally.sizes.iter().filter(|cell| cell.ok > 0).collect();
    cells.sort_by_key(|cell| (cell.work, cell.class, cell.from));
    cells
        .into_iter()
        .map(|cell| SizeClass {
            work_name: super::work_name(plan, cell.work),
            class: cell.class,
            from_bytes: cell.from,
            to_bytes: (cell.to != u64::MAX).then_some(cell.to),
            ok: cell.ok,
            bytes: cell.bytes,
            response: Latency::of(&cell.response),
            service: Latency::of(&cell.service),
        })
        .collect()
}

/// The size shared by all objects of a class in a work; `None` if sizes differ.
fn common_size(keysets: &[KeysetPlan], work: &WorkPlan, class: OpClass) -> Option<u64> {
    if !matches!(class, OpClass::Get | OpClass::Put | OpClass::MultipartPut) {
        return None;
    }
    let mut sizes = work
        .mix
        .iter()
        .filter(|entry| entry.class == class)
        .map(|entry| {
            let keyset = &keysets.get(usize::from(entry.keyset))?.size;
            match entry.size.as_ref().unwrap_or(keyset).law {
                SizeKind::Const { bytes } if bytes > 0 => Some(bytes),
                _ => None,
            }
        });
    let first = sizes.next()??;
    sizes.all(|size| size == Some(first)).then_some(first)
}

/// Bandwidth per object for a class whose objects all have the same size.
pub(crate) fn bandwidth(keysets: &[KeysetPlan], work: &WorkPlan, cell: &Cell) -> Option<Bandwidth> {
    let object_bytes = common_size(keysets, work, cell.class)?;
    let service: &Histogram = &cell.service;
    if service.is_empty() || service.min_ns() == 0 {
        return None;
    }
    let mbit_s = |ns: f64| object_bytes as f64 * 8.0 / (ns / 1e9) / 1e6;
    let n = service.count() as f64;
    let (mut sum, mut squares) = (0.0, 0.0);
    for (index, count) in service.buckets() {
        // The middle of the bucket is accurate to 0.05 %.
        let middle = Histogram::lowest_of(index).midpoint(Histogram::highest_of(index));
        let value = mbit_s(middle.clamp(service.min_ns(), service.max_ns()) as f64);
        sum += value * count as f64;
        squares += value * value * count as f64;
    }
    let mean = sum / n;
    let variance = if n > 1.0 {
        (squares - n * mean * mean).max(0.0) / (n - 1.0)
    } else {
        0.0
    };
    Some(Bandwidth {
        object_bytes,
        mean_mbit_s: mean,
        sd_mbit_s: variance.sqrt(),
        // The slowest objects have the longest service times.
        percentiles: LOW_QUANTILES
            .into_iter()
            .chain(QUANTILES)
            .map(|q| (q, mbit_s(service.quantile_ns(1.0 - q).max(1) as f64)))
            .collect(),
    })
}

/// Largest share of failed operations at which a measured phase counts as a success, unless its workload
/// sets another limit.
const MAX_FAILED: f64 = 0.5;

/// The conditions that the phase had to meet: the workload's own. Without one, a measured phase must have
/// succeeded in most operations; this gate is reported only if it fails.
pub(crate) fn gates(plan: &PhasePlan, totals: &Totals, rows: Option<&PhaseRows>) -> Vec<Gate> {
    if let Some(rows) = rows {
        return named_gates(plan, rows);
    }
    let ended = totals.ok + totals.failed;
    let measured = totals.failed as f64 / ended.max(1) as f64;
    let limit = match plan.accounting.max_failed {
        None if plan.kind == PhaseKind::Run && measured > MAX_FAILED => Some(MAX_FAILED),
        limit => limit,
    };
    let gate = |limit| Gate {
        what: "share of failed operations".to_owned(),
        limit,
        measured,
        // A phase without operations proves nothing.
        passed: measured <= limit && ended > 0,
    };
    limit.map(gate).into_iter().collect()
}

/// Works on named objects may fail a stated share of their operations. An entry all of whose operations
/// failed fails its phase (docs/spec/cosbench.md sections 6.2 and 7, B7).
fn named_gates(plan: &PhasePlan, rows: &PhaseRows) -> Vec<Gate> {
    let mut gates = Vec::new();
    for (index, work) in plan.works.iter().enumerate() {
        let Some(named) = work.model.named() else {
            continue;
        };
        let sums = |entry: usize| rows.sums(index as u16, entry as u16).0;
        let (mut samples, mut ok) = (0, 0);
        for (entry, of) in named.entries.iter().enumerate() {
            let sum = sums(entry);
            samples += sum.samples;
            ok += sum.ok;
            if sum.samples > 0 && sum.ok == 0 {
                gates.push(Gate {
                    what: format!(
                        "share of failed `{}` operations of `{}`",
                        of.title, work.name
                    ),
                    limit: 1.0 - 1e-6,
                    measured: 1.0,
                    passed: false,
                });
            }
        }
        let failed = samples - ok;
        gates.push(Gate {
            what: format!("share of failed operations of `{}`", work.name),
            limit: f64::from(named.max_failed_ppm) / 1e6,
            measured: failed as f64 / samples.max(1) as f64,
            passed: failed <= samples * u64::from(named.max_failed_ppm) / 1_000_000,
        });
    }
    gates
}

/// The popularity law of every operation that has one, for the header of the result.
pub(crate) fn popularity(phases: &[PhaseResult]) -> Vec<PopularityId> {
    let entries = phases
        .iter()
        .flat_map(|phase| phase.realised.iter().map(move |entry| (phase, entry)));
    entries
        .filter_map(|(phase, entry)| {
            let popularity = entry.popularity.as_ref()?;
            Some(PopularityId {
                phase: phase.name.clone(),
                work: entry.work_name.clone(),
                class: entry.class,
                law: popularity.law.clone(),
                objects: popularity.objects,
                top: popularity.top.clone(),
                effective: popularity.effective,
            })
        })
        .collect()
}

/// A key law in the notation of workload files.
pub(crate) fn key_law(keys: &bucketload_core::plan::KeyLaw) -> String {
    KeySpec(keys.clone()).to_string()
}

#[cfg(test)]
mod tests {
    use bucketload_core::sink::{ActiveSum, StreamSum};

    use super::streams;

    const MS: u64 = 1_000_000;

    /// Two streams, the second delayed by 100 ms: both are active from 100 to 1000 ms.
    fn two() -> [StreamSum; 2] {
        let active = |first: u64, last: u64, ops: u64, busy: u64| ActiveSum {
            first_start_ns: first * MS,
            last_stop_ns: last * MS,
            ops,
            bytes: ops * 1000,
            busy_ns: busy * MS,
        };
        [
            StreamSum {
                work: 0,
                worker: 0,
                first_start_ns: 0,
                last_stop_ns: 1000 * MS,
                ops: 10,
                failed: 0,
                bytes: 10_000,
                busy_ns: 900 * MS,
                active: active(100, 1000, 9, 720),
            },
            StreamSum {
                work: 0,
                worker: 1,
                first_start_ns: 100 * MS,
                last_stop_ns: 1100 * MS,
                ops: 10,
                failed: 0,
                bytes: 10_000,
                busy_ns: 900 * MS,
                active: active(100, 1000, 9, 900),
            },
        ]
    }

    #[test]
    fn the_three_definitions_of_throughput() {
        let s = streams(&two()).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9 * b.abs().max(1.0);
        // 9000/0.72 + 9000/0.9, 2 · 9000/0.9, 20 000/1.1.
        assert!(near(s.net_bytes_per_s, 22_500.0), "{s:?}");
        assert!(near(s.net_with_gap_bytes_per_s, 20_000.0), "{s:?}");
        assert!(near(s.simplified_bytes_per_s, 20_000.0 / 1.1), "{s:?}");
        assert!(near(s.any_active_ops_per_s, 20.0 / 1.1));
        assert!(near(s.all_active_ops_per_s, 18.0 / 0.9));
        // 1.8 s of common time, of which 1.62 s are busy.
        assert!(near(s.gap, 0.1), "{s:?}");
        assert!(near(s.skew, 0.2 / 1.1) && !s.is_skewed());
        let mut late = two();
        late[1].first_start_ns = 200 * MS;
        assert!(streams(&late).unwrap().is_skewed());
        assert_eq!(streams(&[]), None);
    }

    #[test]
    fn streams_without_overlap_have_no_common_figures() {
        let mut apart = two();
        for s in &mut apart {
            s.active = ActiveSum::default();
        }
        apart[1].first_start_ns = 1050 * MS;
        let s = streams(&apart).unwrap();
        assert_eq!((s.net_bytes_per_s, s.all_active_s, s.gap), (0.0, 0.0, 0.0));
        assert!(s.is_skewed());
    }
}
