//! IO500 from the user's view: scores that the operation log confirms, stonewall, marks of invalid runs.

mod files;
mod genuine;

use std::fs;
use std::path::Path;

use crate::common::{Outcome, Serve, bucketload, call};
use bucketload_core::sink::Event;
use bucketload_results::rundir::RunDir;
use files::{log, sections};

const RANKS: u64 = 3;
const EASY_FILES: u64 = 30;
const HARD_FILES: u64 = 110;
const TRANSFER: u64 = 64 << 10;
const EASY_TRANSFERS: u64 = 8;
const SEGMENTS: u64 = 12;

/// A whole run with counts that are small enough to finish before the stonewall, except for the random reads, which
/// last until the stonewall.
fn small(dir: &Path, out: &str, args: &[&str]) -> Outcome {
    let sets = [
        "debug.stonewall-time=60",
        "ior-rnd4K-easy-read.run=FALSE",
        "ior-easy.transferSize=64k",
        "ior-easy.blockSize=512k",
        "ior-hard.segmentCount=12",
        "mdtest-easy.n=30",
        "mdtest-hard.n=110",
    ];
    let mut all = vec!["io500", "--ranks", "3", "--op-log=csv.zst", "--out", out];
    for set in &sets {
        all.extend(["--set", set]);
    }
    all.extend(args);
    call(&mut bucketload(dir, &all))
}

/// Runs all phases on a target, and compares each score with the log.
fn scores_follow_from_the_log(target: &[&str], mapping: &str, per_item: [u64; 4]) {
    let dir = tempfile::tempdir().unwrap();
    let outcome = small(
        dir.path(),
        "out",
        &[target, &["--mapping", mapping]].concat(),
    );
    outcome.expect(0, &[]);
    let out = dir.path().join("out");
    let text = fs::read_to_string(out.join("result.txt")).unwrap();
    let sections = sections(&text);
    let logged = log(&out);
    let figure = |section: &str, key: &str| -> f64 {
        sections[section][key]
            .trim_end_matches(" [INVALID]")
            .parse()
            .unwrap()
    };
    let (mut bandwidths, mut rates) = (Vec::new(), Vec::new());
    for (name, phase) in &logged {
        let gib = phase.bytes as f64 / f64::from(1u32 << 30) / phase.seconds();
        let rate = |items: u64| items as f64 / 1000.0 / phase.seconds();
        let [easy_write, hard_write, read, delete] = per_item;
        let (items, per_item) = match name.as_str() {
            "mdtest-easy-write" => (RANKS * EASY_FILES, easy_write),
            "mdtest-easy-stat" => (RANKS * EASY_FILES, 1),
            "mdtest-easy-delete" => (RANKS * EASY_FILES, delete),
            "mdtest-hard-write" => (RANKS * HARD_FILES, hard_write),
            "mdtest-hard-stat" => (RANKS * HARD_FILES, 1),
            "mdtest-hard-read" => (RANKS * HARD_FILES, read),
            "mdtest-hard-delete" => (RANKS * HARD_FILES, delete),
            "find" => (figure("find", "total-files") as u64, 0),
            _ => (0, 0),
        };
        let wanted = match name.as_str() {
            _ if name.starts_with("ior") => {
                bandwidths.push(gib);
                gib
            }
            _ => {
                rates.push(rate(items));
                rate(items)
            }
        };
        let (score, requests) = (figure(name, "score"), figure(name, "requests") as u64);
        assert!(
            (score - wanted).abs() <= 1e-6 + 1e-6 * wanted,
            "{name}: {score} {wanted}"
        );
        if per_item > 0 {
            // On files each rank ends a write phase with a sync, as mdtest -Y does.
            let syncs = match mapping == "files" && name.ends_with("-write") {
                true => RANKS,
                false => 0,
            };
            assert_eq!(phase.requests, items * per_item + syncs, "{name}");
        }
        assert_eq!(requests, phase.requests, "{name}");
    }
    let mean = |all: &[f64]| (all.iter().map(|x| x.ln()).sum::<f64>() / all.len() as f64).exp();
    assert_eq!((bandwidths.len(), rates.len()), (4, 8));
    let (bw, md) = (mean(&bandwidths), mean(&rates));
    for (key, wanted) in [("BW", bw), ("MD", md), ("SCORE", (bw * md).sqrt())] {
        let got = figure("SCORE", key);
        assert!(
            (got - wanted).abs() <= 2e-6 + 1e-5 * wanted,
            "{key}: {got} {wanted}"
        );
    }
    // All data was written, read by another rank, compared, and found.
    let bytes = |name: &str| logged[name].bytes;
    assert_eq!(bytes("ior-easy-write"), RANKS * EASY_TRANSFERS * TRANSFER);
    assert_eq!(bytes("ior-easy-read"), bytes("ior-easy-write"));
    assert_eq!(bytes("ior-hard-write"), RANKS * SEGMENTS * 47_008);
    assert_eq!(bytes("ior-hard-read"), bytes("ior-hard-write"));
    assert_eq!(bytes("mdtest-hard-read"), RANKS * HARD_FILES * 3901);
    let ior = match mapping {
        "files" => RANKS + 1,
        _ => RANKS * (EASY_TRANSFERS + SEGMENTS),
    };
    assert_eq!(
        figure("find", "total-files") as u64,
        ior + RANKS * (EASY_FILES + HARD_FILES)
    );
    // Of 0 to 109, only 101 contains 01.
    assert_eq!(figure("find", "found") as u64, RANKS);
    // Runs that are too short are shown and marked.
    assert!(text.contains("; ERROR INVALID Runtime is smaller than expected minimum runtime"));
    assert!(text.contains("; ERROR INVALID stonewall-time is 60 s instead of 300 s"));
    assert!(sections["SCORE"]["SCORE"].ends_with("[INVALID]"));
    let summary = fs::read_to_string(out.join("result_summary.txt")).unwrap();
    assert_eq!(outcome.stdout, summary);
    assert!(
        summary.contains("[RESULT]                 find"),
        "{summary}"
    );
    // The result file passes its own verification.
    let verify = |args: &[&str]| call(&mut bucketload(&out, args));
    let args = ["io500", "--verify", "result.txt", "--config", "config.ini"];
    let verified = verify(&args);
    assert_eq!(
        (verified.code, verified.stdout.as_str()),
        (1, "[OK] But this is an invalid run!\n")
    );
    fs::write(
        out.join("forged.txt"),
        text.replace("\nMD              = ", "\nMD              = 1"),
    )
    .unwrap();
    verify(&["io500", "--verify", "forged.txt"]).expect(1, &["MD", "hash"]);
    // A second report is identical.
    fs::remove_file(out.join("result.txt")).unwrap();
    call(&mut bucketload(dir.path(), &["report", "out"])).expect(0, &[]);
    assert_eq!(fs::read_to_string(out.join("result.txt")).unwrap(), text);
}

#[test]
fn a_directory_is_scored() {
    let data = tempfile::tempdir().unwrap();
    let target = format!("file://{}", data.path().display());
    scores_follow_from_the_log(&["--target", &target], "files", [1, 1, 1, 1]);
    let left: Vec<_> = fs::read_dir(data.path().join("bucketload"))
        .into_iter()
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_server_is_scored_with_native_and_with_iors_requests() {
    scores_follow_from_the_log(&["--target", "mem:"], "native", [1, 1, 1, 1]);
    scores_follow_from_the_log(&["--target", "mem:"], "ior-libs3-single", [1, 2, 2, 2]);
}

/// Each file is a bucket that the run creates and deletes; foreign buckets stay.
#[test]
fn a_bucket_per_file_is_created_and_deleted() {
    let (dir, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(store.path().join("others")).unwrap();
    fs::write(store.path().join("others/object"), "kept").unwrap();
    let posix = format!("posix:{}", store.path().display());
    let server = Serve::start(&["--store", &posix]);
    let url = server.url();
    let args = [
        "--target",
        "s3://bench",
        "--endpoint-url",
        &url,
        "--create-bucket",
        "--mapping",
        "ior-libs3-bucket-per-file",
        "--set",
        "mdtest-hard.n=40",
    ];
    small(dir.path(), "out", &args).expect(0, &["listing of every bucket"]);
    let logged = log(&dir.path().join("out"));
    let of = |phase: &str| -> Vec<(&str, u64)> {
        let classes = logged[phase].classes.iter();
        classes.map(|(class, n)| (class.as_str(), *n)).collect()
    };
    let (easy, hard) = (RANKS * EASY_FILES, RANKS * 40);
    let (transfers, segments) = (RANKS * EASY_TRANSFERS, RANKS * SEGMENTS);
    for (phase, wanted) in [
        (
            "ior-easy-write",
            vec![("make-bucket", RANKS), ("put", transfers)],
        ),
        (
            "ior-hard-write",
            vec![("make-bucket", 1), ("put", segments)],
        ),
        (
            "ior-hard-read",
            vec![("get", segments), ("head-bucket", RANKS)],
        ),
        ("mdtest-easy-write", vec![("make-bucket", easy)]),
        (
            "mdtest-hard-write",
            vec![("make-bucket", hard), ("put", hard)],
        ),
        (
            "mdtest-hard-read",
            vec![("get", hard), ("head-bucket", hard)],
        ),
        (
            "mdtest-easy-delete",
            vec![("delete-bucket", easy), ("list", easy)],
        ),
        (
            "mdtest-hard-delete",
            vec![("delete", hard), ("delete-bucket", hard), ("list", hard)],
        ),
    ] {
        assert_eq!(of(phase), wanted, "{phase}");
    }
    assert_eq!(logged["ior-easy-read"].bytes, transfers * TRANSFER);
    let keys = &logged["ior-hard-write"].keys;
    assert!(
        keys.iter().any(|key| key.ends_with("-ior-hard-0")),
        "{keys:?}"
    );
    assert!(
        keys.iter()
            .any(|key| key.ends_with("-ior-hard-47008-47008")),
        "{keys:?}"
    );
    let text = fs::read_to_string(dir.path().join("out/result.txt")).unwrap();
    assert!(
        text.contains("mapping         = ior-libs3-bucket-per-file\n"),
        "{text}"
    );
    // Only the bucket that existed before is left.
    let visible = |name: &std::ffi::OsString| !name.to_string_lossy().starts_with('.');
    let left: Vec<_> = fs::read_dir(store.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(visible)
        .collect();
    assert_eq!(left, ["others"]);
    assert_eq!(
        fs::read_to_string(store.path().join("others/object")).unwrap(),
        "kept"
    );
}

/// The figures of the extended phases match the log, and do not change the official score.
#[test]
fn the_extended_mode_has_its_own_score() {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "--target",
        "mem:",
        "--mode",
        "extended",
        "--launch",
        "local:2",
        "--set",
        "mdtest-easy.n=110",
    ];
    small(dir.path(), "out", &args).expect(0, &[]);
    let out = dir.path().join("out");
    let text = fs::read_to_string(out.join("result.txt")).unwrap();
    let (sections, logged) = (sections(&text), log(&out));
    let figure = |section: &str, key: &str| -> f64 {
        let value = sections[section][key].trim_end_matches(" [INVALID]");
        value
            .parse()
            .unwrap_or_else(|_| panic!("{section} {key}: {value}"))
    };
    // For each of 10 sets, a tenth of a rank's files per minute.
    let objects = RANKS * 10 * 11;
    assert_eq!(logged["mdworkbench-create"].requests, objects);
    assert_eq!(logged["mdworkbench-delete"].requests, objects);
    for bench in ["mdworkbench-bench-0", "mdworkbench-bench-1"] {
        let classes = &logged[bench].classes;
        let each: Vec<_> = ["delete", "get", "head", "put"]
            .map(|class| classes[class])
            .to_vec();
        assert_eq!(each, [objects; 4], "{bench}");
        assert_eq!(logged[bench].bytes, 2 * objects * 3901);
    }
    let run = RunDir::open(&out).unwrap();
    let phases = &run.manifest().plan.phases;
    let second = phases
        .iter()
        .position(|phase| phase.name == "mdworkbench-bench-1")
        .unwrap();
    let started = run
        .events()
        .unwrap()
        .0
        .into_iter()
        .find_map(|event| match event {
            Event::PhaseStarted { phase, at_ns } if usize::from(phase) == second => Some(at_ns),
            _ => None,
        });
    let seconds = (logged["mdworkbench-bench-1"].last_ns as u64 - started.unwrap()) as f64 / 1e9;
    let wanted = 4.0 * objects as f64 / 1000.0 / seconds;
    let score = figure("mdworkbench-bench", "score");
    assert!(
        (score - wanted).abs() <= 1e-6 + 1e-6 * wanted,
        "{score} {wanted}"
    );
    assert_eq!(figure("find-easy", "total-files") as u64, RANKS * 110);
    assert_eq!(figure("find-easy", "found") as u64, RANKS);
    assert_eq!(
        figure("find-hard", "total-files") as u64,
        RANKS * HARD_FILES
    );
    assert_eq!(figure("find-hard", "found") as u64, RANKS);
    let all = RANKS * (EASY_TRANSFERS + SEGMENTS + 110 + HARD_FILES) + objects;
    assert_eq!(figure("find", "total-files") as u64, all);
    // There are eleven metadata phases instead of eight.
    let of = |names: &[&str]| {
        let logs = names.iter().map(|name| figure(name, "score").ln());
        (logs.sum::<f64>() / names.len() as f64).exp()
    };
    let official = [
        "mdtest-easy-write",
        "mdtest-hard-write",
        "find",
        "mdtest-easy-stat",
        "mdtest-hard-stat",
        "mdtest-easy-delete",
        "mdtest-hard-read",
        "mdtest-hard-delete",
    ];
    let extended = [
        &official[..],
        &["find-easy", "find-hard", "mdworkbench-bench"],
    ]
    .concat();
    for (section, wanted) in [("SCORE", of(&official)), ("SCOREX", of(&extended))] {
        let got = figure(section, "MD");
        assert!(
            (got - wanted).abs() <= 1e-5 * wanted,
            "{section}: {got} {wanted}"
        );
    }
    let summary = fs::read_to_string(out.join("result_summary.txt")).unwrap();
    assert!(
        summary.contains("(extended)\n") && summary.contains("\n[SCOREX] Bandwidth "),
        "{summary}"
    );
    let verified = call(&mut bucketload(
        &out,
        &["io500", "--verify", "result.txt", "--config", "config.ini"],
    ));
    assert_eq!(
        verified.stdout, "[OK] But this is an invalid run!\n",
        "{}",
        verified.stderr
    );
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    for part in [
        "IO500 scores",
        "total, extended",
        "Notes on all phases",
        "Runtime is smaller than",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let phase = fs::read_to_string(out.join("ior-easy-write.txt")).unwrap();
    assert!(phase.contains("3 ranks, 8 to 8 steps each"), "{phase}");
}

/// With ranks on several agents, the figures match the merged operation log.
#[test]
fn scores_of_agents_match_the_merged_log() {
    let data = tempfile::tempdir().unwrap();
    let target = format!("file://{}", data.path().display());
    let agents = ["--target", &target, "--launch", "local:2"];
    scores_follow_from_the_log(&agents, "files", [1, 1, 1, 1]);
    let agents = ["--target", "mem:", "--launch", "local:3"];
    scores_follow_from_the_log(&agents, "ior-libs3-single", [1, 2, 2, 2]);
}

/// Reads 4 KiB at random positions of the written data until the stonewall, and compares them.
#[test]
fn random_reads_are_reported_without_a_score() {
    let (dir, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = format!("file://{}", data.path().display());
    let mut args = vec!["io500", "--ranks", "3", "--target", &target, "--out", "out"];
    for set in [
        "debug.stonewall-time=1",
        "ior-easy.transferSize=64k",
        "ior-easy.blockSize=512k",
        "ior-easy-read.run=FALSE",
        "ior-hard.run=FALSE",
        "mdtest-easy.run=FALSE",
        "mdtest-hard.run=FALSE",
        "find.run=FALSE",
    ] {
        args.extend(["--set", set]);
    }
    call(&mut bucketload(dir.path(), &args)).expect(0, &[]);
    let text = fs::read_to_string(dir.path().join("out/result.txt")).unwrap();
    let random = &sections(&text)["ior-rnd4K-easy-read"];
    assert!(random["score"].parse::<f64>().unwrap() > 0.0, "{text}");
    assert!(random.contains_key("throughput-stonewall"), "{text}");
    let own = text.split("[ior-rnd4K-easy-read]").nth(1).unwrap();
    let own = own.split("[SCORE]").next().unwrap();
    assert!(!own.contains("INVALID"), "{own}");
}

#[test]
fn ranks_continue_to_the_highest_count() {
    let dir = tempfile::tempdir().unwrap();
    let mut args = vec!["io500", "--ranks", "3", "--target", "null:", "--out", "out"];
    for set in [
        "debug.stonewall-time=1",
        "ior-easy.run=FALSE",
        "ior-hard.run=FALSE",
        "mdtest-hard.run=FALSE",
        "find.run=FALSE",
        "mdtest-easy.n=1000000000",
    ] {
        args.extend(["--set", set]);
    }
    call(&mut bucketload(dir.path(), &args)).expect(0, &["run = FALSE"]);
    let out = dir.path().join("out");
    let counts = |name: &str| -> Vec<u64> {
        let text = fs::read_to_string(out.join(name)).unwrap();
        let (_, rows) = text.split_once("longest-request-seconds\n").unwrap();
        let steps = |line: &str| line.split(' ').nth(1).unwrap().parse().unwrap();
        let rows = rows.lines().take_while(|line| !line.is_empty());
        rows.map(steps).collect()
    };
    let written = counts("mdtest-easy-write.txt");
    assert!(written.len() == 3 && written[0] > 0);
    assert!(written.iter().all(|n| *n == written[0]), "{written:?}");
    // Later phases do as much work as the write phase.
    assert_eq!(counts("mdtest-easy-stat.txt"), written);
    assert_eq!(counts("mdtest-easy-delete.txt"), written);
    let text = fs::read_to_string(out.join("result.txt")).unwrap();
    let sections = sections(&text);
    assert!(sections["mdtest-easy-write"].contains_key("rate-stonewall"));
    let seconds: f64 = sections["mdtest-easy-write"]["t_delta"].parse().unwrap();
    assert!(seconds >= 1.0, "{seconds}");
    assert!(
        text.contains("; ERROR INVALID Not run: [find] run = FALSE"),
        "{text}"
    );
}

#[test]
fn a_failed_request_makes_its_phase_invalid() {
    let server = Serve::start(&[
        "--store",
        "memory",
        "--fault",
        "status=500,op=head,every=50",
    ]);
    let dir = tempfile::tempdir().unwrap();
    let url = server.url();
    let target = [
        "--target",
        "s3://bench",
        "--endpoint-url",
        &url,
        "--create-bucket",
    ];
    let outcome = small(dir.path(), "out", &target);
    assert!(outcome.code == 0 || outcome.code == 1, "{}", outcome.stderr);
    let text = fs::read_to_string(dir.path().join("out/result.txt")).unwrap();
    let stat = text
        .split("[mdtest-hard-stat]")
        .nth(1)
        .unwrap()
        .split("\n\n")
        .next()
        .unwrap();
    assert!(stat.contains("requests failed"), "{stat}");
    let read = text
        .split("[mdtest-hard-read]")
        .nth(1)
        .unwrap()
        .split("\n\n")
        .next()
        .unwrap();
    assert!(!read.contains("INVALID"), "{read}");
}

#[test]
fn impossible_settings_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], words: &[&str]| {
        let all = [&["io500"], args].concat();
        call(&mut bucketload(dir.path(), &all)).expect(2, words);
    };
    refused(
        &["--launch", "local:3", "--ranks", "2", "--target", "null:"],
        &["2 ranks cannot be divided over 3 agents", "--ranks 3"],
    );
    let buckets = ["--target", "mem:", "--mapping", "ior-libs3-bucket-per-file"];
    let many = [
        "--launch",
        "local:2",
        "--ranks",
        "2",
        "--set",
        "mdtest-easy.n=5",
    ];
    refused(&[&buckets[..], &many].concat(), &["a single agent"]);
    refused(&["--target", "mem:", "--mapping", "files"], &["ranges"]);
    refused(
        &["--target", "mem:", "--mode", "wide"],
        &["--mode", "standard or extended"],
    );
    let find = ["--set", "find.nproc=3", "--ranks", "2", "--target", "null:"];
    refused(&find, &["find.nproc = 3", "at most 2"]);
    let half = [
        "--set",
        "mdworkbench.filesPerProc=5",
        "--mode",
        "extended",
        "--target",
        "null:",
    ];
    refused(&half, &["precreatePerSet as well"]);
    fs::write(dir.path().join("x.ini"), "[global]\napi = MPIIO\n").unwrap();
    refused(
        &["--config", "x.ini"],
        &["x.ini: line 2", "POSIX or S3-libs3"],
    );
    refused(&["--verify", "x.ini"], &["MD"]);
    let workload =
        crate::common::workload(dir.path(), "[phases.a]\nmix = { x = { op = \"sync\" } }\n");
    let path = workload.display().to_string();
    call(&mut bucketload(dir.path(), &["run", &path])).expect(2, &["sync"]);
}

/// The volume is said beforehand, and a directory without room for it is refused.
#[test]
fn the_volume_is_said_beforehand_and_needs_room() {
    let dir = tempfile::tempdir().unwrap();
    let target = format!("file://{}", dir.path().display());
    let io500 = |more: &[&str]| {
        let args = [&["io500", "--ranks", "2", "--target", &target], more].concat();
        call(&mut bucketload(dir.path(), &args))
    };
    io500(&["--expect-rate", "1TiB"]).expect(
        2,
        &[
            "writes about",
            "the file system has room for",
            "--set debug.stonewall-time",
        ],
    );
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing was begun"
    );
    let scc = ["--set", "debug.stonewall-time=2", "--expect-rate", "1MiB"];
    // Twice 2 MiB of IOR, and as much of mdtest-hard.
    io500(&[&scc[..], &["--dry-run"]].concat()).expect(
        0,
        &[
            "writes about 6.00 MiB",
            "ior-easy-write 2.00 MiB",
            "mdtest-hard-write 2.00 MiB",
        ],
    );
    let service = ["io500", "--target", "s3://bench", "--dry-run"];
    call(&mut bucketload(dir.path(), &service))
        .expect(0, &["ior-easy-write for 300 s", "--expect-rate"]);
}
