//! The load of data nodes, from operation log and placement.

use std::fs;
use std::path::Path;

use crate::support::{manifest, plan, record};
use bucketload_core::driver::RequestRoute;
use bucketload_core::op::{Op, OpClass};
use bucketload_core::oplog::OpLog;
use bucketload_core::record::{AnswerIds, Outcome};
use bucketload_core::trail::Trail;
use bucketload_results::analyze::{nodes, nodes_by_phase, read_placement, read_served};
use bucketload_results::oplog::{OpLogFormat, OpLogHeader, write};
use bucketload_results::{ResultsError, RunDirSink};

fn trail(class: OpClass, key: u64) -> Trail {
    Trail {
        record: record(class, 1000, 1000, Outcome::Ok),
        op: Op {
            seq: 0,
            class,
            entry: 0,
            keyset: 0,
            key,
            source_key: 0,
            source_keyset: 0,
            version: 0,
            size: 4096,
            range: None,
            count: 0,
            pages: 0,
        },
        route: RequestRoute::default(),
        status: 200,
        ids: AnswerIds::default(),
    }
}

fn name(i: u64) -> String {
    format!("p/r/{i:013}")
}

/// A run whose main phase reads object 0 sixty times and objects 1 to 40 once each. Writes and the preparation do not
/// count.
fn run(dir: &Path) {
    drop(RunDirSink::create(dir, manifest(plan(10.0, 1))).unwrap());
    let (log, batches) = OpLog::new(1);
    let mut prepare = log.producer(0, 0);
    (0..1000).for_each(|key| prepare.push(trail(OpClass::Put, key), &name(key), ""));
    drop(prepare);
    let mut main = log.producer(1, 0);
    (0..60).for_each(|_| main.push(trail(OpClass::Get, 0), &name(0), ""));
    (1..41).for_each(|key| main.push(trail(OpClass::Get, key), &name(key), ""));
    main.push(trail(OpClass::Put, 1), &name(1), "");
    main.push(trail(OpClass::Get, 999), &name(999), "");
    drop(main);
    let dropped = log.dropped();
    drop(log);
    let header = OpLogHeader {
        run_id: "r".into(),
        bucket: "b".into(),
        epoch_unix_ns: 0,
        endpoints: Vec::new(),
    };
    let plan = plan(10.0, 1);
    let facts = write(
        dir,
        OpLogFormat::Parquet,
        &header,
        &plan,
        &batches,
        &dropped,
    )
    .unwrap();
    assert_eq!(facts.rows, 1102);
}

#[test]
fn the_hot_key_explains_the_hot_node() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    run(&dir);
    // Four nodes with ten objects each; object 0 is on n1 in addition.
    let mut lines = String::from("key,node\n");
    for i in 0..41 {
        lines += &format!("{},n{}\n", name(i), if i == 0 { 1 } else { 1 + i % 4 });
    }
    let placement = root.path().join("placement.csv");
    fs::write(&placement, &lines).unwrap();
    let table = read_placement(&placement).unwrap();
    let found = nodes(&dir, &table, None).unwrap();
    let expected: Vec<f64> = found.nodes.iter().map(|n| n.expected).collect();
    let hot = found.nodes.iter().find(|n| n.name == "n1").unwrap();
    assert_eq!(
        (hot.objects, hot.expected, hot.observed),
        (11.0, 70.0, None)
    );
    assert_eq!(expected.iter().sum::<f64>(), 100.0);
    assert_eq!(found.unknown, 1, "object 999 has no placement");
    assert!((found.hottest_share - 0.6).abs() < 1e-12);
    assert!((found.one_key_bound - 2.4).abs() < 1e-12);
    let peak = found.attribution.by_workload.unwrap();
    assert!((peak - 2.8).abs() < 1e-12 && peak >= found.one_key_bound);
    assert_eq!(found.attribution.by_system, None);
    // The only measuring phase alone gives the same.
    let phases = nodes_by_phase(&dir, &table).unwrap();
    assert_eq!(phases, [("main".to_owned(), found)]);

    // According to the nodes' logs, n1 served twice as many requests as expected.
    let mut served = String::new();
    for (node, requests) in [
        ("n1", 140),
        ("n2", 10),
        ("n3", 10),
        ("n4", 10),
        ("other", 3),
    ] {
        (0..requests).for_each(|_| served += &format!("k,{node}\n"));
    }
    let path = root.path().join("served.csv");
    fs::write(&path, served).unwrap();
    let served = read_served(&path, &table).unwrap();
    let found = nodes(&dir, &table, Some(&served)).unwrap();
    assert_eq!(found.unknown, 1 + 3);
    assert_eq!(
        found
            .nodes
            .iter()
            .find(|n| n.name == "n1")
            .unwrap()
            .observed,
        Some(140.0)
    );
    let by_system = found.attribution.by_system.unwrap();
    assert!(
        (by_system - (140.0 / 42.5) / 2.8).abs() < 1e-12,
        "{by_system}"
    );
    assert!(found.null.unwrap().p_value < 1e-12);
}

#[test]
fn errors_are_located() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    drop(RunDirSink::create(&dir, manifest(plan(10.0, 1))).unwrap());
    let path = root.path().join("p.csv");
    fs::write(&path, "a,n1\n\"b,c\",n2\n").unwrap();
    let table = read_placement(&path).unwrap();
    assert_eq!(table.objects(), [1.0, 1.0]);
    assert!(matches!(
        nodes(&dir, &table, None),
        Err(ResultsError::NoOpLog(_))
    ));
    for (text, wanted) in [
        ("a,n1\nb\n", "line 2: not `key,node`"),
        ("a,n1\n\"b,n2\n", "line 2"),
        ("a, \n", "no node name"),
    ] {
        fs::write(&path, text).unwrap();
        let error = read_placement(&path).unwrap_err();
        let text = std::error::Error::source(&error).map_or(String::new(), ToString::to_string);
        assert!(
            text.contains(wanted) || error.to_string().contains(wanted),
            "{error}: {text}"
        );
    }
}
