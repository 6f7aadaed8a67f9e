//! Users of a language model from the user's view. What they should read and write is computed here in plain words, from
//! the lengths of their prompts and answers, and compared with the operations of the run and with the server's own log.

use std::collections::BTreeMap;
use std::path::Path;

use bucketload_core::generate::users::UserGen;
use bucketload_core::plan::KvUsers;

use crate::common::{Outcome, Serve, bucketload, call, operations, workload};

/// Bytes per token.
const PER_TOKEN: i64 = 8;

fn run(dir: &Path, args: &str) -> Outcome {
    let all = "kvcache --preset mlperf-1 --quiet --no-calibration --bytes-per-token 8 --output json --out out --op-log";
    let _ = std::fs::remove_dir_all(dir.join("out"));
    let words: Vec<&str> = all.split(' ').chain(args.split(' ')).collect();
    call(&mut bucketload(dir, &words))
}

/// Operations of each user in order: whether it wrote, the number of the request, and the bytes.
type Course = BTreeMap<u64, Vec<(bool, u64, i64)>>;

fn courses(dir: &Path) -> Course {
    let mut rows: Vec<_> = operations(&dir.join("out")).into_iter().collect();
    rows.sort_by_key(|(what, _)| what.3);
    let mut all = Course::new();
    for ((phase, _, class, _, key, _, size), _) in rows {
        if phase != "kvcache" {
            continue;
        }
        let name = key.rsplit('/').next().unwrap();
        let (user, turn) = name.split_once('-').unwrap();
        let (user, turn) = (user.parse().unwrap(), turn.parse().unwrap());
        let course = all.entry(user).or_default();
        course.push((class == "put", turn, size.unwrap()));
    }
    all
}

/// A request: the first of its conversation, its bytes, and how often its own entry is read.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Request {
    first: u64,
    bytes: i64,
    reads: u64,
}

/// The first requests of a user, whose lengths and conversations follow from the seed.
fn requests(seed: u64, user: u64) -> Vec<Request> {
    // The phase follows the initialisation.
    let users = UserGen::new(&KvUsers::mlperf(1, 1), seed, 1, 0);
    let profile = users.profile(user);
    let mut first = 0;
    let request = |number: u32| {
        let turn = users.turn(user, &profile, number);
        if !turn.continues || number - first >= 50 {
            first = number;
        }
        Request {
            first: first.into(),
            bytes: PER_TOKEN * turn.context as i64,
            reads: match turn.context {
                10_000.. => 0,
                // One, and one per 32 tokens of the answer.
                _ => 1 + turn.output.div_ceil(32),
            },
        }
    };
    (0..400).map(request).collect()
}

/// What these send without memory.
fn without_memory(requests: &[Request]) -> Vec<(bool, u64, i64)> {
    let bytes = |turn: u64| requests[turn as usize].bytes;
    let mut sent = Vec::new();
    for (turn, request) in (0u64..).zip(requests) {
        sent.extend((request.first..turn).map(|earlier| (false, earlier, bytes(earlier))));
        sent.push((true, turn, request.bytes));
        sent.extend((0..request.reads).map(|_| (false, turn, request.bytes)));
    }
    sent
}

/// Checks that each user has sent what was expected of it, as far as it came.
fn check(courses: &Course, seed: u64) {
    for (user, course) in courses {
        let expected = without_memory(&requests(seed, *user));
        assert_eq!(course[..], expected[..course.len()], "user {user}");
    }
}

#[test]
fn a_request_reads_every_earlier_turn_writes_its_entry_once_and_reads_it_as_often_as_the_answer_needs()
 {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("server.log");
    let server = Serve::start(&[
        "--fault",
        "delay,ms=1",
        "--fault-log",
        log.to_str().unwrap(),
    ]);
    let outcome = run(
        dir.path(),
        &format!(
            "--users 12 --duration 5s --verify --target s3://bench --create-bucket --endpoint-url {}",
            server.url()
        ),
    );
    outcome.expect(0, &[]);
    let courses = courses(dir.path());
    assert_eq!(courses.len(), 12);
    check(&courses, 42);
    let requests: usize = courses.values().flatten().filter(|op| op.0).count();
    assert!(requests > 20, "{requests}");
    let mut sent: BTreeMap<(bool, String), u64> = BTreeMap::new();
    for (user, course) in &courses {
        for (put, turn, _) in course {
            *sent.entry((*put, format!("{user}-{turn}"))).or_default() += 1;
        }
    }
    let mut logged = BTreeMap::new();
    for line in std::fs::read_to_string(&log).unwrap().lines().skip(1) {
        let fields: Vec<&str> = line.splitn(5, ',').collect();
        if let Some((_, name)) = fields[4].split_once("/kv/llama3.1-8b/1/0/") {
            let key = (fields[0].contains("put"), name.to_owned());
            if key.0 || fields[0].contains("get") {
                *logged.entry(key).or_default() += 1;
            }
        }
    }
    assert_eq!(sent, logged);
    let json = outcome.json();
    let phases = json["phases"].as_array().unwrap();
    let phase = phases.iter().find(|phase| !phase["kvcache"].is_null());
    let cache = &phase.unwrap()["kvcache"];
    let counts = &cache["counts"];
    assert_eq!(counts["blocks"], counts["hits"], "{counts}");
    let written: u64 = sent.iter().filter(|(key, _)| key.0).map(|(_, n)| n).sum();
    assert_eq!(counts["written"], written, "{counts}");
    let mlperf = &cache["mlperf"];
    assert_eq!(
        (
            mlperf["total_ranks"].as_u64(),
            mlperf["cpu_tier_ranks"].as_u64()
        ),
        (Some(1), Some(0))
    );
    let window = phase.unwrap()["window"].clone();
    let seconds = (window["end_ns"].as_f64().unwrap() - window["start_ns"].as_f64().unwrap()) / 1e9;
    let bytes: i64 = courses.values().flatten().map(|op| op.2).sum();
    let tokens = mlperf["aggregated_storage_throughput_tokens_per_sec"]
        .as_f64()
        .unwrap();
    let off = tokens * seconds / (bytes / PER_TOKEN) as f64 - 1.0;
    assert!(
        off.abs() < 0.1,
        "{tokens} tokens/s in {seconds} s, {bytes} bytes"
    );
    let requests: u64 = cache["classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["time"]["n"].as_u64().unwrap())
        .sum();
    assert!(requests > 20, "{cache}");
}

/// What one user sends to the store if its client has `memory` bytes: an LRU list in plain words.
fn with_memory(requests: &[Request], memory: i64) -> (Vec<(bool, u64)>, u64) {
    let (mut list, mut sent, mut absorbed) = (Vec::<u64>::new(), Vec::new(), 0);
    let bytes = |turn: &u64| requests[*turn as usize].bytes;
    for (turn, request) in (0u64..).zip(requests) {
        for earlier in request.first..turn {
            match list.iter().position(|held| *held == earlier) {
                Some(at) => {
                    let held = list.remove(at);
                    list.push(held);
                    absorbed += 1;
                }
                None => sent.push((false, earlier)),
            }
        }
        let used: i64 = list.iter().map(bytes).sum();
        let fits = 10 * (used + request.bytes) <= 8 * memory || 20 * used < memory;
        let worth = 5 * used >= memory || 10 * request.bytes <= 4 * memory;
        if 100 * request.bytes <= 95 * memory && (fits || worth) {
            list.push(turn);
            while 10 * list.iter().map(bytes).sum::<i64>() > 8 * memory && list.len() > 1 {
                sent.push((true, list.remove(0)));
            }
            absorbed += request.reads;
        } else {
            sent.push((true, turn));
            sent.extend((0..request.reads).map(|_| (false, turn)));
        }
    }
    (sent, absorbed)
}

#[test]
fn the_memory_of_a_client_absorbs_what_an_independent_list_says() {
    let dir = tempfile::tempdir().unwrap();
    let all = requests(7, 0);
    // Three mean entries, so that some leave the memory.
    let memory = 3 * all.iter().map(|r| r.bytes).sum::<i64>() / all.len() as i64;
    let (expected, absorbed) = with_memory(&all, memory);
    assert!(absorbed > 0 && expected.iter().any(|op| op.0) && expected.iter().any(|op| !op.0));
    let one = "--users 1 --duration 8s --seed 7 --target mem:";
    run(dir.path(), &format!("{one} --memory {memory}B")).expect(0, &[]);
    let sent: Vec<(bool, u64)> = courses(dir.path())[&0]
        .iter()
        .map(|op| (op.0, op.1))
        .collect();
    assert!(sent.len() >= 6, "{sent:?}");
    assert_eq!(sent[..], expected[..sent.len()]);
}

#[test]
fn users_ask_the_same_whatever_the_threads_and_agents() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&[]);
    let ask = |more: &str| {
        let outcome = run(
            dir.path(),
            &format!(
                "--clients 2 --users 3 --duration 3s {more} --target s3://bench --create-bucket --endpoint-url {}",
                server.url()
            ),
        );
        outcome.expect(0, &[]);
        courses(dir.path())
    };
    for more in ["--threads 1", "--threads 2", "--launch local:2"] {
        let courses = ask(more);
        let users: Vec<u64> = courses.keys().copied().collect();
        assert_eq!(users, (0..6).collect::<Vec<_>>(), "{more}");
        check(&courses, 42);
    }
}

#[test]
fn the_workload_of_a_preset_is_a_file_and_wrong_ones_get_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let bucketload = |args: &str| {
        let words: Vec<&str> = args.split(' ').collect();
        call(&mut bucketload(dir.path(), &words))
    };
    for (preset, lines) in [
        (
            "mlperf-1",
            ["users = 200", "memory = \"0\"", "allocations = 16"],
        ),
        (
            "mlperf-2",
            ["users = 100", "memory = \"4GiB\"", "allocations = 16"],
        ),
        (
            "mlperf-3",
            [
                "users = 70",
                "bytes-per-token = \"320KiB\"",
                "allocations = 4",
            ],
        ),
    ] {
        let shown = bucketload(&format!("kvcache --preset {preset} --show"));
        shown.expect(0, &[]);
        for line in lines {
            assert!(shown.stdout.contains(line), "{}", shown.stdout);
        }
        workload(dir.path(), &shown.stdout);
        let dry = bucketload("run workload.toml --dry-run --target null:");
        dry.expect(0, &[]);
        // Option 3 has entries above 5 GiB, so two objects each.
        let objects = if preset == "mlperf-3" {
            "in 2 objects"
        } else {
            "in 1 object "
        };
        assert!(dry.stdout.contains(objects), "{}", dry.stdout);
        bucketload("capacity workload.toml --slo p99<1s --target null:")
            .expect(2, &["--over users"]);
    }
    for (args, words) in [
        (
            "--preset mlperf-1",
            &["embedded server", "bytes-per-token"][..],
        ),
        (
            "--preset mlperf-3 --tp 1 --target null:",
            &["5 GiB", "at least 2"],
        ),
        (
            "--preset mlperf-1 --clients 1 --launch local:2 --target null:",
            &["--clients 2"],
        ),
        (
            "--preset mlperf-1 --users 100000 --clients 5 --target null:",
            &["connections"],
        ),
        ("--preset mlperf-1 --model llama3.1-9b", &["did you mean"]),
        ("--preset lmcache", &["--trace"]),
        ("--preset mlperf-1 --trace t.jsonl", &["leave out --trace"]),
        ("--trace t.jsonl --launch local:2", &["--preset mlperf-1"]),
        ("--preset mlperf-1 --budget 1GiB", &["--trace"]),
    ] {
        bucketload(&format!("kvcache {args}")).expect(2, words);
    }
    let class = "[[class]]\nname = \"c\"\nshare = 1\np95 = \"1s\"\np99 = \"1s\"\np999 = \"1s\"\np9999 = \"1s\"\n";
    std::fs::write(dir.path().join("own.toml"), class).unwrap();
    bucketload("capacity get --slo p99<1s --over users --target null:")
        .expect(2, &["--over users", "kvcache --preset mlperf-1 --show"]);
    bucketload("kvcache --preset mlperf-1 --models own.toml").expect(2, &["[[class]]"]);
    workload(
        dir.path(),
        "[keysets.k]\ncount = 1\nsize = \"1KiB\"\n[phases.run]\nduration = \"1s\"\nworkers = 2\n[phases.run.kvcache]\nclients = 0\n",
    );
    let outcome = bucketload("run workload.toml --target null:");
    outcome.expect(
        2,
        &["workload.toml:7", "workers", "users", "clients", "keysets"],
    );
    assert!(!dir.path().join("bucketload-runs").exists());
}
