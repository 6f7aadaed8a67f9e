use bucketload_core::error::ErrorKind;
use bucketload_core::op::OpClass;
use bucketload_core::record::{ConnectTimes, OpRecord, Outcome};
use bucketload_core::tally::{Gauges, Interval, Tally};
use proptest::prelude::*;

use super::{add, encode, head, shifted};
use crate::varint::Reader;

fn record() -> impl Strategy<Value = OpRecord> {
    (
        0u16..2,
        0usize..24,
        1u64..1 << 36,
        0u64..1 << 20,
        0usize..17,
    )
        .prop_map(|(work, class, ns, bytes, outcome)| OpRecord {
            work,
            class: OpClass::ALL[class],
            endpoint: (bytes % 2) as u16,
            due_ns: 100,
            taken_ns: 120,
            dispatch_ns: bytes % 3,
            blocked_ns: bytes % 7,
            started_ns: 150,
            held_ns: bytes % 5,
            connect: ConnectTimes {
                tcp_ns: bytes % 5,
                ..ConnectTimes::default()
            },
            sent_ns: 150 + bytes % 3,
            first_byte_ns: 150 + ns / 2,
            done_ns: 150 + ns,
            bytes,
            outcome: ErrorKind::ALL
                .get(outcome)
                .map_or(Outcome::Ok, |&kind| Outcome::Failed(kind)),
            attempts: 1 + (bytes % 2) as u32,
            ..OpRecord::BLANK
        })
}

fn interval(records: &[OpRecord]) -> Interval {
    let mut tally = Tally::new();
    tally.endpoints.resize_with(2, Default::default);
    tally.fine.begin(0, 1_000_000);
    tally.size_cells(0, OpClass::Get, &[1000]);
    for record in records {
        tally.offered += 1;
        tally.issued += 1;
        tally.fine.offered(record.due_ns);
        tally.record(record);
        tally.record_connect(record.connect);
        let span = tally.span_mut(record.work, 1);
        span.failed += 1;
        span.makespan.record(record.bytes);
        for (i, count) in tally.kvcache.sums().into_iter().enumerate() {
            *count += record.bytes / (i as u64 + 1);
        }
        for (i, peak) in tally.kvcache.peaks().into_iter().enumerate() {
            *peak = (*peak).max(record.bytes + i as u64);
        }
    }
    tally.cells.sort_by_key(|c| (c.work, c.class));
    Interval {
        phase: 3,
        index: 7,
        start_ns: 11,
        end_ns: 13,
        tally,
        gauges: Gauges {
            sessions: 5,
            wall_offset_ns: -9,
            ..Gauges::default()
        },
    }
}

fn decode(bytes: &[u8], into: &mut Tally) -> Option<(super::Head, u64)> {
    let mut reader = Reader(bytes);
    let head = head(&mut reader)?;
    let sums = add(&mut reader, into)?;
    Some((head, sums.ok + sums.failed + sums.cancelled))
}

proptest! {
    // Each case makes hundreds of histograms.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn decoding_merges_like_a_local_merge(
        a in prop::collection::vec(record(), 0..20),
        b in prop::collection::vec(record(), 0..20),
    ) {
        let (ia, ib) = (interval(&a), interval(&b));
        let mut here = ia.tally.clone();
        here.merge(&ib.tally);
        let mut there = Tally::new();
        for (interval, records) in [(&ia, &a), (&ib, &b)] {
            let mut bytes = Vec::new();
            encode(interval, &mut bytes);
            let (head, ended) = decode(&bytes, &mut there).unwrap();
            prop_assert_eq!((head.phase, head.index, head.start_ns, head.end_ns), (3, 7, 11, 13));
            prop_assert_eq!(head.gauges, interval.gauges);
            prop_assert_eq!(ended, records.len() as u64);
        }
        for t in [&mut here, &mut there] {
            t.cells.sort_by_key(|c| (c.work, c.class));
            t.spans.sort_by_key(|s| (s.work, s.part));
        }
        prop_assert_eq!(here.fine.offered_squares(), there.fine.offered_squares());
        prop_assert_eq!(here.fine.completed_squares(), there.fine.completed_squares());
        // The start of the fine counts differs between intervals; only their squares are compared.
        there.fine = here.fine.clone();
        prop_assert_eq!(here, there);
    }

    #[test]
    fn truncated_messages_are_refused(records in prop::collection::vec(record(), 1..4), at in 0.0f64..1.0) {
        let mut bytes = Vec::new();
        encode(&interval(&records), &mut bytes);
        let cut = (at * bytes.len() as f64) as usize;
        prop_assert!(decode(&bytes[..cut], &mut Tally::new()).is_none());
        bytes.push(0);
        prop_assert!(decode(&bytes, &mut Tally::new()).is_none());
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes, &mut Tally::new());
        let _ = add(&mut Reader(&bytes), &mut Tally::new());
    }
}

#[test]
fn instants_are_shifted_and_zero_stays_zero() {
    assert_eq!(shifted(1_000, 400), 600);
    assert_eq!(shifted(1_000, -400), 1_400);
    assert_eq!(shifted(0, 400), 0);
    assert_eq!(
        shifted(300, 400),
        1,
        "never 0, which means `did not happen`"
    );
}
