//! Checkpoints of an earlier run: read by a second one, compared, and bundled.

use std::fs;
use std::path::Path;

use bucketload_core::verdict::Word;
use bucketload_results::compare::{Options, Run, compare};

use super::checkpoint::{listed, performed, run};
use crate::common::evidence;
use crate::common::{bucketload, call};

/// Writing and reading as two runs: the second reads what the first left, and nothing else.
#[test]
fn a_second_run_reads_what_the_first_has_written() {
    let dir = tempfile::tempdir().unwrap();
    for place in ["store", "other"] {
        fs::create_dir(dir.path().join(place)).unwrap();
    }
    let target = format!("--target file://{}/store", dir.path().display());
    let write =
        "--model llama3-405b --subset 9 --scale 1/1000000 --count 2 --pause 0s --phase write";
    run(
        dir.path(),
        &format!("{write} {target} --keep --seed 7 --out written"),
    )
    .expect(0, &[]);
    let before = listed(&dir.path().join("store"), "/");
    let read = format!("--read-from written --pause 0s --range-size 16KiB --rank-shift 4 {target}");
    let outcome = run(
        dir.path(),
        &format!("{read} --op-log=csv.zst --out read --output json"),
    );
    outcome.expect(0, &[]);
    assert!(
        !outcome.stderr.contains("writes about"),
        "{}",
        outcome.stderr
    );
    let result = outcome.json();
    let checkpoint = &result["checkpoint"];
    assert_eq!(checkpoint["read"]["complete"], 2);
    assert_eq!(
        (&checkpoint["ranks"], &checkpoint["job_ranks"]),
        (&9.into(), &512.into())
    );
    assert!(checkpoint["write"].is_null(), "{checkpoint}");
    let all = performed(&dir.path().join("read")).join("\n");
    assert!(
        all.contains("\"range-get\"") && !all.contains("\"put\""),
        "{all}"
    );
    assert_eq!(listed(&dir.path().join("store"), "/"), before);
    let text = call(&mut bucketload(dir.path(), &["report", "read"]));
    for words in ["the checkpoints of run", "the 30 s that MLPerf allows"] {
        assert!(text.stdout.contains(words), "{words}: {}", text.stdout);
    }
    // The same as a workload, and one of the two only.
    run(
        dir.path(),
        &format!("{read} --count 1 --write-workload read.toml"),
    )
    .expect(0, &[]);
    let line = format!("run read.toml --objects-of written {target} --out filed --output json");
    let words: Vec<&str> = line.split_whitespace().collect();
    let outcome = call(&mut bucketload(dir.path(), &words));
    outcome.expect(0, &[]);
    assert_eq!(outcome.json()["checkpoint"]["read"]["complete"], 1);
    // Content that somebody has changed is found.
    let name = before
        .keys()
        .find(|name| name.ends_with("_optim_states.pt"));
    let path = Path::new("/").join(name.unwrap());
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, bytes).unwrap();
    run(dir.path(), &format!("{read} --out changed")).expect(1, &[]);
    run(
        dir.path(),
        &format!("--scale 1/1000000 --count 1 --pause 0s {target} --out cleaned"),
    )
    .expect(0, &[]);
    for (line, words) in [
        (
            format!("--read-from cleaned {target}"),
            "repeat it with --keep",
        ),
        (
            format!("--read-from written {target} --count 3"),
            "wrote 2 checkpoints",
        ),
        (
            format!("--read-from written {target} --scale 1/10"),
            "--scale is a matter of the run",
        ),
        (
            format!("--read-from written {target} --phase both"),
            "write --phase read",
        ),
        (
            format!("--read-from nowhere {target}"),
            "--read-from nowhere",
        ),
    ] {
        run(dir.path(), &line).expect(2, &[words]);
    }
    let other = format!(
        "--read-from written --target file://{}/other",
        dir.path().display()
    );
    run(dir.path(), &other).expect(3, &["does not exist"]);
}

#[test]
fn checkpoints_are_compared_by_throughput_and_seconds_and_can_be_bundled() {
    let dir = tempfile::tempdir().unwrap();
    for (side, count) in [("a", 3), ("b", 3)] {
        for n in 0..count {
            let line =
                format!("--scale 1/1000000 --count 2 --pause 0s --target mem: --out {side}/{n}");
            run(dir.path(), &line).expect(0, &[]);
        }
    }
    // On a busy machine, runs may be bound by the client, and these are not compared.
    let side = |side: &str| -> Vec<Run> {
        let load = |n: usize| Run::load(&dir.path().join(format!("{side}/{n}"))).unwrap();
        let mut runs: Vec<Run> = (0..3).map(load).collect();
        for run in &mut runs {
            run.result.verdict.word = Word::Valid;
        }
        runs
    };
    let (a, b) = (side("a"), side("b"));
    let comparison = compare(&a, &b, &Options::default()).unwrap();
    let of = |id: &str| {
        let found = comparison.quantities.iter();
        let mut found = found.filter(|quantity| quantity.sample.quantity.id == id);
        found
            .next()
            .unwrap_or_else(|| panic!("{id}"))
            .sample
            .clone()
    };
    for direction in ["write", "read"] {
        let checkpoint = a[0].result.checkpoint.as_ref().unwrap();
        let mean = match direction {
            "write" => checkpoint.write.unwrap(),
            _ => checkpoint.read.unwrap(),
        };
        // In the units of comparisons: bytes and nanoseconds.
        let rate = of(&format!("run/checkpoint-{direction}"));
        assert!((rate.a[0] / mean.gib_per_s.0 / f64::from(1 << 30) - 1.0).abs() < 1e-9);
        let time = of(&format!("run/checkpoint-{direction}-time"));
        assert!((time.a[0] / mean.seconds.0 / 1e9 - 1.0).abs() < 1e-9);
        assert!(time.quantity.primary && !rate.quantity.primary);
        let dlio = of(&format!("run/dlio-{direction}"));
        assert!((dlio.a[0] / mean.dlio_gib_per_s.0 / f64::from(1 << 30) - 1.0).abs() < 1e-9);
    }
    evidence::pack(dir.path(), "a/0", "bundle").expect(0, &[]);
    evidence::run(dir.path(), &["verify-bundle", "bundle"]).expect(0, &[]);
    let page = dir.path().join("a/0/events.jsonl");
    let text = fs::read_to_string(&page).unwrap();
    // A rank that would have been faster.
    let at = text.find("\"last_ns\":").unwrap() + 10;
    fs::write(&page, format!("{}9{}", &text[..at], &text[at..])).unwrap();
    evidence::pack(dir.path(), "a/0", "forged").expect(0, &[]);
    evidence::run(dir.path(), &["verify-bundle", "forged"]).expect(1, &[]);
}
