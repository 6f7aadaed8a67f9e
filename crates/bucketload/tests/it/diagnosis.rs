//! What a result says about single requests and single endpoints.

use crate::common::{Serve, bucketload, call};

#[test]
fn a_slow_endpoint_shows_in_balance_anatomy_and_slowest_requests() {
    let dir = tempfile::tempdir().unwrap();
    let servers = [
        Serve::start(&["--store", "null"]),
        Serve::start(&["--store", "null", "--fault", "delay,ms=50,op=get"]),
    ];
    let urls = servers.each_ref().map(Serve::url);
    let args = [
        "run",
        "get",
        "--target",
        "s3://bench/x",
        "--create-bucket",
        "--endpoint-url",
        &urls[0],
        "--endpoint-url",
        &urls[1],
        "--objects",
        "50",
        "--size",
        "4KiB",
        "--workers",
        "8",
        "--threads",
        "1",
        "--duration",
        "3s",
        "--no-calibration",
        "--op-log",
        "--out",
        "out",
        "--output",
        "json",
    ];
    let outcome = call(&mut bucketload(dir.path(), &args));
    outcome.expect(0, &[]);
    let result = outcome.json();
    let phases = result["phases"].as_array().unwrap();
    let main = phases.iter().find(|p| p["kind"] == "run").unwrap();
    let endpoints = main["endpoints"]["endpoints"].as_array().unwrap();
    let requests = [0, 1].map(|i| endpoints[i]["requests"].as_f64().unwrap());
    for (endpoint, url) in endpoints.iter().zip(&urls) {
        assert_eq!(endpoint["name"], url.as_str());
    }
    // Four workers that wait 50 ms each time make 80 requests per second.
    assert!(
        requests[1] > 40.0 && requests[0] > 2.0 * requests[1],
        "{requests:?}"
    );
    assert!(endpoints[1]["service"]["min_ns"].as_u64() >= Some(50_000_000));
    assert!(main["endpoints"]["requests"]["peak"].as_f64() > Some(1.3));
    assert!(main["endpoints"]["null"]["p_value"].as_f64() < Some(1e-6));
    // The slowest requests waited for the slow endpoint, and name its answer.
    let slowest = main["slowest"]["top"].as_array().unwrap();
    let slow = slowest.iter().filter(|r| r["endpoint"] == 1).count();
    assert!(slow * 2 > slowest.len(), "{slow} of {}", slowest.len());
    let first = slowest.iter().find(|r| r["endpoint"] == 1).unwrap();
    let parts = first["parts"].as_array().unwrap();
    let wait = parts.iter().find(|p| p[0] == "wait").unwrap();
    assert!(wait[1].as_u64() >= Some(50_000_000), "{first}");
    assert!(
        first["request_id"]
            .as_str()
            .is_some_and(|id| !id.is_empty()),
        "{first}"
    );
    assert!(
        first["key"]
            .as_str()
            .is_some_and(|key| key.starts_with("x/bucketload-")),
        "{first}"
    );

    // The same run, reported again with keys placed on two nodes.
    let key = first["key"].as_str().unwrap();
    let stem = &key[..key.len() - 13];
    let lines: String = (0..50)
        .map(|i| format!("{stem}{i:013},node{}\n", i % 2))
        .collect();
    std::fs::write(dir.path().join("placement.csv"), lines).unwrap();
    let report = ["report", "out", "--output", "json"];
    let placed = [&report[..], &["--placement", "placement.csv"]].concat();
    let outcome = call(&mut bucketload(dir.path(), &placed));
    outcome.expect(0, &[]);
    let nodes = outcome.json()["nodes"].clone();
    assert_eq!(nodes["unknown"], 0, "{nodes}");
    let expected = [0, 1].map(|i| nodes["nodes"][i]["expected"].as_f64().unwrap());
    let reads: f64 = main["totals"]["ok"].as_f64().unwrap();
    assert!(
        (expected[0] + expected[1] - reads).abs() < 1e-6,
        "{expected:?} of {reads}"
    );
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(page.contains("Load balance over data nodes"));
    let wrong = [&report[..], &["--placement", "missing.csv"]].concat();
    call(&mut bucketload(dir.path(), &wrong)).expect(2, &["missing.csv"]);
}
