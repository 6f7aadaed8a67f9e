//! Traces of language models: golden files of three requests, input that is cut, out of order or wrong, and the hit
//! ratio of a Mooncake trace whose answer is known.

use std::collections::HashSet;
use std::fmt::Write as _;

use bucketload_core::trace::TraceOp;
use bucketload_trace::{Format, Ticks, TraceError};

use crate::support::{Prepared, Row, prepared};

const SECOND: i64 = 1_000_000_000;

fn read(name: &str, text: &str) -> Result<Prepared, TraceError> {
    prepared(&[(name, text.as_bytes())], |o| o.ticks = Ticks::Burst)
}

/// Instant, operation, key and size of each record.
fn facts(rows: &[Row]) -> Vec<(i64, TraceOp, &str, i64)> {
    let fact = |row: &'_ Row| (row.0.ts_ns, row.0.op, row.0.size);
    let all = rows.iter().map(|row| (fact(row), row.1.as_str()));
    all.map(|((ts, op, size), key)| (ts, op, key, size))
        .collect()
}

#[test]
fn a_request_of_mooncake_reads_its_blocks_and_the_last_may_be_partial() {
    let p = read("m", include_str!("../data/mooncake.jsonl")).unwrap();
    assert_eq!(p.summary.files[0].format, Format::Mooncake.name());
    let get = |ms: i64, key, size| (ms * 1_000_000, TraceOp::Get, key, size);
    let expected = [
        get(0, "0", 512),
        get(0, "1", 512),
        get(0, "2", 76),
        get(3000, "0", 512),
        get(3000, "1", 512),
        get(3000, "7", 512),
        get(3000, "9", 17),
    ];
    assert_eq!(facts(&p.records), expected);
    // The line tells which blocks belong together.
    let lines: Vec<u64> = p.records.iter().map(|row| row.0.src).collect();
    assert_eq!(lines, [1, 1, 1, 2, 2, 2, 3]);
}

#[test]
fn requests_of_azure_and_burstgpt_write_as_many_bytes_as_tokens() {
    for (name, text, format, sizes, last_ns) in [
        (
            "2023",
            include_str!("../data/azure-llm-2023.csv"),
            Format::AzureLlm,
            [374, 396, 879],
            4_541_977_000,
        ),
        (
            "2024",
            include_str!("../data/azure-llm-2024.csv"),
            Format::AzureLlm,
            [2162, 2399, 76],
            7_419_000,
        ),
        (
            "burst",
            include_str!("../data/burstgpt.csv"),
            Format::BurstGpt,
            [472, 1087, 417],
            113 * SECOND + SECOND / 2,
        ),
    ] {
        let p = read(name, text).unwrap();
        assert_eq!(p.summary.files[0].format, format.name(), "{name}");
        let found = facts(&p.records);
        let found_sizes: Vec<i64> = found.iter().map(|row| row.3).collect();
        assert_eq!(found_sizes, sizes, "{name}");
        assert!(found.iter().all(|row| row.1 == TraceOp::Put), "{name}");
        assert_eq!(found.last().unwrap().0, last_ns, "{name}");
        let keys: HashSet<&str> = found.iter().map(|row| row.2).collect();
        assert_eq!(keys.len(), 3, "{name}");
    }
}

#[test]
fn requests_out_of_order_are_sorted_and_stay_together() {
    let text = include_str!("../data/mooncake.jsonl");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.rotate_left(1);
    let p = read("m", &lines.join("\n")).unwrap();
    let keys: Vec<&str> = p.records.iter().map(|row| row.1.as_str()).collect();
    assert_eq!(keys, ["0", "1", "2", "0", "1", "7", "9"]);
    assert_eq!(p.summary.backward_steps, 1);
}

#[test]
fn a_wrong_line_is_named_with_its_file_and_reason() {
    let good = include_str!("../data/mooncake.jsonl");
    let cut = &good[..good.len() - 20];
    let azure = include_str!("../data/azure-llm-2023.csv");
    let burst = include_str!("../data/burstgpt.csv");
    for (name, text, line, reason) in [
        ("cut.jsonl", cut.to_owned(), 3, "truncated"),
        (
            "negative.jsonl",
            good.replace("17,", "-17,"),
            3,
            "bad-number",
        ),
        ("output.jsonl", good.replace("52,", "-52,"), 1, "bad-number"),
        (
            "blocks.jsonl",
            good.replace("[0, 1, 7]", "[0, 1]"),
            2,
            "bad-number",
        ),
        (
            "time.jsonl",
            good.replace("\"timestamp\": 0", "\"timestamp\": -4"),
            1,
            "bad-timestamp",
        ),
        ("azure.csv", azure.replace("396", "-396"), 3, "bad-number"),
        (
            "generated.csv",
            azure.replace("109", "-109"),
            3,
            "bad-number",
        ),
        (
            "cut.csv",
            azure[..azure.len() - 8].to_owned(),
            4,
            "truncated",
        ),
        ("burst.csv", burst.replace("1087", "-1"), 3, "bad-number"),
        (
            "when.csv",
            burst.replace("118.5", "soon"),
            4,
            "bad-timestamp",
        ),
    ] {
        let error = match read(name, &text) {
            Err(error) => error.to_string(),
            Ok(p) => panic!("{name}: {:?}", p.summary.dropped),
        };
        let at = format!("{name}:{line}: {reason}: ");
        assert!(error.contains(&at), "{name}: {error}");
        assert!(error.contains("--lenient"), "{name}: {error}");
        // The rest is kept if the user wants that.
        let lenient = prepared(&[(name, text.as_bytes())], |o| o.lenient = true).unwrap();
        assert_eq!(lenient.summary.dropped[reason], 1, "{name}");
    }
}

/// `conversations` conversations of `turns` turns, as in Mooncake's files: each turn has the blocks of the turn before
/// and one more, except for its last block, which is partial and never appears again. All begin with block 0.
///
/// Turn t (from 0) lists t + 2 blocks. Of these, all but the new one and the last are hits, and block 0 once is not:
/// `conversations * turns * (turns + 3) / 2` blocks are listed, `1 + conversations * (2 * turns - 1)` are distinct.
pub(crate) fn conversations(conversations: u64, turns: u64) -> String {
    let mut text = String::new();
    let mut next = 1u64;
    let mut kept: Vec<Vec<u64>> = vec![vec![0]; conversations as usize];
    for turn in 0..turns {
        for (c, blocks) in kept.iter_mut().enumerate() {
            if turn > 0 {
                blocks.push(next);
                next += 1;
            }
            let mut listed = blocks.clone();
            listed.push(next);
            next += 1;
            let _ = writeln!(
                text,
                "{{\"timestamp\": {}, \"input_length\": {}, \"output_length\": 3, \"hash_ids\": {listed:?}}}",
                turn * 1000 + c as u64,
                listed.len() as u64 * 512 - 100,
            );
        }
    }
    text
}

#[test]
fn the_hit_ratio_of_an_infinite_cache_is_that_of_the_generator() {
    let (n, turns) = (20, 7);
    let p = read("m", &conversations(n, turns)).unwrap();
    let blocks = bucketload_trace::block_statistics(&p.canonical).unwrap();
    let listed = n * turns * (turns + 3) / 2;
    let distinct = 1 + n * (2 * turns - 1);
    assert_eq!((blocks.requests, blocks.listed), (n * turns, listed));
    assert_eq!(blocks.distinct, distinct);
    assert_eq!(blocks.hits, listed - distinct);
    assert_eq!(blocks.prefix_hits, blocks.hits);
    let ratio = 1.0 - distinct as f64 / listed as f64;
    assert!((blocks.hit_ratio() - ratio).abs() < 1e-12);
}

#[test]
fn a_block_after_a_miss_is_no_prefix_hit() {
    let text = "{\"timestamp\": 0, \"input_length\": 1024, \"output_length\": 1, \"hash_ids\": [1, 2]}\n\
                {\"timestamp\": 1, \"input_length\": 1536, \"output_length\": 1, \"hash_ids\": [1, 3, 2]}\n";
    let p = read("m", text).unwrap();
    let blocks = bucketload_trace::block_statistics(&p.canonical).unwrap();
    assert_eq!((blocks.listed, blocks.hits, blocks.prefix_hits), (5, 2, 1));
    assert_eq!((blocks.tokens, blocks.prefix_hit_tokens), (2560, 512));
}
