//! Wire encoding of operation log rows: every field of [`Trail`] as a number of variable length, instants
//! as distances from the due instant.

use bucketload_core::driver::RequestRoute;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::{ByteRange, Op, OpClass};
use bucketload_core::oplog::{Batch, Producer};
use bucketload_core::record::{AnswerIds, ConnectTimes, OpRecord, Outcome};
use bucketload_core::trail::Trail;

use crate::tally::{put_from, shifted};
use crate::varint::{Reader, put, put_text};

/// Appends phase, thread, number of rows and the rows of `batch`.
pub(crate) fn encode(batch: &Batch, out: &mut Vec<u8>) {
    put(u64::from(batch.phase), out);
    put(u64::from(batch.thread), out);
    put(batch.len() as u64, out);
    for (trail, key, source) in batch.rows() {
        put_row(trail, key, source, out);
    }
}

/// Number of rows in a message; 0 if it is damaged.
pub(crate) fn count(bytes: &[u8]) -> u64 {
    let mut r = Reader(bytes);
    let mut read = || {
        r.number()?;
        r.number()?;
        r.number()
    };
    read().unwrap_or(0)
}

/// Logs the rows of a message with `producer`, adding `thread_base` to thread numbers and shifting instants
/// by `offset_ns`. `None` if the message is damaged.
pub(crate) fn log(
    bytes: &[u8],
    offset_ns: i64,
    thread_base: u16,
    producer: &mut Producer,
) -> Option<()> {
    let mut r = Reader(bytes);
    let (phase, thread) = (r.small()?, r.small::<u16>()?);
    let rows = r.number()?;
    producer.switch(phase, thread_base.saturating_add(thread));
    for _ in 0..rows {
        let trail = row(&mut r, offset_ns)?;
        producer.push(trail, r.text()?, r.text()?);
    }
    producer.flush();
    r.is_empty().then_some(())
}

fn put_row(trail: &Trail, key: &str, source: &str, out: &mut Vec<u8>) {
    let (r, op) = (&trail.record, &trail.op);
    let due = r.due_ns;
    put(due, out);
    for at in [
        r.taken_ns,
        r.started_ns,
        r.sent_ns,
        r.first_byte_ns,
        r.done_ns,
    ] {
        // Without an instant the distance is meaningless.
        put(u64::from(at != 0), out);
        put_from(due, at, out);
    }
    for number in [
        u64::from(r.work),
        r.class as u64,
        u64::from(r.worker),
        u64::from(r.endpoint),
        r.dispatch_ns,
        r.blocked_ns,
        r.held_ns,
        r.connect.dns_ns,
        r.connect.tcp_ns,
        r.connect.tls_ns,
        r.bytes,
        match r.outcome {
            Outcome::Ok => 0,
            Outcome::Failed(kind) => 1 + kind as u64,
        },
        u64::from(r.attempts),
        op.seq,
        op.class as u64,
        u64::from(op.entry),
        u64::from(op.keyset),
        op.key,
        op.source_key,
        u64::from(op.source_keyset),
        u64::from(op.version),
        // `UNKNOWN_SIZE` is the largest number, whose encoding would be the longest.
        op.size.wrapping_add(1),
        op.range.map_or(0, |range| range.offset),
        op.range.map_or(0, |range| range.len),
        op.count,
        u64::from(op.pages),
        u64::from(trail.route.endpoint),
        u64::from(trail.route.local_port),
        trail.route.connection,
        u64::from(trail.status),
    ] {
        put(number, out);
    }
    put_text(trail.ids.request_id.as_str(), out);
    put_text(trail.ids.extended_id.as_str(), out);
    put_text(key, out);
    put_text(source, out);
}

/// Reads a row up to its two key names.
fn row(r: &mut Reader<'_>, offset_ns: i64) -> Option<Trail> {
    let due = r.number()?;
    let mut instants = [0u64; 5];
    for at in &mut instants {
        let happened = r.number()? != 0;
        let distance = r.signed()?;
        if happened {
            *at = shifted(due.wrapping_add(distance as u64), offset_ns);
        }
    }
    let [taken_ns, started_ns, sent_ns, first_byte_ns, done_ns] = instants;
    let class = |r: &mut Reader<'_>| OpClass::ALL.get(r.small::<usize>()?).copied();
    let record = OpRecord {
        due_ns: shifted(due, offset_ns),
        taken_ns,
        started_ns,
        sent_ns,
        first_byte_ns,
        done_ns,
        work: r.small()?,
        class: class(r)?,
        worker: r.small()?,
        endpoint: r.small()?,
        dispatch_ns: r.number()?,
        blocked_ns: r.number()?,
        held_ns: r.number()?,
        connect: ConnectTimes {
            dns_ns: r.number()?,
            tcp_ns: r.number()?,
            tls_ns: r.number()?,
        },
        bytes: r.number()?,
        outcome: match r.small::<usize>()? {
            0 => Outcome::Ok,
            n => Outcome::Failed(*ErrorKind::ALL.get(n - 1)?),
        },
        attempts: r.small()?,
    };
    let (seq, class) = (r.number()?, class(r)?);
    let (entry, keyset) = (r.small()?, r.small()?);
    let (key, source_key) = (r.number()?, r.number()?);
    let (source_keyset, version) = (r.small()?, r.small()?);
    let size = r.number()?.wrapping_sub(1);
    let range = ByteRange {
        offset: r.number()?,
        len: r.number()?,
    };
    let op = Op {
        seq,
        class,
        entry,
        keyset,
        key,
        source_key,
        source_keyset,
        version,
        size,
        range: (range.len > 0).then_some(range),
        count: r.number()?,
        pages: r.small()?,
    };
    let route = RequestRoute {
        endpoint: r.small()?,
        local_port: r.small()?,
        connection: r.number()?,
    };
    let status = r.small()?;
    let mut ids = AnswerIds::default();
    ids.request_id.set(r.text()?.as_bytes());
    ids.extended_id.set(r.text()?.as_bytes());
    Some(Trail {
        record,
        op,
        route,
        status,
        ids,
    })
}

#[cfg(test)]
mod tests {
    use bucketload_core::driver::RequestRoute;
    use bucketload_core::error::ErrorKind;
    use bucketload_core::op::{ByteRange, Op, OpClass};
    use bucketload_core::oplog::OpLog;
    use bucketload_core::record::{AnswerIds, ConnectTimes, OpRecord, Outcome};
    use bucketload_core::trail::Trail;

    use super::{count, encode, log};

    fn trail(seq: u64) -> Trail {
        let mut ids = AnswerIds::default();
        ids.request_id.set(format!("id-{seq}").as_bytes());
        Trail {
            record: OpRecord {
                work: 1,
                class: OpClass::RangeGet,
                worker: 77,
                endpoint: 3,
                due_ns: 1_000_000 + seq,
                taken_ns: 1_000_100 + seq,
                dispatch_ns: 4,
                blocked_ns: 5,
                started_ns: 1_000_200 + seq,
                held_ns: 9,
                connect: ConnectTimes {
                    dns_ns: 1,
                    tcp_ns: 2,
                    tls_ns: 3,
                },
                sent_ns: if seq.is_multiple_of(2) {
                    0
                } else {
                    1_000_300 + seq
                },
                first_byte_ns: 0,
                done_ns: 5_000_000 + seq,
                bytes: 1 << 33,
                outcome: match seq % 3 {
                    0 => Outcome::Ok,
                    _ => Outcome::Failed(ErrorKind::Reset),
                },
                attempts: 2,
            },
            op: Op {
                seq,
                class: OpClass::RangeGet,
                entry: 2,
                keyset: 1,
                key: 1 << 40,
                source_key: 6,
                source_keyset: 5,
                version: 4,
                size: if seq.is_multiple_of(2) {
                    Op::UNKNOWN_SIZE
                } else {
                    0
                },
                range: (seq.is_multiple_of(2)).then_some(ByteRange { offset: 9, len: 8 }),
                count: 11,
                pages: 12,
            },
            route: RequestRoute {
                endpoint: 3,
                local_port: 40_000,
                connection: 999,
            },
            status: 206,
            ids,
        }
    }

    #[test]
    fn rows_survive_and_instants_move_to_the_other_clock() {
        let (out, sent) = OpLog::sized(1, 4, 8);
        let mut producer = out.producer(2, 1);
        (0..5).for_each(|seq| producer.push(trail(seq), &format!("k{seq}"), "src"));
        producer.flush();
        let mut bytes = Vec::new();
        encode(&sent.recv().unwrap(), &mut bytes);
        assert_eq!(count(&bytes), 5);
        let (into, arrived) = OpLog::sized(1, 4, 8);
        let mut relay = into.producer(0, 0);
        log(&bytes, 500, 10, &mut relay).unwrap();
        let batch = arrived.recv().unwrap();
        assert_eq!((batch.phase, batch.thread), (2, 11));
        for (seq, (got, key, source)) in batch.rows().enumerate() {
            let mut expected = trail(seq as u64);
            let r = &mut expected.record;
            for at in [
                &mut r.due_ns,
                &mut r.taken_ns,
                &mut r.started_ns,
                &mut r.sent_ns,
                &mut r.done_ns,
            ] {
                *at = at.saturating_sub(500);
            }
            assert_eq!(*got, expected);
            assert_eq!((key, source), (format!("k{seq}").as_str(), "src"));
        }
        for cut in 0..bytes.len() {
            assert!(log(&bytes[..cut], 0, 0, &mut relay).is_none(), "{cut}");
            while let Ok(batch) = arrived.try_recv() {
                batch.recycle();
            }
        }
    }
}
