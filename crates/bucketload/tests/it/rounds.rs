//! The list-consistency workload: rounds on a correct store, and on a store whose listings lag behind.

use crate::common::{Outcome, Serve, bucketload, call};

fn run(faults: &[&str]) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let faults = faults.iter().flat_map(|rule| ["--fault", rule]);
    let args: Vec<&str> = ["--store", "memory"].into_iter().chain(faults).collect();
    let server = Serve::start(&args);
    call(&mut bucketload(
        dir.path(),
        &[
            "run",
            "list-consistency",
            "--workers",
            "5",
            "--set",
            "phases.run.rounds.iterations=6",
            "--set",
            "phases.run.rounds.objects=240",
            "--target",
            "s3://bench/t",
            "--create-bucket",
            "--endpoint-url",
            &server.url(),
            "--threads",
            "2",
            "--no-calibration",
            "--output",
            "json",
        ],
    ))
}

#[test]
fn a_correct_store_lists_writes_and_deletes_at_once() {
    let outcome = run(&[]);
    outcome.expect(0, &[]);
    let result = outcome.json();
    for step in ["after_write", "after_delete"] {
        let step = &result["rounds"][step];
        assert_eq!(
            (&step["rounds"], &step["consistent"]),
            (&6.into(), &6.into()),
            "{step}"
        );
        assert_eq!(step["lists"], 6, "{step}");
    }
    let phases = result["phases"].as_array().unwrap();
    let classes = phases.iter().find(|p| p["kind"] == "run").unwrap()["classes"].clone();
    let counts: Vec<(String, u64)> = classes
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            (
                c["class"].as_str().unwrap().to_owned(),
                c["ok"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = [("put", 7200), ("delete", 720), ("list", 12)];
    let expected = expected.map(|(class, n)| (class.to_owned(), n));
    assert_eq!(counts, expected);
}

#[test]
fn listings_that_lag_behind_are_measured() {
    let result = run(&["stale-list,lag=400ms,contains=/listed/"]);
    result.expect(0, &[]);
    let result = result.json();
    for (step, wrong) in [("after_write", "missing"), ("after_delete", "ghosts")] {
        let step = &result["rounds"][step];
        assert_eq!(
            (&step["rounds"], &step["consistent"]),
            (&6.into(), &0.into()),
            "{step}"
        );
        assert_eq!(step["never"], 0);
        assert!(step[wrong].as_u64().unwrap() > 0, "{step}");
        let windows = step["windows_ns"].as_array().unwrap();
        assert_eq!(windows.len(), 6);
        for window in windows {
            // The lag starts at the change, the window at its acknowledgement, which may be a little later on a
            // busy machine.
            let ms = window.as_u64().unwrap() / 1_000_000;
            assert!((200..20_000).contains(&ms), "{step}");
        }
    }
}
