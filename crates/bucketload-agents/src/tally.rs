//! Wire encoding of intervals: counters and the non-empty buckets of every histogram.
//!
//! Percentiles are never sent: the coordinator adds buckets and computes percentiles from the sums, as for
//! the threads of one process. Decoding adds straight into the tally of the interval, so the cost of a
//! thousand agents is that of their buckets.

use bucketload_core::agent::AgentTotals;
use bucketload_core::endpoint::EndpointTally;
use bucketload_core::error::ErrorKind;
use bucketload_core::histogram::Histogram;
use bucketload_core::op::OpClass;
use bucketload_core::record::Part;
use bucketload_core::tally::{Cell, FINE_BINS, Gauges, Interval, Tally};

use crate::varint::{Reader, put, put_signed, put_text};

/// Maximum number of cells, spans, endpoints or size cells; larger counts are taken for damage.
const MAX_COUNT: usize = 1 << 16;

/// The fields of an interval other than its tally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) phase: u16,
    pub(crate) index: u64,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) gauges: Gauges,
}

/// Appends `interval`.
pub(crate) fn encode(interval: &Interval, out: &mut Vec<u8>) {
    encode_head(interval, out);
    encode_tally(&interval.tally, out);
}

/// Appends everything before the tally.
pub(crate) fn encode_head(interval: &Interval, out: &mut Vec<u8>) {
    for number in [
        u64::from(interval.phase),
        interval.index,
        interval.start_ns,
        interval.end_ns,
    ] {
        put(number, out);
    }
    let gauges = serde_json::to_string(&interval.gauges).unwrap_or_default();
    put_text(&gauges, out);
}

/// Appends a tally.
pub(crate) fn encode_tally(t: &Tally, out: &mut Vec<u8>) {
    for number in [
        t.offered,
        t.offered_bytes,
        t.issued,
        t.connects,
        t.capped,
        t.jobs.begun,
        t.jobs.ended,
        t.jobs.delayed,
        t.replay.shed,
        t.replay.skipped_absent,
        t.replay.skipped_other,
        t.replay.absent,
        t.replay.absent_as_recorded,
        t.replay.unexpected,
        t.replay.blocked,
        t.replay.shaped,
    ] {
        put(number, out);
    }
    let mut cache = t.kvcache;
    for number in cache.sums() {
        put(*number, out);
    }
    for number in cache.peaks() {
        put(*number, out);
    }
    for h in [
        &t.lag,
        &t.late,
        &t.dispatch,
        &t.connect_tcp,
        &t.connect_tls,
        &t.connect_dns,
        &t.blocked,
        &t.shaped,
    ] {
        histogram(h, out);
    }
    put(t.cells.len() as u64, out);
    for cell in &t.cells {
        put_cell(cell, out);
    }
    put(t.endpoints.len() as u64, out);
    for endpoint in &t.endpoints {
        for number in [
            endpoint.ok,
            endpoint.failed,
            endpoint.bytes,
            endpoint.busy_ns,
        ] {
            put(number, out);
        }
        histogram(endpoint.service.as_deref().unwrap_or(&EMPTY), out);
    }
    put(t.spans.len() as u64, out);
    for span in &t.spans {
        for number in [u64::from(span.work), u64::from(span.part), span.failed] {
            put(number, out);
        }
        histogram(&span.makespan, out);
    }
    put(t.sizes.len() as u64, out);
    for cell in &t.sizes {
        put(u64::from(cell.work), out);
        put(cell.class as u64, out);
        for number in [cell.from, cell.to, cell.ok, cell.bytes] {
            put(number, out);
        }
        histogram(&cell.response, out);
        histogram(&cell.service, out);
    }
    let (offered, completed) = t.fine.bins();
    put(t.fine.bin_ns(), out);
    for counts in [offered, completed] {
        put(counts.len() as u64, out);
        counts.iter().for_each(|&n| put(u64::from(n), out));
    }
}

static EMPTY: std::sync::LazyLock<Histogram> = std::sync::LazyLock::new(Histogram::new);

fn put_cell(cell: &Cell, out: &mut Vec<u8>) {
    put(u64::from(cell.work), out);
    put(cell.class as u64, out);
    for number in [cell.ok, cell.retries, cell.bytes] {
        put(number, out);
    }
    for n in cell.failed {
        put(n, out);
    }
    for h in [
        &cell.response,
        &cell.service,
        &cell.ttfb,
        &cell.failed_response,
    ] {
        histogram(h, out);
    }
    for part in Part::ALL {
        histogram(cell.anatomy.part(part).unwrap_or(&EMPTY), out);
    }
}

/// Appends the number of non-empty buckets; if there are any, also the exact figures, and for each bucket
/// its distance from the previous one and its count.
fn histogram(h: &Histogram, out: &mut Vec<u8>) {
    if h.is_empty() {
        return put(0, out);
    }
    put(h.buckets().count() as u64, out);
    let sum = h.sum_ns();
    put(sum as u64, out);
    put((sum >> 64) as u64, out);
    put(h.min_ns(), out);
    put(h.max_ns(), out);
    let mut next = 0;
    for (index, count) in h.buckets() {
        put((index - next) as u64, out);
        put(count, out);
        next = index + 1;
    }
}

fn add_histogram(r: &mut Reader<'_>, into: &mut Histogram) -> Option<()> {
    let buckets = r.number()?;
    if buckets == 0 {
        return Some(());
    }
    let sum = u128::from(r.number()?) | u128::from(r.number()?) << 64;
    let (min_ns, max_ns) = (r.number()?, r.number()?);
    let (mut next, mut torn) = (0usize, false);
    let known = (0..buckets).map_while(|_| {
        let read = (|| {
            let index = next.checked_add(r.small()?)?;
            let count = r.number()?;
            next = index.checked_add(1)?;
            Some((index, count))
        })();
        torn |= read.is_none();
        read
    });
    let sound = into.add_buckets(known, sum, min_ns, max_ns);
    (sound && !torn).then_some(())
}

/// Adds the next number to `into` and returns it.
fn bump(into: &mut u64, r: &mut Reader<'_>) -> Option<u64> {
    let n = r.number()?;
    *into = into.saturating_add(n);
    Some(n)
}

fn class(r: &mut Reader<'_>) -> Option<OpClass> {
    OpClass::ALL.get(r.small::<usize>()?).copied()
}

fn length(r: &mut Reader<'_>) -> Option<usize> {
    r.small().filter(|&n| n <= MAX_COUNT)
}

/// Reads everything before the tally.
pub(crate) fn head(r: &mut Reader<'_>) -> Option<Head> {
    Some(Head {
        phase: r.small()?,
        index: r.number()?,
        start_ns: r.number()?,
        end_ns: r.number()?,
        gauges: serde_json::from_str(r.text()?).ok()?,
    })
}

/// Adds the tally that follows a [`head`] to `into` and returns its sums. `None` if the tally is damaged;
/// part of it may have been added then.
pub(crate) fn add(r: &mut Reader<'_>, into: &mut Tally) -> Option<AgentTotals> {
    let mut sums = AgentTotals {
        offered: r.number()?,
        ..AgentTotals::default()
    };
    into.offered = into.offered.saturating_add(sums.offered);
    bump(&mut into.offered_bytes, r)?;
    sums.issued = r.number()?;
    into.issued = into.issued.saturating_add(sums.issued);
    bump(&mut into.connects, r)?;
    bump(&mut into.capped, r)?;
    bump(&mut into.jobs.begun, r)?;
    bump(&mut into.jobs.ended, r)?;
    bump(&mut into.jobs.delayed, r)?;
    for count in [
        &mut into.replay.shed,
        &mut into.replay.skipped_absent,
        &mut into.replay.skipped_other,
        &mut into.replay.absent,
        &mut into.replay.absent_as_recorded,
        &mut into.replay.unexpected,
        &mut into.replay.blocked,
        &mut into.replay.shaped,
    ] {
        bump(count, r)?;
    }
    for count in into.kvcache.sums() {
        bump(count, r)?;
    }
    for peak in into.kvcache.peaks() {
        *peak = (*peak).max(r.number()?);
    }
    for h in [
        &mut into.lag,
        &mut into.late,
        &mut into.dispatch,
        &mut into.connect_tcp,
        &mut into.connect_tls,
        &mut into.connect_dns,
        &mut into.blocked,
        &mut into.shaped,
    ] {
        add_histogram(r, h)?;
    }
    for _ in 0..length(r)? {
        let (work, class) = (r.small()?, class(r)?);
        add_cell(r, into.cell_mut(work, class), &mut sums)?;
    }
    let endpoints = length(r)?;
    if into.endpoints.len() < endpoints {
        into.endpoints
            .resize_with(endpoints, EndpointTally::default);
    }
    for endpoint in into.endpoints.iter_mut().take(endpoints) {
        bump(&mut endpoint.ok, r)?;
        bump(&mut endpoint.failed, r)?;
        bump(&mut endpoint.bytes, r)?;
        bump(&mut endpoint.busy_ns, r)?;
        add_histogram(r, endpoint.service.get_or_insert_default())?;
    }
    for _ in 0..length(r)? {
        let span = into.span_mut(r.small()?, r.small()?);
        bump(&mut span.failed, r)?;
        add_histogram(r, &mut span.makespan)?;
    }
    for _ in 0..length(r)? {
        let (work, class) = (r.small()?, class(r)?);
        let cell = into.size_cell_mut(work, class, r.number()?, r.number()?);
        bump(&mut cell.ok, r)?;
        bump(&mut cell.bytes, r)?;
        add_histogram(r, &mut cell.response)?;
        add_histogram(r, &mut cell.service)?;
    }
    let bin_ns = r.number()?;
    let mut counts = [[0u32; FINE_BINS]; 2];
    for counts in &mut counts {
        for at in 0..length(r)? {
            *counts.get_mut(at)? = r.small()?;
        }
    }
    into.fine.add(0, bin_ns, &counts[0], &counts[1]);
    r.is_empty().then_some(sums)
}

fn add_cell(r: &mut Reader<'_>, cell: &mut Cell, sums: &mut AgentTotals) -> Option<()> {
    let ok = bump(&mut cell.ok, r)?;
    bump(&mut cell.retries, r)?;
    let bytes = bump(&mut cell.bytes, r)?;
    sums.ok = sums.ok.saturating_add(ok);
    sums.bytes = sums.bytes.saturating_add(bytes);
    for kind in ErrorKind::ALL {
        let n = r.number()?;
        let failed = &mut cell.failed[kind as usize];
        *failed = failed.saturating_add(n);
        let sum = match kind {
            ErrorKind::Cancelled => &mut sums.cancelled,
            _ => &mut sums.failed,
        };
        *sum = sum.saturating_add(n);
    }
    for h in [
        &mut cell.response,
        &mut cell.service,
        &mut cell.ttfb,
        &mut cell.failed_response,
    ] {
        add_histogram(r, h)?;
    }
    for part in Part::ALL {
        match r.0.first() {
            // Most parts are empty and need no histogram.
            Some(0) => r.0 = &r.0[1..],
            _ => add_histogram(r, cell.anatomy.part_mut(part))?,
        }
    }
    Some(())
}

/// Converts an instant to a clock that is `offset_ns` behind, such as from an agent's to the coordinator's.
/// An instant of 0 means "did not happen" and stays 0.
pub(crate) const fn shifted(at_ns: u64, offset_ns: i64) -> u64 {
    if at_ns == 0 {
        return 0;
    }
    let at = at_ns.saturating_add_signed(offset_ns.saturating_neg());
    if at == 0 { 1 } else { at }
}

/// Appends the distance from `base` to `at`, both of which may be 0.
pub(crate) fn put_from(base: u64, at: u64, out: &mut Vec<u8>) {
    put_signed(at.wrapping_sub(base) as i64, out);
}

#[cfg(test)]
mod tests;
