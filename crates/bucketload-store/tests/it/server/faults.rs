//! Each injected fault, as a client sees it.

use std::time::{Duration, Instant};

use bucketload_server::ServerHandle;

use super::client::{Client, config, req, start_with};

fn with(rules: &[&str]) -> (ServerHandle, Client) {
    let mut faulty = config();
    faulty.faults = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    start_with(faulty)
}

fn injected(server: &ServerHandle) -> Vec<u64> {
    server
        .stats()
        .faults
        .iter()
        .map(|fault| fault.injected)
        .collect()
}

#[test]
fn delays_hold_responses_back() {
    let (server, mut c) = with(&["delay,ms=30,op=get", "delay,time=500us,op=put"]);
    let start = Instant::now();
    c.put("/bucket/k", "v");
    assert!(start.elapsed() >= Duration::from_micros(500));
    let start = Instant::now();
    c.get("/bucket/k").is(200);
    assert!(start.elapsed() >= Duration::from_millis(30));
    assert_eq!(injected(&server), [1, 1]);
}

#[test]
fn the_log_records_actual_releases() {
    let path = std::env::temp_dir().join(format!("bucketload-fault-log-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut faulty = config();
    faulty.fault_log = Some(path.clone());
    faulty.faults = vec![
        "queue,rate=1000/s,service=const,op=get".parse().unwrap(),
        "delay,ms=2,op=get,every=2".parse().unwrap(),
    ];
    let (server, mut c) = start_with(faulty.clone());
    c.put("/bucket/k", "v");
    let mut slowest = Duration::ZERO;
    for _ in 0..4 {
        let start = Instant::now();
        c.get("/bucket/k").is(200);
        slowest = slowest.max(start.elapsed());
    }
    drop(server);
    let text = std::fs::read_to_string(&path).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip(1)
        .map(|l| l.split(',').collect())
        .collect();
    assert_eq!(rows.len(), 4, "{text}");
    for (i, row) in rows.iter().enumerate() {
        let ns = |at: usize| row[at].parse::<u64>().unwrap();
        assert_eq!(row[0], "get");
        let wanted = if i % 2 == 1 { 3_000_000 } else { 1_000_000 };
        assert_eq!(ns(2) - ns(1), wanted);
        assert!(ns(3) >= ns(2), "nothing leaves early: {text}");
        assert!(u128::from(ns(3) - ns(1)) < slowest.as_nanos(), "{text}");
    }
    // An existing log is never overwritten.
    let store = bucketload_store::NullStore::new(&bucketload_store::NullOptions::default());
    let again = bucketload_server::Server::start(faulty, std::sync::Arc::new(store));
    std::fs::remove_file(&path).unwrap();
    assert!(
        again
            .unwrap_err()
            .to_string()
            .contains("does not exist yet")
    );
}

#[test]
fn statuses_replace_responses() {
    let (server, mut c) = with(&[
        "status=503,every=3,op=get",
        "status=507,op=put,prefix=full/",
    ]);
    c.put("/bucket/k", "v");
    let statuses: Vec<_> = (0..9).map(|_| c.get("/bucket/k").status).collect();
    assert_eq!(statuses, [200, 200, 503, 200, 200, 503, 200, 200, 503]);
    c.send(&req("PUT", "/bucket/full/k").body(vec![0; 200_000]))
        .is_error(507, "StorageFull");
    c.get("/bucket/full/k").is_error(404, "NoSuchKey");
    assert_eq!(injected(&server), [3, 1]);
}

#[test]
fn truncated_bodies_end_early() {
    let (server, mut c) = with(&["truncate,every=2"]);
    c.put("/bucket/k", vec![9; 100_000]);
    assert_eq!(c.get("/bucket/k").is(200).body.len(), 100_000);
    let bytes = req("GET", "/bucket/k").render(&c.signer);
    std::io::Write::write_all(&mut c.stream, &bytes).unwrap();
    let cut = c.try_receive(false).unwrap_err();
    assert_eq!(
        (cut.status, cut.header("content-length"), cut.body.len()),
        (200, Some("100000"), 50_000)
    );
    assert_eq!(injected(&server), [1]);
}

#[test]
fn resets_break_the_connection() {
    let (server, mut c) = with(&["reset,op=get"]);
    c.put("/bucket/k", "v");
    let bytes = req("GET", "/bucket/k").render(&c.signer);
    std::io::Write::write_all(&mut c.stream, &bytes).unwrap();
    assert!(!c.ended());
    assert_eq!(injected(&server), [1]);
}

#[test]
fn corruptions_change_one_byte_each() {
    let (server, mut c) = with(&["corrupt,every=10,count=5"]);
    let body: Vec<u8> = (0..70_000u32).map(|i| i as u8).collect();
    c.put("/bucket/k", &body);
    let mut wrong = 0;
    for _ in 0..100 {
        let got = c.get("/bucket/k").is(200).body;
        assert_eq!(got.len(), body.len());
        let differing = got.iter().zip(&body).filter(|(a, b)| a != b).count();
        assert!(differing <= 1);
        wrong += differing;
    }
    assert_eq!((wrong, injected(&server)), (5, vec![5]));
    // Responses without a body are not counted.
    c.get("/bucket/absent").is_error(404, "NoSuchKey");
    assert_eq!(server.stats().faults[0].matched, 100);
}

#[test]
fn stalls_hold_back_all_responses_in_their_window() {
    let (server, mut c) = with(&["stall,at=100ms,for=500ms"]);
    let start = Instant::now();
    let (mut longest, mut last) = (Duration::ZERO, start);
    while start.elapsed() < Duration::from_millis(800) {
        c.get("/").is(200);
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    // No response can leave between 100 ms and 600 ms after the first request.
    assert!(longest >= Duration::from_millis(490), "{longest:?}");
    assert_eq!(injected(&server), [1]);
}

#[test]
fn stale_reads_return_the_previous_version() {
    let (server, mut c) = with(&["stale,every=2"]);
    c.put("/bucket/k", "one");
    assert_eq!(c.get("/bucket/k").text(), "one");
    assert_eq!(server.stats().faults[0].matched, 0);
    c.put("/bucket/k", "second");
    let answers: Vec<_> = (0..4)
        .map(|_| c.get("/bucket/k").is(200).text().to_owned())
        .collect();
    assert_eq!(answers, ["second", "one", "second", "one"]);
    c.send(&req("DELETE", "/bucket/k")).is(204);
    c.get("/bucket/k").is_error(404, "NoSuchKey");
    assert_eq!(c.get("/bucket/k").is(200).text(), "second");
    assert_eq!(injected(&server), [3]);
}

#[test]
fn stale_reads_wait_for_the_age() {
    let (server, mut c) = with(&["stale,age=1h"]);
    c.put("/bucket/k", "one");
    c.put("/bucket/k", "second");
    assert_eq!(c.get("/bucket/k").text(), "second");
    assert_eq!(server.stats().faults[0].matched, 0);
}

#[test]
fn lost_writes_are_acknowledged_and_gone() {
    let (server, mut c) = with(&["lost,every=2,count=2"]);
    for i in 1..=6 {
        c.put(&format!("/bucket/k{i}"), "v");
    }
    let there: Vec<_> = (1..=6)
        .map(|i| c.get(&format!("/bucket/k{i}")).status)
        .collect();
    assert_eq!(there, [200, 404, 200, 404, 200, 200]);
    c.put("/bucket/k1", "new");
    assert_eq!(c.get("/bucket/k1").text(), "new");
    assert_eq!(injected(&server), [2]);
}

#[test]
fn torn_overwrites_mix_both_versions() {
    let (server, mut c) = with(&["torn,count=2"]);
    c.put("/bucket/k", "aaaaaaaa");
    c.put("/bucket/short", "b");
    assert_eq!(server.stats().faults[0].matched, 0, "nothing to mix with");
    c.put("/bucket/k", "BBBBBB");
    assert_eq!(c.get("/bucket/k").text(), "BBBaaa");
    c.put("/bucket/short", "CCCC");
    assert_eq!(c.get("/bucket/short").text(), "CCCC");
    c.put("/bucket/k", "DDDDDDDDDD");
    assert_eq!(c.get("/bucket/k").text(), "DDDDDaDDDD");
    c.put("/bucket/k", "EEEE");
    assert_eq!(c.get("/bucket/k").text(), "EEEE");
    assert_eq!(injected(&server), [2]);
}

#[test]
fn deleted_objects_come_back() {
    let (server, mut c) = with(&["resurrect,count=2"]);
    for key in ["a", "b", "c"] {
        c.put(&format!("/bucket/{key}"), key);
    }
    c.send(&req("DELETE", "/bucket/absent")).is(204);
    for key in ["a", "b", "c"] {
        c.send(&req("DELETE", &format!("/bucket/{key}"))).is(204);
    }
    assert_eq!(c.get("/bucket/a").is(200).text(), "a");
    c.put("/bucket/b", "new");
    assert_eq!(c.get("/bucket/b").text(), "new");
    c.get("/bucket/c").is_error(404, "NoSuchKey");
    assert_eq!(injected(&server), [2]);
    let (_server, mut c) = with(&["resurrect,age=1h"]);
    c.put("/bucket/a", "a");
    c.send(&req("DELETE", "/bucket/a")).is(204);
    c.get("/bucket/a").is_error(404, "NoSuchKey");
}

#[test]
fn stale_listings_show_an_earlier_state() {
    let (server, mut c) = with(&["stale-list,lag=1h,count=2"]);
    c.put("/bucket/k1", "v");
    c.put("/bucket/k2", "v");
    assert!(c.get("/bucket?list-type=2").elements("Key").is_empty());
    c.put("/bucket/k1", "overwritten");
    c.send(&req("DELETE", "/bucket/k2")).is(204);
    assert!(c.get("/bucket?list-type=2").elements("Key").is_empty());
    assert_eq!(c.get("/bucket?list-type=2").elements("Key"), ["k1"]);
    assert_eq!(injected(&server), [2]);
    let (_server, mut c) = with(&["stale-list,lag=150ms"]);
    for key in ["a", "b", "c"] {
        c.put(&format!("/bucket/{key}"), key);
    }
    let listed = |c: &mut Client| c.get("/bucket?list-type=2").elements("Key").join(",");
    let start = Instant::now();
    while listed(&mut c) != "a,b,c" {
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    c.send(&req("DELETE", "/bucket/b")).is(204);
    let deleted = Instant::now();
    while listed(&mut c) != "a,c" {}
    assert!(deleted.elapsed() >= Duration::from_millis(140));
}

#[test]
fn full_stores_refuse_uploads() {
    let (server, mut c) = with(&["full,after=100KB"]);
    c.put("/bucket/a", vec![0; 60_000]);
    c.send(&req("PUT", "/bucket/b").body(vec![0; 60_000]))
        .is_error(507, "StorageFull");
    c.put("/bucket/c", vec![0; 40_000]);
    c.send(&req("PUT", "/bucket/d").body("x"))
        .is_error(507, "StorageFull");
    c.get("/bucket/a").is(200);
    assert_eq!(injected(&server), [2]);
}

#[test]
fn slow_bodies_keep_to_the_rate() {
    let (server, mut c) = with(&["slow,rate=1MiB/s"]);
    let body: Vec<u8> = (0..200_000u32).map(|i| i as u8).collect();
    let start = Instant::now();
    c.put("/bucket/k", &body);
    let up = start.elapsed();
    let start = Instant::now();
    assert_eq!(c.get("/bucket/k").is(200).body, body);
    let down = start.elapsed();
    // 200 000 bytes take 191 ms; bytes that arrive with the head are not paced.
    for time in [up, down] {
        assert!(time >= Duration::from_millis(120), "{up:?} {down:?}");
    }
    assert_eq!(injected(&server), [2]);
}

#[test]
fn faults_combine() {
    let (server, mut c) = with(&["delay,ms=5", "slow,rate=10MiB/s,op=get", "corrupt,count=1"]);
    c.put("/bucket/k", vec![1; 100_000]);
    let first = c.get("/bucket/k").is(200).body;
    assert_eq!(first.iter().filter(|b| **b != 1).count(), 1);
    assert_eq!(c.get("/bucket/k").is(200).body, vec![1; 100_000]);
    assert_eq!(injected(&server), [3, 2, 1]);
}
