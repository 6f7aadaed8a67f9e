//! The cache of a language model from the user's view. What the program should do is computed here, from the trace
//! alone, and compared with the server's own log or with the objects that are left in a directory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::Path;

use crate::common::{Outcome, Serve, bucketload, call};

/// The blocks of each request of a trace in which conversations share block 0, grow by a block per turn, and end with
/// a partial block that does not come again.
fn requests() -> Vec<Vec<u64>> {
    let (mut next, mut all) = (1, Vec::new());
    let mut kept = vec![vec![0]; 10];
    for turn in 0..6 {
        for blocks in &mut kept {
            if turn > 0 {
                blocks.push(next);
                next += 1;
            }
            let mut listed = blocks.clone();
            listed.push(next);
            next += 1;
            all.push(listed);
        }
    }
    all
}

/// Writes the trace; a request per 20 ms.
fn trace(dir: &Path, requests: &[Vec<u64>]) {
    let mut text = String::new();
    for (i, blocks) in requests.iter().enumerate() {
        let _ = writeln!(
            text,
            "{{\"timestamp\": {}, \"input_length\": {}, \"output_length\": 3, \"hash_ids\": {blocks:?}}}",
            20 * i,
            512 * blocks.len() - 100
        );
    }
    std::fs::write(dir.join("t.jsonl"), text).unwrap();
}

fn run(dir: &Path, args: &str) -> Outcome {
    let all = "kvcache --trace t.jsonl --quiet --no-calibration --threads 1 --output json";
    let words: Vec<&str> = all.split(' ').chain(args.split(' ')).collect();
    call(&mut bucketload(dir, &words))
}

fn cache(json: &serde_json::Value) -> serde_json::Value {
    let phases = json["phases"].as_array().expect("phases");
    let phase = phases.iter().find(|phase| !phase["kvcache"].is_null());
    phase.expect("a phase with a cache")["kvcache"].clone()
}

/// Requests of the server's log by operation and block: those on objects of the cache.
fn logged(log: &Path) -> BTreeMap<(String, u64), u64> {
    let mut counts = BTreeMap::new();
    for line in std::fs::read_to_string(log).unwrap().lines().skip(1) {
        let fields: Vec<&str> = line.splitn(5, ',').collect();
        if let Some((_, name)) = fields[4].split_once("/kv/llama3.1-8b/1/0/") {
            let block = name.parse().unwrap();
            *counts.entry((fields[0].to_owned(), block)).or_default() += 1;
        }
    }
    counts
}

#[test]
fn without_a_budget_reads_are_hits_and_writes_are_distinct_blocks_by_the_servers_log() {
    let dir = tempfile::tempdir().unwrap();
    let requests = requests();
    trace(dir.path(), &requests);
    let log = dir.path().join("server.log");
    let server = Serve::start(&[
        "--fault",
        "delay,ms=1",
        "--fault-log",
        log.to_str().unwrap(),
    ]);
    let target = format!(
        "--target s3://bench --create-bucket --endpoint-url {} --bytes-per-token 64 --verify --serial --lookup index",
        server.url()
    );
    let outcome = run(dir.path(), &target);
    outcome.expect(0, &[]);
    let (mut hits, mut distinct) = (BTreeMap::new(), BTreeSet::new());
    for blocks in &requests {
        for block in blocks {
            if !distinct.insert(*block) {
                *hits.entry(*block).or_insert(0) += 1;
            }
        }
    }
    let found = logged(&log);
    let of = |name: &str| -> BTreeMap<u64, u64> {
        let mine = found.iter().filter(|((op, _), _)| op.contains(name));
        mine.map(|((_, block), n)| (*block, *n)).collect()
    };
    assert_eq!(of("get"), hits, "{found:?}");
    let once: BTreeMap<u64, u64> = distinct.iter().map(|block| (*block, 1)).collect();
    assert_eq!(of("put"), once, "{found:?}");
    let cache = cache(&outcome.json());
    let counts = &cache["counts"];
    let listed: u64 = requests.iter().map(|blocks| blocks.len() as u64).sum();
    let hit: u64 = hits.values().sum();
    assert_eq!(
        (counts["blocks"].as_u64(), counts["hits"].as_u64()),
        (Some(listed), Some(hit))
    );
    assert_eq!(counts["written"], distinct.len());
    for none in ["duplicates", "wasted", "lost", "evicted", "unwritten"] {
        assert_eq!(counts[none], 0, "{none}: {counts}");
    }
    let ratio = hit as f64 / listed as f64;
    assert!((cache["block_hit_ratio"].as_f64().unwrap() - ratio).abs() < 1e-12);
}

/// A least recently used list of blocks, the oldest first: hits, evictions, and what is left.
fn plain_lru(
    requests: &[Vec<u64>],
    bytes: impl Fn(&[u64], usize) -> u64,
    budget: u64,
) -> (u64, u64, BTreeSet<u64>) {
    let mut list: VecDeque<(u64, u64)> = VecDeque::new();
    let (mut hits, mut evicted) = (0, 0);
    for blocks in requests {
        let mut missed = false;
        for (i, block) in blocks.iter().enumerate() {
            let at = list.iter().position(|known| known.0 == *block);
            missed |= at.is_none();
            hits += u64::from(!missed);
            let entry = at.and_then(|at| list.remove(at));
            list.push_back(entry.unwrap_or((*block, bytes(blocks, i))));
        }
        while list.iter().map(|known| known.1).sum::<u64>() > budget {
            list.pop_front();
            evicted += 1;
        }
    }
    (
        hits,
        evicted,
        list.into_iter().map(|known| known.0).collect(),
    )
}

/// The names of files below `dir` that are objects of the cache, relative to the model.
fn objects(dir: &Path, model: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if let Some((_, name)) =
                path.to_str().unwrap().split_once(&format!("/kv/{model}/"))
            {
                found.insert(name.to_owned());
            }
        }
    }
    found
}

#[test]
fn evictions_equal_those_of_an_independent_list_whatever_the_lookup() {
    let requests = requests();
    // 64 bytes per token: 32 KiB per block, less for the partial one.
    let bytes = |blocks: &[u64], i: usize| match i + 1 == blocks.len() {
        true => 64 * 412,
        false => 64 * 512,
    };
    let budget = 40 * 32 * 1024;
    let (hits, evicted, left) = plain_lru(&requests, bytes, budget);
    assert!(evicted > 20, "{evicted}");
    for lookup in ["index", "get", "head"] {
        let dir = tempfile::tempdir().unwrap();
        trace(dir.path(), &requests);
        std::fs::create_dir(dir.path().join("store")).unwrap();
        let target = format!(
            "--target file://{}/store --keep --bytes-per-token 64 --serial --lookup {lookup} --budget {budget}",
            dir.path().display()
        );
        let outcome = run(dir.path(), &target);
        outcome.expect(0, &[]);
        let counts = cache(&outcome.json())["counts"].clone();
        assert_eq!(counts["hits"], hits, "{lookup}: {counts}");
        assert_eq!(counts["evicted"], evicted, "{lookup}: {counts}");
        assert_eq!(counts["removed"], evicted, "{lookup}: {counts}");
        assert!(counts["most_bytes"].as_u64().unwrap() <= budget, "{counts}");
        let names: BTreeSet<String> = left.iter().map(|block| format!("1/0/{block}")).collect();
        assert_eq!(
            objects(&dir.path().join("store"), "llama3.1-8b"),
            names,
            "{lookup}"
        );
    }
}

#[test]
fn ranks_and_layers_divide_a_block_and_lmcache_has_smaller_ones() {
    let one = [vec![7]];
    for (args, model, expected) in [
        (
            "--model tiny-1b --tp 2 --layerwise --bytes-per-token 1200",
            "tiny-1b",
            (0..2)
                .flat_map(|rank| (0..12).map(move |layer| format!("2/{rank}/7/{layer}")))
                .collect::<BTreeSet<_>>(),
        ),
        // 412 tokens are one chunk of 256 and one that is not whole.
        (
            "--preset lmcache --bytes-per-token 64",
            "llama3.1-8b",
            BTreeSet::from(["1/0/14".to_owned()]),
        ),
        (
            "--block-tokens 256 --bytes-per-token 64",
            "llama3.1-8b",
            BTreeSet::from(["1/0/14".to_owned(), "1/0/15".to_owned()]),
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        trace(dir.path(), &one);
        std::fs::create_dir(dir.path().join("store")).unwrap();
        let target = format!(
            "--target file://{}/store --keep {args}",
            dir.path().display()
        );
        run(dir.path(), &target).expect(0, &[]);
        assert_eq!(
            objects(&dir.path().join("store"), model),
            expected,
            "{args}"
        );
    }
}

#[test]
fn at_the_times_of_the_trace_every_request_is_served_and_every_write_accounted_for() {
    let dir = tempfile::tempdir().unwrap();
    let requests = requests();
    trace(dir.path(), &requests);
    let distinct: BTreeSet<u64> = requests.iter().flatten().copied().collect();
    // With if-absent, a block that two requests miss is stored once.
    for more in [
        "--speed 5",
        "--speed 5 --if-absent --prefill-per-token 20us",
    ] {
        let outcome = run(dir.path(), &format!("--bytes-per-token 64 --verify {more}"));
        outcome.expect(0, &[]);
        let cache = cache(&outcome.json());
        let counts = &cache["counts"];
        let count = |name: &str| counts[name].as_u64().unwrap();
        assert_eq!((count("requests"), count("loaded")), (60, 60), "{counts}");
        assert_eq!(count("blocks"), count("hits") + count("missed"), "{counts}");
        assert_eq!(count("missed"), count("written"), "{counts}");
        // What was written more than once was known to be written before, and nothing else was.
        assert_eq!(
            count("written"),
            distinct.len() as u64 + count("duplicates"),
            "{counts}"
        );
        assert!(count("avoided") <= count("duplicates"), "{counts}");
        assert_eq!(count("lost"), 0, "{counts}");
        let durations = cache["durations"].as_array().unwrap();
        let n = |name: &str| {
            let found = durations.iter().find(|d| d["name"] == name);
            found.map_or(0, |d| d["time"]["n"].as_u64().unwrap())
        };
        assert_eq!(n("load"), n("arrival to loaded"));
        assert_eq!(
            n("load"),
            n("first token later by") + n("first token earlier by")
        );
        let classes = cache["classes"].as_array().unwrap();
        let in_classes: u64 = classes
            .iter()
            .map(|c| c["time"]["n"].as_u64().unwrap())
            .sum();
        assert_eq!(in_classes, n("load"));
    }
}

#[test]
fn what_cannot_be_done_is_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    trace(dir.path(), &requests());
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write(
        "azure.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6,374,44\n",
    );
    write(
        "negative.jsonl",
        "{\"timestamp\": 0, \"input_length\": -5, \"output_length\": 3, \"hash_ids\": [1]}\n",
    );
    write("own.toml", "[[model]]\nname = \"mine\"\nlayers = 2\n");
    for (args, words) in [
        (
            "--model llama3.1-9b",
            &["did you mean llama3.1-8b?", "--models"][..],
        ),
        ("--models own.toml", &["own.toml", "mine", "kv-heads"]),
        ("--block-tokens 100", &["divisor"]),
        (
            "--bytes-per-token 1KiB --tp 1024 --block-tokens 1 --layerwise",
            &["32768 objects", "--bytes-per-token"],
        ),
        (
            "--model llama2-7b --bytes-per-token 64MiB",
            &["5 GiB", "--layerwise"],
        ),
        ("", &["embedded server", "--bytes-per-token", "--budget"]),
        ("--trace azure.csv", &["azure.csv:1: malformed", "Mooncake"]),
        (
            "--trace negative.jsonl",
            &["negative.jsonl:1: bad-number", "--lenient"],
        ),
    ] {
        let outcome = match args {
            "" => run(dir.path(), "--speed 1"),
            args => run(dir.path(), args),
        };
        outcome.expect(2, words);
    }
    assert!(!dir.path().join("bucketload-runs").exists());
    let outcome = call(&mut bucketload(
        dir.path(),
        &["kvcache", "--trace", "t.jsonl", "--dry-run"],
    ));
    outcome.expect(0, &[]);
    for line in [
        "270 listed, 111 distinct",
        "58.889 %",
        "131072 bytes per token",
    ] {
        assert!(outcome.stdout.contains(line), "{}", outcome.stdout);
    }
}
