//! Training from the user's view: utilisation without and with a slow store, the barrier over agents, wrong input.
//!
//! Utilisation is also computed here, by the formula of docs/spec/ai-training.md section 5, from the recorded steps.

use std::fs;
use std::path::Path;

use bucketload_core::sink::Event;
use bucketload_core::train::TrainEpoch;
use bucketload_results::rundir::RunDir;

use crate::common::agents::Agent;
use crate::common::{Outcome, Serve, bucketload, call, operations};

const TOKEN: &str = "a-token-of-the-tests-0003";

/// A model of small samples, one per batch, with this computation.
fn model(dir: &Path, computation: &str) {
    let text = format!(
        "[small]\nformat = \"npz\"\nrecord = 4000\nstdev = 1000\nframing = 498\nbatch = 1\nreaders = 1\nprefetch = 0\n\
         [small.accelerators]\nx1 = {{ computation = \"{computation}\" }}\n"
    );
    fs::write(dir.join("models.toml"), text).unwrap();
}

fn train(dir: &Path, more: &[&str]) -> Outcome {
    let mut args = vec![
        "train",
        "--models",
        "models.toml",
        "--model",
        "small",
        "--accelerator",
        "x1",
        "--output",
        "json",
        "--out",
        "out",
    ];
    args.extend(more);
    let _ = fs::remove_dir_all(dir.join("out"));
    let mut command = bucketload(dir, &args);
    call(command.env("BUCKETLOAD_AGENT_TOKEN", TOKEN))
}

fn epochs(dir: &Path) -> Vec<TrainEpoch> {
    let run = RunDir::open(dir.join("out")).unwrap();
    let (events, _) = run.events().unwrap();
    let epochs = events.into_iter().filter_map(|event| match event {
        Event::Train(epoch) => Some(epoch),
        _ => None,
    });
    epochs.collect()
}

/// The mean over epochs of the mean over accelerators, from the times of the steps alone.
fn au_by_hand(records: &[TrainEpoch]) -> f64 {
    let count = records.iter().map(|r| r.epoch).max().unwrap() + 1;
    let mut sum = 0.0;
    for number in 0..count {
        let own: Vec<&TrainEpoch> = records.iter().filter(|r| r.epoch == number).collect();
        let mut of_epoch = 0.0;
        for record in &own {
            assert_eq!(record.times.len() as u64, record.steps);
            let block = (record.ended_ns - record.began_ns) as f64;
            let [wait, compute, _] = record.times[0];
            let counted = block - (wait + compute) as f64;
            let computed: u64 = record.times[1..].iter().map(|step| step[1]).sum();
            of_epoch += 100.0 * computed as f64 / counted;
        }
        sum += of_epoch / own.len() as f64;
    }
    sum / f64::from(count)
}

fn au(outcome: &Outcome) -> f64 {
    outcome.expect(0, &[]);
    outcome.json()["train"][0]["au"]["mean"].as_f64().unwrap()
}

#[test]
fn a_store_without_delay_keeps_accelerators_busy() {
    let dir = tempfile::tempdir().unwrap();
    model(dir.path(), "250ms");
    let server = Serve::start(&["--store", "memory"]);
    let url = server.url();
    let target = [
        "--target",
        "s3://bench/x",
        "--create-bucket",
        "--endpoint-url",
        &url,
    ];
    let more = [
        "--epochs",
        "2",
        "--steps",
        "5",
        "--objects",
        "12",
        "--op-log",
        "--slo",
        "au>=99%",
    ];
    let done = train(dir.path(), &[&target[..], &more[..]].concat());
    let reported = au(&done);
    assert!(reported > 99.0, "{reported}");
    let records = epochs(dir.path());
    assert_eq!(records.len(), 2);
    assert!((reported - au_by_hand(&records)).abs() < 1e-6);
    let summary = fs::read_to_string(dir.path().join("out/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let metric = &summary["metric"];
    assert_eq!(metric["train_au_meet_expectation"], "success");
    assert_eq!(
        metric["train_au_mean_percentage"].as_f64().unwrap(),
        reported
    );
    assert_eq!(metric["train_au_percentage"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&summary["num_files_train"], &summary["epochs"]),
        (&12.into(), &2.into())
    );
    let page = fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    for part in [
        "Training, phase train",
        "What accelerators did",
        "Waiting for batches over time",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // Names as DLIO gives them; each epoch reads five of the twelve objects, each once.
    let read: Vec<String> = operations(&dir.path().join("out"))
        .into_iter()
        .filter(|(what, _)| what.2 == "get")
        .map(|(what, _)| format!("{what:?}"))
        .collect();
    assert_eq!(read.len(), 10, "{read:?}");
    assert!(
        read.iter()
            .all(|what| what.contains("train/img_") && what.contains("_of_12.npz"))
    );
}

/// Reading a batch takes L, computing C. One reader delivers a batch every L; two deliver two: of 8 steps, 7 count,
/// in 3·L + C; four readers keep up if L is below 4·C.
#[test]
fn a_slow_store_lets_accelerators_wait_as_computed() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory", "--fault", "delay,ms=600,op=get"]);
    let url = server.url();
    let run = |readers: &str| {
        let more = [
            "--target",
            "s3://bench/x",
            "--create-bucket",
            "--endpoint-url",
            &url,
            "--epochs",
            "1",
            "--steps",
            "8",
            "--objects",
            "8",
            "--prefetch",
            readers,
            "--readers",
            readers,
        ];
        let reported = au(&train(dir.path(), &more));
        assert!((reported - au_by_hand(&epochs(dir.path()))).abs() < 1e-6);
        reported
    };
    model(dir.path(), "300ms");
    let half = run("1");
    assert!((half - 50.0).abs() <= 2.0, "{half}");
    model(dir.path(), "170ms");
    for (readers, expected) in [
        ("1", 100.0 * 170.0 / 600.0),
        ("2", 100.0 * 7.0 * 170.0 / 1970.0),
        ("4", 100.0),
    ] {
        let reported = run(readers);
        assert!(
            (reported - expected).abs() <= 4.0,
            "{readers}: {reported}, not {expected}"
        );
    }
}

#[test]
fn accelerators_of_four_agents_meet_after_each_step() {
    let dir = tempfile::tempdir().unwrap();
    model(dir.path(), "100ms");
    // Every third read is late, so accelerators that did not wait for one another would drift apart.
    let server = Serve::start(&[
        "--store",
        "memory",
        "--fault",
        "delay,ms=400,op=get,every=3",
    ]);
    let url = server.url();
    let agents = ["a", "b", "c", "d"].map(|name| Agent::start(dir.path(), name, Some(TOKEN)));
    let addresses: Vec<&str> = agents.iter().map(|agent| agent.address.as_str()).collect();
    let addresses = addresses.join(",");
    let more = [
        "--target",
        "s3://bench/x",
        "--create-bucket",
        "--endpoint-url",
        &url,
        "--accelerators",
        "4",
        "--epochs",
        "1",
        "--steps",
        "8",
        "--objects",
        "32",
        "--agents",
        &addresses,
    ];
    let reported = au(&train(dir.path(), &more));
    let records = epochs(dir.path());
    assert_eq!(records.len(), 4);
    assert!((reported - au_by_hand(&records)).abs() < 1e-6);
    let mut numbers: Vec<u32> = records.iter().map(|record| record.accelerator).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3]);
    let mut waited = [0u64; 4];
    for step in 0..8 {
        let ends: Vec<u64> = records
            .iter()
            .map(|record| {
                let until = record.times[..=step].iter().flatten().sum::<u64>();
                record.began_ns + until
            })
            .collect();
        let spread = ends.iter().max().unwrap() - ends.iter().min().unwrap();
        assert!(spread < 200_000_000, "step {step}: {spread} ns");
        for (sum, record) in waited.iter_mut().zip(&records) {
            *sum += record.times[step][2];
        }
    }
    // Those whose batch came in time waited for the others.
    assert!(waited.iter().sum::<u64>() > 400_000_000, "{waited:?}");
}

#[test]
fn wrong_input_names_file_line_and_remedy() {
    let dir = tempfile::tempdir().unwrap();
    model(dir.path(), "100ms");
    let refused = |args: &[&str], words: &[&str]| {
        let outcome = call(&mut bucketload(dir.path(), args));
        outcome.expect(2, &[]);
        for word in words {
            assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
        }
    };
    let built_in = ["train", "--accelerator", "h100", "--model"];
    refused(
        &[&built_in[..], &["unet4d"]].concat(),
        &["unet4d", "unet3d"],
    );
    refused(
        &[&built_in[..], &["dlrm"]].concat(),
        &["h100", "b200", "mi355"],
    );
    let own = [
        "train",
        "--models",
        "models.toml",
        "--model",
        "small",
        "--accelerator",
        "h100",
    ];
    refused(&own, &["models.toml:9", "x1"]);
    let workload = "[keysets.k]\ncount = 4\nsize = 1000\n[phases.t.train]\nbatch = 1\ncomputation = \"1ms\"\nreaders = 0\n";
    fs::write(dir.path().join("w.toml"), workload).unwrap();
    refused(
        &["run", "w.toml", "--target", "mem:"],
        &["w.toml:7", "readers"],
    );
    fs::write(
        dir.path().join("w.toml"),
        workload.replace("readers = 0", "accelerators = 5"),
    )
    .unwrap();
    refused(
        &["run", "w.toml", "--target", "mem:"],
        &["w.toml:7", "a step needs 5 objects"],
    );
    refused(
        &["run", "get", "--slo", "au>=90%", "--target", "mem:"],
        &["no accelerators"],
    );
}

#[test]
fn the_rule_for_data_sets_and_the_workload_can_be_printed() {
    let dir = tempfile::tempdir().unwrap();
    let printed = |args: &[&str]| {
        let outcome = call(&mut bucketload(dir.path(), args));
        outcome.expect(0, &[]);
        outcome.stdout
    };
    let unet3d = ["train", "--model", "unet3d", "--accelerator", "h100"];
    let rule = printed(
        &[
            &unet3d[..],
            &[
                "--accelerators",
                "8",
                "--datasize",
                "--host-memory",
                "512GiB",
            ],
        ]
        .concat(),
    );
    assert!(rule.contains("28000") && rule.contains("18751"), "{rule}");
    fs::write(
        dir.path().join("models.toml"),
        printed(&["train", "--show-models"]),
    )
    .unwrap();
    let own = [
        "--models",
        "models.toml",
        "--datasize",
        "--host-memory",
        "1GiB",
    ];
    assert!(printed(&[&unet3d[..], &own[..]].concat()).contains("3500"));
    let text = printed(&[&unet3d[..], &["--scale", "1/1000", "--show"]].concat());
    fs::write(dir.path().join("unet3d.toml"), text).unwrap();
    let plan = printed(&["run", "unet3d.toml", "--dry-run", "--target", "mem:"]);
    assert!(
        plan.contains("1 accelerator with 4 readers each, 5 epochs of 20 steps"),
        "{plan}"
    );
    // Column chunks, ranges and whole objects of many samples, with everything compared.
    for (model, more) in [
        ("dlrm", ["--scale", "1/20000"]),
        ("resnet50", ["--read-mode", "range"]),
        ("resnet50", ["--scale", "1/100"]),
    ] {
        let kind = if model == "dlrm" { "b200" } else { "h100" };
        let mut args = vec![
            "train",
            "--model",
            model,
            "--accelerator",
            kind,
            "--verify",
            "--target",
            "mem:",
        ];
        args.extend(more);
        args.extend(["--epochs", "1", "--steps", "2", "--output", "json"]);
        if more[0] == "--read-mode" {
            args.extend(["--scale", "1/100", "--range-size", "64KiB"]);
        }
        let outcome = call(&mut bucketload(dir.path(), &args));
        outcome.expect(0, &[]);
        let train = &outcome.json()["train"][0];
        assert_eq!(
            (&train["failed_reads"], &train["epochs"][0]["steps"]),
            (&0.into(), &2.into()),
            "{model}"
        );
    }
}

/// The store serves 12 reads a second, an accelerator takes 5: two are kept busy, the third is not.
#[test]
fn the_largest_number_of_accelerators_is_found() {
    let dir = tempfile::tempdir().unwrap();
    model(dir.path(), "200ms");
    let queue = "queue,rate=12/s,service=const,op=get";
    let server = Serve::start(&["--store", "memory", "--fault", queue]);
    let url = server.url();
    let shown = call(&mut bucketload(
        dir.path(),
        &[
            "train",
            "--models",
            "models.toml",
            "--model",
            "small",
            "--accelerator",
            "x1",
            "--objects",
            "60",
            "--show",
        ],
    ));
    shown.expect(0, &[]);
    fs::write(dir.path().join("small.toml"), &shown.stdout).unwrap();
    let found = call(&mut bucketload(
        dir.path(),
        &[
            "capacity",
            "small.toml",
            "--slo",
            "au>=90%",
            "--over",
            "accelerators",
            "--trial-duration",
            "3s",
            "--confirm",
            "1",
            "--no-calibration",
            "--out",
            "search",
            "--target",
            "s3://bench/x",
            "--create-bucket",
            "--endpoint-url",
            &url,
        ],
    ));
    found.expect(0, &[]);
    // Where other programs take the cores, a trial that misses the objective may be the client's fault.
    let sentences = [
        "capacity between 2 and 3 accelerators",
        "capacity at least 2 accelerators: above that the client",
    ];
    let said = sentences.iter().any(|text| found.stdout.contains(text));
    assert!(said, "{}", found.stdout);
    let page = fs::read_to_string(dir.path().join("search/report.html")).unwrap();
    assert!(page.contains("Utilisation of the accelerators"));
}
