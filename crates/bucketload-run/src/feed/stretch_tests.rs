//! Finds the busiest stretch of generated traces.

use bucketload_core::plan::{
    Accounting, LatePolicy, Limits, OnAbsent, PhaseKind, PhasePlan, ReplayPart, ReplayPlan,
    ReplayTiming,
};
use bucketload_core::trace::{
    Batch, RecordStream, TraceError, TraceOp, TraceRecord, TraceSource, key_hash,
};

use super::{KEPT, Stretch};
use crate::stop::StopHandle;

const MS: i64 = 1_000_000;

/// Records in order; the key of each is its position.
struct Records(Vec<TraceRecord>);

struct Stream(std::vec::IntoIter<TraceRecord>, u64);

impl RecordStream for Stream {
    fn next_batch(&mut self, out: &mut Batch) -> Result<bool, TraceError> {
        out.clear();
        for record in self.0.by_ref().take(1_000) {
            out.push(record, format!("{}", self.1).as_bytes(), []);
            self.1 += 1;
        }
        Ok(!out.is_empty())
    }
}

impl TraceSource for Records {
    fn records(&self) -> Result<Box<dyn RecordStream>, TraceError> {
        Ok(Box::new(Stream(self.0.clone().into_iter(), 0)))
    }
    fn preload(&self) -> Result<Box<dyn RecordStream>, TraceError> {
        Err(TraceError("only the requests are replayed".into()))
    }
}

/// `n` reads from `from_ms` on, `gap_ms` apart.
fn reads(n: u64, from_ms: i64, gap_ms: f64) -> impl Iterator<Item = TraceRecord> {
    (0..n).map(move |i| TraceRecord {
        ts_ns: from_ms * MS + (i as f64 * gap_ms * MS as f64) as i64,
        op: TraceOp::Get,
        key_hash: key_hash(0, &i.to_le_bytes()),
        size: 1_000,
        ..TraceRecord::default()
    })
}

fn replay(timing: ReplayTiming) -> ReplayPlan {
    ReplayPlan {
        trace: String::new(),
        part: ReplayPart::Requests,
        timing,
        late: LatePolicy::Drop { after_ns: 1 },
        per_key: true,
        on_absent: OnAbsent::Skip,
        max_in_flight: 64,
        buckets: Vec::new(),
    }
}

fn found(records: Vec<TraceRecord>, timing: ReplayTiming, duration_ns: u64) -> Stretch {
    let phase = PhasePlan {
        name: "replay".into(),
        kind: PhaseKind::Run,
        works: Vec::new(),
        limits: Limits {
            duration_ns,
            ..Limits::default()
        },
        steady_state: false,
        stop: None,
        accounting: Accounting::default(),
    };
    let stop = StopHandle::new();
    Stretch::find(&Records(records), &replay(timing), &phase, &stop).unwrap()
}

/// A quiet second, a busy one, quiet ones.
fn day() -> Vec<TraceRecord> {
    let quiet = reads(10, 0, 100.0).chain(reads(300, 1_000, 2.0));
    quiet.chain(reads(80, 2_000, 100.0)).collect()
}

const RECORDED: ReplayTiming = ReplayTiming::Original { speed: 1.0 };

/// Keys and milliseconds of the first `n` requests of a stretch.
fn first(stretch: &Stretch, n: usize) -> Vec<(String, i64)> {
    let mut stream = stretch.records().unwrap();
    let mut batch = Batch::new();
    stream.next_batch(&mut batch).unwrap();
    let rows = batch.iter().take(n);
    rows.map(|r| {
        let key = String::from_utf8_lossy(r.key).into_owned();
        (key, r.record.ts_ns / MS)
    })
    .collect()
}

#[test]
fn the_busiest_second_is_found_and_repeated() {
    let stretch = found(day(), RECORDED, 0);
    assert_eq!(stretch.rate, 300.0);
    let rows = first(&stretch, 602);
    let row = |i: usize| (rows[i].0.as_str(), rows[i].1);
    assert_eq!([row(0), row(1)], [("10", 0), ("11", 2)]);
    // The next repetition begins a second later, with the same request.
    assert_eq!([row(299), row(300)], [("309", 598), ("10", 1_000)]);
    assert_eq!(row(601), ("11", 2_002));
}

#[test]
fn speed_limits_and_duration_count_as_in_the_replay() {
    // At double speed a second holds two recorded ones.
    let double = found(day(), ReplayTiming::Original { speed: 2.0 }, 0);
    assert_eq!(double.rate, 310.0);
    let capped = ReplayTiming::Capped {
        speed: 1.0,
        ops_per_s: 50.0,
        bytes_per_s: 0.0,
    };
    assert_eq!(found(day(), capped, 0).rate, 50.0);
    // The busy second is beyond the end of the replay.
    assert_eq!(found(day(), RECORDED, 1_000_000_000).rate, 10.0);
}

#[test]
fn requests_count_as_often_as_they_are_repeated_and_not_when_left_out() {
    let mut records: Vec<_> = reads(4, 0, 1.0).collect();
    records[0].repeat = 5;
    records[1].absent = true;
    records[2].op = TraceOp::Other;
    let stretch = found(records, RECORDED, 0);
    assert_eq!(stretch.rate, 6.0);
    let keys: Vec<String> = first(&stretch, 7).into_iter().map(|row| row.0).collect();
    assert_eq!(keys, ["0", "0", "0", "0", "0", "3", "0"]);
}

#[test]
fn a_repeated_trace_is_not_read_to_its_end() {
    let lap = |lap| move |record| TraceRecord { lap, ..record };
    let laps = (0..3).flat_map(|n| reads(10 * (n + 1), 2_000 * n as i64, 1.0).map(lap(n as u32)));
    // The third lap is not searched: in a real trace it is like the second.
    assert_eq!(found(laps.collect(), RECORDED, 0).rate, 20.0);
}

#[test]
fn the_kept_requests_are_bounded_and_keep_their_rate() {
    let many = KEPT as u64 * 4;
    let stretch = found(reads(many, 0, 999.0 / many as f64).collect(), RECORDED, 0);
    assert_eq!(stretch.rate, many as f64);
    assert_eq!(stretch.requests.len(), KEPT);
    assert!(stretch.period_ns.abs_diff(250_000_000) < 1_000_000);
    let paced = stretch.paced(&replay(RECORDED), 2.0 * stretch.rate);
    let speed = paced.timing.speed().unwrap();
    assert!((speed - 2.0).abs() < 0.01, "{speed}");
    // A burst that was cut off is repeated only when it is over.
    let burst = reads(many, 900, 0.001).chain(reads(10, 2_000, 1.0));
    let stretch = found(burst.collect(), RECORDED, 0);
    let mut stream = stretch.records().unwrap();
    let (mut batch, mut last) = (Batch::new(), i64::MIN);
    for _ in 0..3 * KEPT / Batch::RECORDS {
        assert!(stream.next_batch(&mut batch).unwrap());
        for recorded in batch.iter() {
            assert!(recorded.record.ts_ns >= last);
            last = recorded.record.ts_ns;
        }
    }
}

#[test]
fn a_closed_loop_takes_the_beginning_and_no_request_means_no_stretch() {
    let asap = found(
        reads(2 * KEPT as u64, 0, 0.1).collect(),
        ReplayTiming::Asap,
        0,
    );
    assert_eq!((asap.rate, asap.requests.len()), (0.0, KEPT));
    let nothing = found(Vec::new(), RECORDED, 0);
    assert_eq!(nothing.rate, 0.0);
    let mut batch = Batch::new();
    assert!(!nothing.records().unwrap().next_batch(&mut batch).unwrap());
}

#[test]
fn calibration_leaves_no_request_out() {
    let recorded = replay(RECORDED);
    let stretch = found(day(), RECORDED, 0);
    for plan in [
        stretch.paced(&recorded, 600.0),
        Stretch::saturating(&recorded, 8),
    ] {
        assert_eq!(plan.late, LatePolicy::Issue);
        assert_eq!(plan.on_absent, OnAbsent::Preload);
        assert!(plan.per_key);
    }
    let saturating = Stretch::saturating(&recorded, 8);
    assert_eq!(
        (saturating.timing, saturating.max_in_flight),
        (ReplayTiming::Asap, 8)
    );
    assert_eq!(Stretch::saturating(&recorded, 100).max_in_flight, 64);
}
