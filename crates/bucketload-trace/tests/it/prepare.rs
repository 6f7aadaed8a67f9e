//! Preparation: order, duplicates, liveness, sizes, instants, sampling, filters (docs/spec/traces.md sections
//! 1, 4.2, 4.3, 5).

use crate::support::{Prepared, Row, native, prepared};
use bucketload_core::trace::TraceOp::{self, *};
use bucketload_trace::{
    Ambiguous, CanonicalTrace, RangePlacement, Sample, SampleBy, Ticks, TraceError, Untimed,
};

fn of(rows: &[&str]) -> Prepared {
    prepared(&[("t.csv", &native(rows))], |_| {}).unwrap()
}

fn ops(rows: &[Row]) -> Vec<(TraceOp, &str)> {
    rows.iter()
        .map(|(r, key, _)| (r.op, key.as_str()))
        .collect()
}

#[test]
fn files_are_merged_by_time_and_duplicates_dropped() {
    let line = |second: u32, id: &str, op: &str, key: &str| {
        format!(
            "o b [14/Mar/2031:09:26:{second:02} +0000] 203.0.113.4 - {id} {op} {key} \
             \"GET /b/{key} HTTP/1.1\" 200 - 10 10 5 5 \"-\" \"x\" - h\n"
        )
    };
    let get = "REST.GET.OBJECT";
    let late = [line(3, "R3", get, "c"), line(1, "R1", get, "a")].concat();
    let other = [line(2, "R2", get, "b"), line(1, "R1", get, "a")].concat();
    let p = prepared(
        &[("1.log", late.as_bytes()), ("2.log", other.as_bytes())],
        |_| {},
    )
    .unwrap();
    assert_eq!(ops(&p.records), [(Get, "a"), (Get, "b"), (Get, "c")]);
    assert_eq!(p.summary.dropped["duplicate"], 1);
    assert_eq!((p.summary.files.len(), p.summary.frames), (2, 4));
    assert_eq!(p.summary.backward_steps, 1);
    assert_eq!(p.summary.span_ns, 2_000_000_000);
    assert_eq!(p.summary.first_ts_ns, 1_931_246_761_000_000_000);
    assert_eq!(p.summary.resolution_ns, 1_000_000_000);
    // The keys of a bulk delete are merged, wherever their lines were.
    let batch = "BATCH.DELETE.OBJECT";
    let text = [
        line(1, "R9", batch, "x"),
        line(1, "R8", get, "y"),
        line(1, "R9", batch, "z"),
    ];
    let p = prepared(&[("1.log", text.concat().as_bytes())], |_| {}).unwrap();
    assert_eq!(p.records.len(), 2);
    let (record, key, more) = &p.records[0];
    let mut keys = [key.as_str(), &more[0]];
    keys.sort_unstable();
    assert_eq!((record.op, keys, more.len()), (MultiDelete, ["x", "z"], 1));
}

#[test]
fn objects_that_existed_before_are_preloaded() {
    let p = of(&[
        "0,GET,b,read,100,10,20,c,206",
        "1,HEAD,b,head,-1,0,-1,c,200",
        "2,DELETE,b,deleted,-1,0,-1,c,204",
        "3,PUT,b,made,30,0,-1,c,200",
        "4,GET,b,made,30,0,-1,c,200",
        "5,GET,b,missing,-1,0,-1,c,404",
        "6,PUT,b,missing,40,0,-1,c,200",
        "7,GET,b,failed,9,0,-1,c,503",
        "8,PUT,b,failed,50,0,-1,c,200",
        "9,GET,b,partial,-1,4096,904,c,206",
    ]);
    let preload: Vec<(&str, i64)> = p.preload.iter().map(|r| (r.1.as_str(), r.0.size)).collect();
    // The sizes of `head` and `deleted` are drawn; `partial` is as long as its furthest read.
    let names: Vec<&str> = preload.iter().map(|row| row.0).collect();
    assert_eq!(names, ["deleted", "head", "partial", "read"]);
    assert_eq!(preload[2].1, 5000);
    assert_eq!(preload[3].1, 100);
    for (_, size) in &preload[..2] {
        assert!(
            [9, 30, 40, 50, 100]
                .iter()
                .any(|s: &i64| (s - size).abs() <= 1),
            "{size}"
        );
    }
    assert!(p.preload.iter().all(|r| r.0.op == Put && r.0.ts_ns == 0));
    assert_eq!(p.summary.preload_objects, 4);
    assert_eq!(
        p.summary.preload_bytes,
        preload.iter().map(|r| r.1 as u64).sum::<u64>()
    );
    // The recorded 404 is left out; the 503 is kept as load.
    assert_eq!(p.summary.dropped["recorded-error"], 1);
    assert_eq!(p.records.len(), 9);
    assert_eq!(p.summary.keys, 7);
    assert!(p.summary.changes_population);
}

#[test]
fn recorded_errors_can_be_kept() {
    let rows = [
        "0,GET,b,k,-1,0,-1,c,404",
        "1,PUT,b,k,5,0,-1,c,200",
        "2,GET,b,k,5,0,-1,c,200",
    ];
    let p = prepared(&[("t.csv", &native(&rows))], |o| o.replay_errors = true).unwrap();
    let absent: Vec<bool> = p.records.iter().map(|r| r.0.absent).collect();
    assert_eq!(absent, [true, true, false]);
    assert_eq!(p.preload.len(), 0);
}

#[test]
fn unexplained_reads_are_preceded_by_a_write_or_left_out() {
    let rows = [
        "0,PUT,b,k,5,0,-1,c,200",
        "1,DELETE,b,k,-1,0,-1,c,204",
        "2,GET,b,k,7,0,-1,c,200",
        "3,GET,b,k,7,0,-1,c,200",
    ];
    let p = of(&rows);
    assert_eq!(
        ops(&p.records),
        [
            (Put, "k"),
            (Delete, "k"),
            (Put, "k"),
            (Get, "k"),
            (Get, "k")
        ]
    );
    assert_eq!((p.records[2].0.ts_ns, p.records[2].0.size), (2, 7));
    assert_eq!(p.summary.inserted, 1);
    let p = prepared(&[("t.csv", &native(&rows))], |o| {
        o.ambiguous = Ambiguous::Drop
    })
    .unwrap();
    assert_eq!(ops(&p.records), [(Put, "k"), (Delete, "k")]);
    assert_eq!(p.summary.dropped["ambiguous"], 2);
    // Without recorded statuses, a read after a delete proves nothing.
    let silent = [
        "0,PUT,b,k,5,0,-1,c,0",
        "1,DELETE,b,k,-1,0,-1,c,0",
        "2,GET,b,k,-1,0,-1,c,0",
    ];
    let p = of(&silent);
    assert_eq!(p.records.len(), 3);
    assert!(p.records[2].0.absent);
}

#[test]
fn sizes_come_from_the_best_source() {
    let p = of(&[
        "0,GET,b,own,100,0,-1,c,200",
        "1,GET,b,later,-1,0,-1,c,200",
        "2,PUT,b,later,200,0,-1,c,200",
        "3,GET,b,later,-1,0,-1,c,200",
        "4,GET,b,extent,-1,1000,24,c,206",
        "5,GET,b,extent,-1,0,-1,c,200",
        "6,GET,b,drawn,-1,0,-1,c,200",
        "7,GET,b,drawn,-1,0,-1,c,200",
    ]);
    let sizes: Vec<i64> = p.records.iter().map(|r| r.0.size).collect();
    assert_eq!(&sizes[..6], [100, 200, 200, 200, 1024, 1024]);
    assert!(
        (99..=201).contains(&sizes[6]) && sizes[6] == sizes[7],
        "{sizes:?}"
    );
    let s = p.summary.sizes;
    assert_eq!(
        (s.record, s.key, s.extent, s.sent, s.drawn, s.default),
        (2, 2, 2, 0, 2, 0)
    );
    assert!((s.guessed() - 0.25).abs() < 1e-12);
    assert!(
        p.summary.notes.iter().any(|note| note.contains("25 %")),
        "{:?}",
        p.summary.notes
    );

    let nothing = ["0,HEAD,b,k,-1,0,-1,c,200"];
    let error = prepared(&[("t.csv", &native(&nothing))], |_| {})
        .err()
        .unwrap();
    assert!(error.to_string().contains("--default-size"), "{error}");
    let p = prepared(&[("t.csv", &native(&nothing))], |o| {
        o.default_size = Some(77)
    })
    .unwrap();
    assert_eq!((p.preload[0].0.size, p.summary.sizes.default), (77, 1));
}

#[test]
fn uploads_are_replayed_as_a_whole() {
    let header = "ts_ns,op,key,size,part,upload,status";
    let text = format!(
        "{header}\n0,MPU_INIT,k,-1,0,u1,200\n1,MPU_PART,k,5000,1,u1,200\n\
         2,MPU_PART,k,5000,2,u1,200\n3,MPU_PART,k,100,3,u1,200\n4,MPU_COMPLETE,k,-1,0,u1,200\n\
         5,GET,k,-1,0,0,200\n"
    );
    let p = prepared(&[("t.csv", text.as_bytes())], |_| {}).unwrap();
    let last = &p.records[4].0;
    assert_eq!((last.op, last.size, last.len), (MpuComplete, 10_100, 5000));
    assert_eq!(p.records[5].0.size, 10_100);
    assert_eq!(p.preload.len(), 0);
}

#[test]
fn the_source_of_a_copy_is_preloaded() {
    let text = "ts_ns,op,bucket,key,size,source,status\n0,COPY,b,to,-1,b/from,200\n\
                1,GET,b,to,33,,200\n";
    let p = prepared(&[("t.csv", text.as_bytes())], |_| {}).unwrap();
    assert_eq!(p.records[0].2, ["b/from"]);
    assert_eq!(ops(&p.preload), [(Put, "from")]);
    let text = "ts_ns,op,bucket,key,size,status\n0,COPY,b,to,1,200\n1,GET,b,to,33,200\n";
    let p = prepared(&[("t.csv", text.as_bytes())], |_| {}).unwrap();
    assert_eq!(ops(&p.records), [(Get, "to")]);
    assert_eq!(p.summary.dropped["not-replayed"], 1);
}

#[test]
fn ranges_without_a_position_are_placed() {
    let line = |i: u32| {
        format!(
            "o b [14/Mar/2031:09:26:{:02} +0000] 203.0.113.4 - R{i} REST.GET.OBJECT k \
             \"GET /b/k HTTP/1.1\" 206 - 4096 40960 5 5 \"-\" \"x\" - h\n",
            i % 60
        )
    };
    let text: String = (0..40).map(line).collect();
    let offsets = |ranges| {
        let p = prepared(&[("t", text.as_bytes())], |o| o.ranges = ranges).unwrap();
        assert!(
            p.records
                .iter()
                .all(|r| r.0.len == 4096 && r.0.size == 40_960)
        );
        p.records.iter().map(|r| r.0.off).collect::<Vec<_>>()
    };
    assert_eq!(offsets(RangePlacement::Head), [0; 40]);
    let sequential = offsets(RangePlacement::Sequential);
    assert_eq!(
        &sequential[..11],
        [
            0, 4096, 8192, 12_288, 16_384, 20_480, 24_576, 28_672, 32_768, 36_864, 0
        ]
    );
    let mut uniform = offsets(RangePlacement::Uniform);
    assert!(uniform.iter().all(|off| off % 4096 == 0 && *off <= 36_864));
    uniform.sort_unstable();
    uniform.dedup();
    assert!(uniform.len() >= 7, "{uniform:?}");
}

/// Lines of IBM's format at whole seconds: `counts[s]` of them in second `s`.
fn seconds(counts: &[u64]) -> String {
    let mut text = String::new();
    let mut n = 0;
    for (second, count) in counts.iter().enumerate() {
        for _ in 0..*count {
            text += &format!("{} REST.PUT.OBJECT {n:016x} 10\n", 5000 + second * 1000);
            n += 1;
        }
    }
    text
}

#[test]
fn spreading_keeps_order_and_counts() {
    let counts: [u64; 5] = [4, 1, 0, 1000, 3];
    let text = seconds(&counts);
    for ticks in [Ticks::Spread, Ticks::Jitter, Ticks::Burst] {
        let p = prepared(&[("t", text.as_bytes())], |o| o.ticks = ticks).unwrap();
        assert_eq!(p.summary.resolution_ns, 1_000_000_000);
        let names: Vec<u64> = p
            .records
            .iter()
            .map(|r| u64::from_str_radix(&r.1, 16).unwrap())
            .collect();
        assert!(names.iter().copied().eq(0..1008), "{ticks:?}: order");
        assert!(p.records.is_sorted_by_key(|r| r.0.ts_ns), "{ticks:?}");
        // Jitter moves the first record too, so instants count from its own start.
        let origin = 5_000_000_000 - p.summary.first_ts_ns;
        let mut found = [0u64; 5];
        for (r, _, _) in &p.records {
            found[((r.ts_ns - origin) / 1_000_000_000) as usize] += 1;
        }
        assert_eq!(found, counts, "{ticks:?}");
        let first: Vec<i64> = p.records[..4].iter().map(|r| r.0.ts_ns).collect();
        match ticks {
            Ticks::Spread => assert_eq!(first, [0, 250_000_000, 500_000_000, 750_000_000]),
            Ticks::Burst => assert_eq!(first, [0; 4]),
            Ticks::Jitter => {
                // Uniform in the second: mean 0.5 s, standard error 9 ms.
                let second = p.records[5..1005]
                    .iter()
                    .map(|r| (r.0.ts_ns - origin) as f64 / 1e9);
                let mean = second.sum::<f64>() / 1000.0 - 3.0;
                assert!((mean - 0.5).abs() < 0.037, "{mean}");
                let distinct: std::collections::HashSet<i64> =
                    p.records[5..1005].iter().map(|r| r.0.ts_ns).collect();
                assert!(distinct.len() > 990);
            }
        }
    }
    // Finer clocks are left unchanged.
    let fine = "1 REST.PUT.OBJECT a 1\n1 REST.PUT.OBJECT b 1\n3 REST.PUT.OBJECT c 1\n";
    let p = prepared(&[("t", fine.as_bytes())], |o| o.ticks = Ticks::Spread).unwrap();
    let ts: Vec<i64> = p.records.iter().map(|r| r.0.ts_ns).collect();
    assert_eq!(
        (p.summary.resolution_ns, &ts[..]),
        (1_000_000, &[0, 500_000, 2_000_000][..])
    );
}

#[test]
fn records_without_instants_are_paced() {
    let mut text = "key,op,size,op_count,key_size\n".to_owned();
    for i in 0..2000 {
        text += &format!("{i},SET,10,1,4\n");
    }
    let run = |untimed| prepared(&[("t", text.as_bytes())], |o| o.untimed = untimed);
    assert!(run(None).err().unwrap().to_string().contains("--untimed"));
    let ts = |untimed| {
        let p = run(Some(untimed)).unwrap();
        p.records.iter().map(|r| r.0.ts_ns).collect::<Vec<i64>>()
    };
    let constant = ts(Untimed::Constant(1000.0));
    assert_eq!((constant[1], constant[1999]), (1_000_000, 1_999_000_000));
    assert_eq!(ts(Untimed::Span(4_000_000_000))[1000], 2_000_000_000);
    let poisson = ts(Untimed::Poisson(1000.0));
    // 2000 exponential gaps of 1 ms: the sum has a standard deviation of 45 ms.
    assert!(
        (poisson[1999] - 1_999_000_000).abs() < 180_000_000,
        "{}",
        poisson[1999]
    );
    assert!(poisson.is_sorted() && poisson[0] == 0);
}

#[test]
fn key_sampling_keeps_whole_histories() {
    let mut rows = Vec::new();
    for i in 0..6000u64 {
        let key = bucketload_core::generate::rng::mix64(i) % 500;
        let op = ["PUT", "GET", "DELETE"][(i % 3) as usize];
        rows.push(format!("{i},{op},b,k{key},10,0,-1,c{},0", i % 7));
    }
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let text = native(&rows);
    let all = prepared(&[("t", &text)], |_| {}).unwrap();
    let f = 0.1;
    let sample = Some(Sample {
        fraction: f,
        by: SampleBy::Key,
    });
    let p = prepared(&[("t", &text)], |o| o.sample = sample).unwrap();
    let kept: std::collections::HashSet<&str> = p.records.iter().map(|r| r.1.as_str()).collect();
    // 500 keys: 50 expected, standard deviation 6.7.
    assert!((23..=77).contains(&kept.len()), "{}", kept.len());
    let history = |rows: &[Row]| -> Vec<(TraceOp, String, u64)> {
        let kept = rows.iter().filter(|r| kept.contains(r.1.as_str()));
        kept.map(|r| (r.0.op, r.1.clone(), r.0.src)).collect()
    };
    assert_eq!(history(&p.records), history(&all.records));
    let dropped = p.summary.dropped["sampled"];
    assert_eq!(dropped + p.records.len() as u64, 6000);
    assert!(p.summary.top10_kept <= p.summary.top10_recorded);
    let by_client = Some(Sample {
        fraction: 0.5,
        by: SampleBy::Client,
    });
    let p = prepared(&[("t", &text)], |o| o.sample = by_client).unwrap();
    let clients: std::collections::HashSet<u32> = p.records.iter().map(|r| r.0.client).collect();
    let lines = 6000 / 7;
    let expected = clients.len() as u64 * lines;
    assert!(!clients.is_empty() && clients.len() < 7);
    assert!((p.records.len() as u64).abs_diff(expected) <= 7);
}

#[test]
fn records_before_a_window_tell_which_objects_exist() {
    let rows = [
        "0,PUT,b,before,10,0,-1,c,200",
        "1,PUT,b,gone,20,0,-1,c,200",
        "2,DELETE,b,gone,-1,0,-1,c,204",
        "100,GET,b,before,-1,0,-1,c,200",
        "101,PUT,b,gone,30,0,-1,c,200",
        "102,GET,b,gone,30,0,-1,c,200",
        "103,GET,b,unseen,40,0,-1,c,200",
        "200,GET,b,after,50,0,-1,c,200",
    ];
    let p = prepared(&[("t", &native(&rows))], |o| o.window = (100, 200)).unwrap();
    assert_eq!(
        ops(&p.records),
        [
            (Get, "before"),
            (Put, "gone"),
            (Get, "gone"),
            (Get, "unseen")
        ]
    );
    let preload: Vec<(&str, i64)> = p.preload.iter().map(|r| (r.1.as_str(), r.0.size)).collect();
    assert_eq!(preload, [("before", 10), ("unseen", 40)]);
    assert_eq!((p.records[0].0.ts_ns, p.records[3].0.ts_ns), (0, 3));
    assert_eq!(p.summary.dropped["outside-window"], 4);
}

#[test]
fn filters_count_dropped_records() {
    let rows = [
        "0,PUT,b0,a,1,0,-1,c,200",
        "1,GET,b1,b,1,0,-1,c,200",
        "2,HEAD,b0,c,1,0,-1,c,500",
        "3,OTHER,b0,d,1,0,-1,c,200",
    ];
    let p = prepared(&[("t", &native(&rows))], |o| {
        o.ops = Some(vec![Get, Put]);
        o.buckets = vec![b"b0".to_vec()];
    })
    .unwrap();
    assert_eq!(ops(&p.records), [(Put, "a")]);
    let d = &p.summary.dropped;
    assert_eq!(
        (d["filtered-op"], d["filtered-bucket"], d["not-replayed"]),
        (1, 1, 1)
    );
    let p = prepared(&[("t", &native(&rows))], |o| o.statuses = vec![(500, 599)]).unwrap();
    assert_eq!(ops(&p.records), [(Head, "c")]);
    let empty = prepared(&[("t", &native(&rows))], |o| {
        o.buckets = vec![b"no".to_vec()]
    });
    let error = empty.err().unwrap().to_string();
    assert!(error.contains("3 filtered-bucket"), "{error}");
}

#[test]
fn unparsable_lines_are_counted_sampled_and_limited() {
    let mut text = String::new();
    for i in 0..2000 {
        text += &format!("{i} REST.PUT.OBJECT {i:016x} 10\n");
    }
    let broken = "7 REST.PUT\nnever REST.GET.OBJECT a 1\n9 REST.BOIL.OBJECT a\n";
    // One of 2001 lines is below the limit of a thousandth.
    let one = format!("{text}never REST.GET.OBJECT a 1\n");
    let p = prepared(&[("t", one.as_bytes())], |_| {}).unwrap();
    assert_eq!(
        (p.summary.dropped["bad-timestamp"], p.records.len()),
        (1, 2000)
    );
    let side = std::fs::read_to_string(p.dir.path().join("unparsable.txt")).unwrap();
    assert!(side.contains(":2001: bad-timestamp: never REST"), "{side}");
    let many = format!("{text}{broken}");
    match prepared(&[("t", many.as_bytes())], |_| {}) {
        Err(TraceError::TooManyUnparsable {
            unparsable: 3,
            frames: 2003,
            reasons,
            ..
        }) => {
            assert_eq!(reasons, "1 bad-timestamp, 2 unknown-op");
        }
        other => panic!("{:?}", other.map(|p| p.summary)),
    }
    let p = prepared(&[("t", many.as_bytes())], |o| o.lenient = true).unwrap();
    assert_eq!((p.records.len(), p.summary.frames), (2000, 2003));
}

#[test]
fn anonymised_traces_keep_their_structure() {
    let rows = [
        "0,PUT,secret-bucket,secret/a,1,0,-1,c,200",
        "1,GET,secret-bucket,secret/a,1,0,-1,c,200",
        "2,GET,secret-bucket,secret/b,2,0,-1,c,200",
    ];
    let salted = |salt: &str| {
        prepared(&[("t", &native(&rows))], |o| {
            o.anonymise = Some(salt.to_owned())
        })
        .unwrap()
    };
    let p = salted("x");
    let keys: Vec<&str> = p.records.iter().map(|r| r.1.as_str()).collect();
    assert!(
        keys.iter()
            .all(|key| key.len() == 32 && !key.contains("secret"))
    );
    assert!(keys[0] == keys[1] && keys[1] != keys[2]);
    assert!(!p.summary.buckets[0].contains("secret"));
    assert_eq!(salted("x").records, p.records);
    assert_ne!(salted("y").records[0].1, p.records[0].1);
    assert_eq!((p.preload.len(), p.summary.anonymised), (1, true));
}

#[test]
fn canonical_files_are_read_back_and_checked() {
    let p = of(&["0,PUT,b0,a,1,0,-1,c,200", "5,GET,b1,b,2,0,-1,c,200"]);
    let path = p.dir.path().join("trace.bltrace");
    assert!(CanonicalTrace::is_canonical(&path));
    let again = CanonicalTrace::open(&path).unwrap();
    assert_eq!(again.summary(), &p.summary);
    assert_eq!(again.summary().buckets, ["b0", "b1"]);
    assert_eq!(crate::support::rows(again.records().unwrap()), p.records);
    let (first, stream) = p.canonical.records_from(1).unwrap();
    assert_eq!((first, crate::support::rows(stream).len()), (0, 2));
    let bytes = std::fs::read(&path).unwrap();
    let cut = p.dir.path().join("cut");
    for len in [0, 10, 30, bytes.len() - 1] {
        std::fs::write(&cut, &bytes[..len]).unwrap();
        assert!(CanonicalTrace::open(&cut).is_err(), "{len}");
    }
}
