//! Replay sources: laps, copies, scaling, buckets (docs/spec/traces.md sections 4.3 and 4.4).

use std::collections::HashSet;

use crate::support::{Prepared, Row, native, prepared, rows_of};
use bucketload_core::trace::TraceOp::{self, *};
use bucketload_core::trace::TraceSource;
use bucketload_trace::{LapKeys, Replay, SourceOptions};

fn replay(p: &Prepared, change: impl FnOnce(&mut SourceOptions)) -> Replay {
    let mut options = SourceOptions::default();
    change(&mut options);
    Replay::new(p.canonical.clone(), options).unwrap()
}

fn records(replay: &Replay) -> Vec<Row> {
    rows_of(&mut *replay.records().unwrap())
}

fn preload(replay: &Replay) -> Vec<Row> {
    rows_of(&mut *replay.preload().unwrap())
}

/// Performs the requests on a set of names. Returns the number of reads of absent objects.
fn missing(replay: &Replay) -> usize {
    let mut store: HashSet<String> = preload(replay).into_iter().map(|row| row.1).collect();
    let mut missing = 0;
    for (r, key, more) in records(replay) {
        match r.op {
            Put | MpuComplete => {
                store.insert(key);
            }
            Copy => {
                missing += usize::from(!store.contains(&more[0]));
                store.insert(key);
            }
            Delete => {
                store.remove(&key);
            }
            MultiDelete => {
                store.remove(&key);
                store.retain(|key| !more.contains(key));
            }
            Get | Head => missing += usize::from(!store.contains(&key)),
            _ => {}
        }
    }
    missing
}

/// A trace that creates, reads, copies and deletes.
fn churn() -> Prepared {
    let mut text = "ts_ns,op,bucket,key,size,source,status\n".to_owned();
    for i in 0..300u64 {
        let ts = i * 1000;
        let key = bucketload_core::generate::rng::mix64(i) % 20;
        text += &match i % 6 {
            0 => format!("{ts},PUT,b,n{i},10,,200\n"),
            1 => format!("{ts},GET,b,n{},10,,200\n", i - 1),
            2 => format!("{ts},DELETE,b,n{},-1,,204\n", i - 2),
            3 => format!("{ts},COPY,b,c{i},-1,b/old{key},200\n"),
            4 => format!("{ts},DELETE,b,once{i},-1,,204\n"),
            _ => format!("{ts},GET,b,old{key},20,,200\n"),
        };
    }
    prepared(&[("t", text.as_bytes())], |_| {}).unwrap()
}

#[test]
fn suffixed_laps_and_copies_find_all_objects() {
    let p = churn();
    assert_eq!(missing(&replay(&p, |_| {})), 0);
    for (laps, copies) in [(3, 1), (1, 4), (3, 2)] {
        let r = replay(&p, |o| (o.laps, o.copies) = (laps, copies));
        assert_eq!(missing(&r), 0, "{laps} laps, {copies} copies");
        let all = records(&r);
        assert_eq!(all.len() as u64, r.requests());
        assert_eq!(all.len(), 300 * (laps * copies) as usize);
        assert!(all.is_sorted_by_key(|row| row.0.ts_ns));
        assert!(all.last().unwrap().0.ts_ns <= r.span_ns());
    }
    // With the same names, a later lap misses objects that an earlier one deleted.
    let r = replay(&p, |o| (o.laps, o.lap_keys) = (2, LapKeys::Reuse));
    let twice: Vec<Row> = records(&r)
        .into_iter()
        .filter(|row| row.0.lap == 1)
        .collect();
    assert!(
        twice
            .iter()
            .all(|row| !row.1.contains("#lap") && !row.0.absent)
    );
}

#[test]
fn laps_follow_at_the_mean_gap_and_share_objects_that_are_only_read() {
    let rows = [
        "0,PUT,b,new,1,0,-1,c,200",
        "100,GET,b,old,2,0,-1,c,200",
        "200,GET,b,new,1,0,-1,c,200",
    ];
    let p = prepared(&[("t", &native(&rows))], |_| {}).unwrap();
    let r = replay(&p, |o| o.laps = 2);
    let found = records(&r);
    let found: Vec<(i64, u32, &str)> = found
        .iter()
        .map(|row| (row.0.ts_ns, row.0.lap, row.1.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (0, 0, "b/new"),
            (100, 0, "b/old"),
            (200, 0, "b/new"),
            (300, 1, "b/new#lap1"),
            (400, 1, "b/old"),
            (500, 1, "b/new#lap1"),
        ]
    );
    let names: Vec<String> = preload(&r).into_iter().map(|row| row.1).collect();
    assert_eq!(names, ["b/old"]);
    assert_eq!((r.lap_ns(), r.span_ns(), r.requests()), (300, 500, 6));
}

#[test]
fn sizes_offsets_and_lengths_scale_together() {
    let rows = [
        "0,GET,b,k,1000,100,200,c,206",
        "1,GET,b,k,1000,900,100,c,206",
        "2,PUT,b,zero,0,0,-1,c,200",
        "3,PUT,b,one,1,0,-1,c,200",
    ];
    let p = prepared(&[("t", &native(&rows))], |_| {}).unwrap();
    let of = |factor: f64, bounds| {
        let r = replay(&p, |o| (o.size_factor, o.size_bounds) = (factor, bounds));
        let sizes = |rows: Vec<Row>| {
            rows.iter()
                .map(|r| (r.0.size, r.0.off, r.0.len))
                .collect::<Vec<_>>()
        };
        (sizes(records(&r)), sizes(preload(&r)))
    };
    let (found, objects) = of(2.0, (0, u64::MAX));
    assert_eq!(
        found,
        [(2000, 200, 400), (2000, 1800, 200), (0, 0, -1), (2, 0, -1)]
    );
    assert_eq!(objects, [(2000, 0, -1)]);
    let (found, _) = of(0.1, (0, u64::MAX));
    assert_eq!(
        found,
        [(100, 10, 20), (100, 90, 10), (0, 0, -1), (1, 0, -1)]
    );
    let (found, objects) = of(1.0, (4, 500));
    assert_eq!(
        found,
        [(500, 100, 200), (500, 499, 1), (0, 0, -1), (4, 0, -1)]
    );
    assert_eq!(objects, [(500, 0, -1)]);
}

#[test]
fn buckets_become_prefixes_and_can_be_renamed() {
    let text = "ts_ns,op,bucket,key,size,source,status\n0,PUT,b0,k,5,,200\n\
                1,COPY,b1,c,-1,b0/k,200\n2,LIST,b0,p/,-1,,200\n";
    let p = prepared(&[("t", text.as_bytes())], |_| {}).unwrap();
    let r = replay(&p, |o| drop(o.rename.insert("b0".into(), "new".into())));
    let found = records(&r);
    let found: Vec<(TraceOp, &str, Vec<&str>)> = found
        .iter()
        .map(|row| {
            (
                row.0.op,
                row.1.as_str(),
                row.2.iter().map(String::as_str).collect(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (Put, "new/k", vec![]),
            (Copy, "b1/c", vec!["new/k"]),
            (List, "new/p/", vec![])
        ]
    );
    let options = SourceOptions {
        rename: [("no".into(), "x".into())].into(),
        ..Default::default()
    };
    let error = Replay::new(p.canonical.clone(), options)
        .unwrap_err()
        .to_string();
    assert!(error.contains("b0, b1"), "{error}");
    for wrong in [
        SourceOptions {
            laps: 0,
            ..Default::default()
        },
        SourceOptions {
            copies: 65,
            ..Default::default()
        },
        SourceOptions {
            size_factor: 0.0,
            ..Default::default()
        },
    ] {
        assert!(Replay::new(p.canonical.clone(), wrong).is_err());
    }
}
