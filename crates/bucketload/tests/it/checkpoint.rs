//! Checkpoints from the user's view: what is written is what the plan says, on one host or on eight, and a rank that
//! does not finish is named.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::agents::{Agent, agents_of, background, end_of, wait_for};
use crate::common::{Outcome, Serve, bucketload, call, operations};

const TOKEN: &str = "a-token-of-the-tests-0003";

pub(super) fn run(dir: &Path, args: &str) -> Outcome {
    let words: Vec<&str> = std::iter::once("checkpoint")
        .chain(args.split_whitespace())
        .collect();
    call(&mut bucketload(dir, &words))
}

/// Names, below the folder of the checkpoint, and sizes that `--plan` prints.
fn planned(dir: &Path, flags: &str) -> BTreeMap<String, u64> {
    let plan = run(dir, &format!("{flags} --plan --output json")).json();
    let ranks = plan["ranks"].as_array().unwrap().iter();
    let objects = ranks.flat_map(|rank| rank["objects"].as_array().unwrap());
    let all: BTreeMap<String, u64> = objects
        .map(|o| {
            let name = o["name"].as_str().unwrap().to_owned();
            (name, o["bytes"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(all.len() as u64, plan["objects"].as_u64().unwrap());
    assert_eq!(
        all.values().sum::<u64>(),
        plan["bytes"].as_u64().unwrap(),
        "{flags}"
    );
    all
}

/// Files below `dir`, with their sizes, by the part of their path after `folder`.
pub(super) fn listed(dir: &Path, folder: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if let Some((_, name)) = path.to_str().unwrap().split_once(folder) {
                found.insert(name.to_owned(), entry.metadata().unwrap().len());
            }
        }
    }
    found
}

#[test]
fn what_a_scaled_run_leaves_is_its_plan() {
    let dir = tempfile::tempdir().unwrap();
    for (model, more, objects) in [
        ("--model llama3-8b --scale 1/100000", "", 16),
        (
            "--model llama3-405b --subset 20 --scale 1/1000000 --extension pts3",
            " --rank-shift 3 --latest",
            8 * 6 + 8 * 5 + 4 * 5,
        ),
    ] {
        let plan = planned(dir.path(), model);
        assert_eq!(plan.len(), objects, "{model}");
        for target in ["serve", "file"] {
            let place = dir.path().join(format!("{target}-{objects}"));
            fs::create_dir(&place).unwrap();
            let line = format!(
                "{model}{more} --count 2 --pause 0s --range-size 4KiB --keep --target {target}://{} --out {target}{objects}",
                place.display()
            );
            let outcome = run(dir.path(), &line);
            outcome.expect(0, &[]);
            assert!(outcome.stdout.contains("2 of 2"), "{}", outcome.stdout);
            for step in [1, 2] {
                let folder = format!("/checkpoint/global_epoch1_step{step}/");
                assert_eq!(listed(&place, &folder), plan, "{line}");
            }
            let markers = listed(&place, "/checkpoint/latest").len();
            assert_eq!(markers, usize::from(!more.is_empty()));
        }
    }
}

/// Phase, class, key, bytes of every operation, whoever performed it.
pub(super) fn performed(out: &Path) -> Vec<String> {
    let all = operations(out).into_iter();
    let mut all: Vec<String> = all.map(|(what, _)| format!("{what:?}")).collect();
    all.sort_unstable();
    all
}

#[test]
fn eight_agents_write_what_eight_ranks_should() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let line = format!(
        "--scale 1/200000 --count 2 --pause 0s --latest --range-size 16KiB --rank-shift 1 --op-log=csv.zst --target s3://bench/x \
         --create-bucket --endpoint-url {}",
        server.url()
    );
    run(dir.path(), &format!("{line} --out one")).expect(0, &[]);
    let several = run(dir.path(), &format!("{line} --out eight --launch local:8"));
    several.expect(0, &[]);
    let (one, eight) = (
        performed(&dir.path().join("one")),
        performed(&dir.path().join("eight")),
    );
    assert!(one.len() > 2 * (16 + 16), "{}", one.len());
    assert_eq!(one, eight);
    for agent in agents_of(&dir.path().join("eight")).unwrap().agents {
        assert!(agent.totals.ok > 0, "{agent:?}");
    }
    // A verified read of what another rank wrote, by both definitions.
    let result = run(dir.path(), &format!("{line} --out json --output json")).json();
    let checkpoint = &result["checkpoint"];
    assert_eq!(checkpoint["read"]["complete"], 2);
    for direction in ["write", "read"] {
        let at = |figure: &str| checkpoint[direction][figure][0].as_f64().unwrap();
        assert!(at("seconds") > 0.0 && at("seconds") >= at("dlio_seconds"));
        assert!(at("gib_per_s") <= at("dlio_gib_per_s"));
    }
}

#[test]
fn large_objects_are_sent_in_several_parts_at_the_same_time_where_the_driver_can() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let line = "--subset 2 --scale 1/1000 --count 1 --pause 0s --part-size 5MiB --parts-in-flight 3 --range-size 3MiB \
                --op-log=csv.zst";
    let s3 = format!(
        "{line} --out s3 --create-bucket --target s3://bench/x --endpoint-url {}",
        server.url()
    );
    run(dir.path(), &s3).expect(0, &[]);
    let all = performed(&dir.path().join("s3")).join("\n");
    // The optimizer of a rank has 12 MB, its weights have 2.
    let count = |class: &str| all.matches(&format!("\"{class}\"")).count();
    assert_eq!(
        (count("multipart-put"), count("put"), count("range-get")),
        (2, 2, 2 * (4 + 1))
    );
    let files = format!("{line} --out file --target file://{}", dir.path().display());
    run(dir.path(), &files).expect(2, &["parts-in-flight = 1"]);
    // By default one after another, where only that is possible.
    let default = files.replace("--parts-in-flight 3 ", "");
    run(dir.path(), &default).expect(0, &[]);
}

#[test]
fn a_rank_whose_process_is_killed_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--fault", "delay,ms=8000,op=put,contains=optim"]);
    let agents = ["first", "second"].map(|name| Agent::start(dir.path(), name, Some(TOKEN)));
    let line = format!(
        "checkpoint --scale 1/200000 --count 1 --pause 0s --phase write --out out --create-bucket --target s3://store/x \
         --endpoint-url {} --agents {},{}",
        server.url(),
        agents[0].address,
        agents[1].address
    );
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut command = bucketload(dir.path(), &words);
    let running = background(command.env("BUCKETLOAD_AGENT_TOKEN", TOKEN));
    wait_for("intervals of both agents", || {
        let known = agents_of(&dir.path().join("out"))?.agents;
        let begun = known.iter().all(|agent| agent.last_interval.is_some());
        begun.then_some(())
    });
    let [_first, mut second] = agents;
    second.child.kill().unwrap();
    let outcome = end_of(running);
    outcome.expect(4, &["agent 1", "lost"]);
    for rank in 4..8 {
        let row = format!("write-1     {rank}");
        let line = outcome.stdout.lines().find(|line| line.contains(&row));
        let line = line.unwrap_or_else(|| panic!("{row}: {}", outcome.stdout));
        assert!(line.contains("its process was lost"), "{line}");
    }
}

#[test]
fn a_rank_whose_write_fails_is_named_and_enters_no_mean() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&[
        "--fault",
        "status=500,op=put,count=1,contains=step2/zero_pp_rank_5_",
    ]);
    let line = format!(
        "--scale 1/200000 --count 2 --pause 0s --phase write --out out --create-bucket --target s3://store/x --endpoint-url {}",
        server.url()
    );
    let outcome = run(dir.path(), &line);
    outcome.expect(1, &[]);
    for words in [
        "NO: 1 rank",
        "1 of 2",
        "1 operations failed",
        "write-2     5",
    ] {
        assert!(
            outcome.stdout.contains(words),
            "{words}: {}",
            outcome.stdout
        );
    }
}

#[test]
fn a_workload_file_from_the_flags_measures_the_same() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("mine.toml"),
        "[mine]\nlayers = 3\nhidden = 64\nffn = 128\nheads = 4\nvocabulary = 999\npipeline = 3\ndata = 2\nzero = 1\n",
    )
    .unwrap();
    let flags = "--models mine.toml --model mine --count 1 --pause 0s --interval 10m";
    run(dir.path(), &format!("{flags} --write-workload w.toml")).expect(0, &[]);
    let hash = |args: &[&str]| {
        let outcome = call(&mut bucketload(dir.path(), args));
        outcome.expect(0, &[]);
        outcome.json()["scenario_hash"].clone()
    };
    let line = format!("checkpoint {flags} --dry-run --output json");
    let flagged: Vec<&str> = line.split_whitespace().collect();
    let filed = ["run", "w.toml", "--dry-run", "--output", "json"];
    assert_eq!(hash(&flagged), hash(&filed));
    // Embedding, three layers, output and norm on data rank 0, and six optimizers.
    assert_eq!(planned(dir.path(), flags).len(), 6 + 6);
}

#[test]
fn mistakes_name_their_place_and_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("bad.toml"),
        "[bad]\nlayers = 3\nhidden = 64\nffn = 128\nheads = 100\ndata = 2\nzero = 1\n",
    )
    .unwrap();
    for (flags, words) in [
        (
            "--model llama3-8",
            &["did you mean llama3-8b?", "--models FILE"][..],
        ),
        ("--scale 0", &["--scale 0", "1/1000"]),
        ("--scale 2", &["at most 1"]),
        ("--count 0", &["--count 0"]),
        ("--subset 9", &["--subset 9", "1 to 8"]),
        (
            "--rank-shift 8",
            &["--rank-shift 8", "less than the number of ranks"],
        ),
        (
            "--ranks 12 --model llama3-70b",
            &["--ranks 12", "multiple of 8"],
        ),
        ("--part-size 1MiB", &["--part-size 1MiB", "5MiB"]),
        (
            "--scale 1 --target mem:",
            &["--scale 1", "keeps objects in memory"],
        ),
        (
            "--models bad.toml --model bad",
            &["bad.toml:5", "bad.heads", "100 heads are more"],
        ),
    ] {
        let plan = if flags.contains("mem:") {
            ""
        } else {
            " --plan"
        };
        run(dir.path(), &format!("{flags}{plan}")).expect(2, words);
    }
    // Settings of phases, which a search for a capacity makes too.
    fs::write(
        dir.path().join("w.toml"),
        "[checkpoint]\nmodel = \"llama3-8b\"\nphase = \"write\"\ncount = 1\n",
    )
    .unwrap();
    for (args, said) in [
        ("run w.toml --workers 4", "`checkpoint` defines"),
        (
            "capacity w.toml --slo p99<1s --out cap",
            "sweep w.toml --over checkpoint.parts-in-flight=1,4,16",
        ),
    ] {
        let words: Vec<&str> = args.split_whitespace().collect();
        call(&mut bucketload(dir.path(), &words)).expect(2, &[said]);
    }
    // What the refusal recommends works.
    let sweep = "sweep w.toml --over checkpoint.parts-in-flight=1,4 --repetitions 3 --set checkpoint.scale=1/1000000 \
                 --set checkpoint.pause=0s --target mem: --out swept";
    let words: Vec<&str> = sweep.split_whitespace().collect();
    call(&mut bucketload(dir.path(), &words)).expect(0, &[]);
    // 1 TB for one rank, in parts of which S3 would need more than it allows.
    let text = "[checkpoint]\nmodel = { layers = 80, hidden = 16384, ffn = 65536, heads = 64, data = 1, zero = 1 }\n\
                part-size = \"32MiB\"\n";
    fs::write(dir.path().join("parts.toml"), text).unwrap();
    call(&mut bucketload(
        dir.path(),
        &["run", "parts.toml", "--dry-run", "--target", "null:"],
    ))
    .expect(
        2,
        &["parts.toml:3", "S3 allows 10000", "use parts of at least"],
    );
}

/// The volume is said beforehand, and a directory without room for it is refused.
#[test]
fn the_volume_is_said_beforehand_and_needs_room() {
    let dir = tempfile::tempdir().unwrap();
    let target = format!("--target file://{}", dir.path().display());
    // Two hundred checkpoints of 15.1 TiB.
    let most = format!("--model llama3-1t --count 200 --range-size 0 {target}");
    let words = [
        "writes about 3013 TiB in 414,400 objects (200 checkpoints of 15.1 TiB)",
        "the file system has room for",
        "--count",
    ];
    run(dir.path(), &most).expect(2, &words);
    run(dir.path(), &format!("{most} --dry-run")).expect(0, &words);
    let none = |entries: fs::ReadDir| entries.count() == 0;
    assert!(none(fs::read_dir(dir.path()).unwrap()), "nothing was begun");
    let line = format!("--scale 1/1000000 --count 2 --pause 0s {target} --out out");
    run(dir.path(), &format!("{line} --expect-rate 1KiB/s")).expect(
        0,
        &[
            "writes about 220 KiB in 32 objects (2 checkpoints of 110 KiB)",
            "at the 1.00 KiB/s of --expect-rate",
            "the file system has room for",
        ],
    );
    // So is a data set; what reads one that is there writes nothing.
    let train = |more: &str| {
        let line = format!("train --model unet3d --accelerator h100 {target} {more}");
        let words: Vec<&str> = line.split_whitespace().collect();
        call(&mut bucketload(dir.path(), &words))
    };
    train("--objects 100000000000")
        .expect(2, &["writes about", "objects (the data set)", "--objects"]);
    let small = "--scale 1/100000 --epochs 1 --objects 14 --steps 2";
    train(&format!("{small} --prepare-only --out set"))
        .expect(0, &["in 14 objects (the data set)"]);
    let again = train(&format!("{small} --data set --out again"));
    again.expect(0, &[]);
    assert!(!again.stderr.contains("writes about"), "{}", again.stderr);
}

/// Unfinished uploads in a store of the embedded server.
fn uploads(store: &Path) -> usize {
    fs::read_dir(store.join(".bucketload/uploads/store")).map_or(0, Iterator::count)
}

/// The first signal gives up uploads that would take hours, and leaves none of them behind.
#[test]
fn a_signal_does_not_wait_for_an_upload_to_end() {
    for (more, kept) in [("", false), ("--keep", true)] {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        fs::create_dir(&store).unwrap();
        let at = store.display().to_string();
        // Each part of the optimizer takes a day.
        let server = Serve::start(&[
            "--store",
            &format!("posix:{at}"),
            "--fault",
            "delay,ms=86400000,op=upload-part",
        ]);
        let line = format!(
            "checkpoint --subset 1 --scale 1/1000 --count 2 --pause 0s --part-size 5MiB --out out --create-bucket {more} \
             --target s3://store/x --endpoint-url {}",
            server.url()
        );
        let words: Vec<&str> = line.split_whitespace().collect();
        let child = background(&mut bucketload(dir.path(), &words));
        wait_for("parts of an upload", || {
            let uploads = uploads(&store);
            (uploads > 0).then_some(())
        });
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let outcome = end_of(child);
        outcome.expect(130, &["stopping; what was measured is kept"]);
        assert_eq!(uploads(&store), 0, "{more}: {}", outcome.stderr);
        for words in ["INCOMPLETE", "did not finish"] {
            assert!(
                outcome.stdout.contains(words),
                "{words}: {}",
                outcome.stdout
            );
        }
        assert!(
            !outcome.stdout.contains("operations failed"),
            "{}",
            outcome.stdout
        );
        let again = call(&mut bucketload(
            dir.path(),
            &["report", "out", "--output", "json"],
        ));
        again.expect(0, &[]);
        assert_eq!(again.json()["verdict"]["word"], "INCOMPLETE");
        assert_eq!(store.join("store").exists(), kept, "the bucket");
    }
}

/// The marker is written on the condition that nobody else has changed it; who loses the race is told.
#[test]
fn a_marker_that_somebody_else_has_changed_is_labelled() {
    let dir = tempfile::tempdir().unwrap();
    let line = |server: &Serve, out: &str| {
        format!(
            "--scale 1/1000000 --count 3 --pause 0s --phase write --conditional-latest --op-log=csv.zst --out {out} \
             --create-bucket --target s3://store/x --endpoint-url {}",
            server.url()
        )
    };
    let server = Serve::start(&[]);
    let outcome = run(dir.path(), &line(&server, "alone"));
    outcome.expect(0, &[]);
    assert!(
        outcome.stdout.contains("marker `latest`"),
        "{}",
        outcome.stdout
    );
    assert!(!outcome.stdout.contains("RACE"), "{}", outcome.stdout);
    let all = performed(&dir.path().join("alone")).join("\n");
    assert_eq!(all.matches("\"put-if-match\"").count(), 3, "{all}");
    // Four requests find out whether the store obeys conditions; the second commit meets a race.
    let server = Serve::start(&[
        "--fault",
        "status=412,op=put,contains=latest,after=5,count=1",
    ]);
    let outcome = run(dir.path(), &line(&server, "race"));
    outcome.expect(0, &[]);
    for words in ["RACE on `latest`: 1 commits lost", "after 2"] {
        assert!(
            outcome.stdout.contains(words),
            "{words}: {}",
            outcome.stdout
        );
    }
    let again = call(&mut bucketload(
        dir.path(),
        &["report", "race", "--output", "json"],
    ))
    .json();
    assert_eq!(again["checkpoint"]["races"], serde_json::json!([2]));
    assert_eq!(again["summary"]["headline"]["races"], 1.0);
    for (quirk, why) in [
        (
            "put-if-match-ignored",
            "If-Match with another entity tag, so it ignores",
        ),
        (
            "put-if-none-match-ignored",
            "If-None-Match: * where there is an object, so it ignores",
        ),
        (
            "put-if-none-match-refused",
            "If-None-Match: * where there is no object with: ",
        ),
    ] {
        let server = Serve::start(&["--quirk", quirk]);
        run(dir.path(), &line(&server, quirk)).expect(3, &["does not obey", why, "--latest"]);
    }
    let files = format!(
        "--scale 1/1000000 --conditional-latest --target file://{}",
        dir.path().display()
    );
    run(dir.path(), &files).expect(2, &["cannot perform put-if-match"]);
}

/// What a user of checkpoints came for stands first in every view.
#[test]
fn throughput_and_seconds_stand_first() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = run(
        dir.path(),
        "--scale 1/1000000 --count 1 --pause 0s --target mem: --out out",
    );
    outcome.expect(0, &[]);
    let first = outcome.stdout.lines().next().unwrap();
    for words in [
        " write ",
        " GiB/s",
        "DLIO",
        " read ",
        "s per checkpoint",
        "0 failed",
    ] {
        assert!(first.contains(words), "{words}: {first}");
    }
    assert!(!first.contains("ops/s"), "{first}");
    let json = call(&mut bucketload(
        dir.path(),
        &["report", "out", "--output", "json"],
    ))
    .json();
    let headline = json["summary"]["headline"].as_object().unwrap();
    for direction in ["write", "read"] {
        let mean = &json["checkpoint"][direction];
        assert_eq!(
            headline[&format!("{direction}_gib_per_s")],
            mean["gib_per_s"][0]
        );
        assert_eq!(
            headline[&format!("{direction}_dlio_gib_per_s")],
            mean["dlio_gib_per_s"][0]
        );
        assert_eq!(headline[&format!("{direction}_s")], mean["seconds"][0]);
    }
    let page = fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    let facts = page.split("<dl class=\"facts\">").nth(1).unwrap();
    let facts = facts.split("</dl>").next().unwrap();
    assert!(facts.contains("write throughput by DLIO"), "{facts}");
    assert!(!facts.contains("operations per second"), "{facts}");
    let train = "train --model unet3d --accelerator h100 --scale 1/100000 --epochs 1 --steps 2 --objects 14 --target mem: \
                 --out train";
    let words: Vec<&str> = train.split_whitespace().collect();
    let outcome = call(&mut bucketload(dir.path(), &words));
    outcome.expect(0, &[]);
    let first = outcome.stdout.lines().next().unwrap();
    for words in ["AU ", "passes (mark 90 %)", "samples/s"] {
        assert!(first.contains(words), "{words}: {first}");
    }
    let json = call(&mut bucketload(
        dir.path(),
        &["report", "train", "--output", "json"],
    ))
    .json();
    assert_eq!(json["summary"]["passed"], true);
    assert_eq!(
        json["summary"]["headline"]["au_percent"],
        json["train"][0]["au"]["mean"]
    );
}
