//! Runs of COSBench workloads: the samples on the embedded server, refusals, untouched objects, the archive.

use std::path::{Path, PathBuf};

use crate::common::{ACCESS_KEY, Outcome, SECRET_KEY, Serve, bucketload, call};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bucketload-cosbench/tests/samples")
}

/// Samples that COSBench rejects.
const BROKEN: [&str; 1] = ["librados-sample-annotated.xml"];

fn run(dir: &Path, file: &str, args: &[&str]) -> Outcome {
    let mut all = vec!["run", file, "--no-calibration", "--threads", "1"];
    all.extend_from_slice(args);
    call(&mut bucketload(dir, &all))
}

/// The sample in `dir`, with its placeholder for a directory replaced.
fn prepared(dir: &Path, name: &str) -> String {
    let text = std::fs::read_to_string(samples().join(name)).unwrap();
    let files = dir.join("files");
    std::fs::create_dir_all(&files).unwrap();
    for (file, len) in [("a.bin", 100), ("b.bin", 5000), ("c.bin", 1)] {
        std::fs::write(files.join(file), vec![7; len]).unwrap();
    }
    let local = dir.join("local");
    std::fs::create_dir_all(&local).unwrap();
    // The directory in the sample is shared by all users.
    let text = text.replace("files=/tmp", &format!("files={}", local.display()));
    let text = text.replace("files=FILES", &format!("files={}", files.display()));
    std::fs::write(dir.join(name), text).unwrap();
    name.to_owned()
}

#[test]
fn every_well_formed_sample_runs_to_its_end_on_the_embedded_server() {
    let dir = tempfile::tempdir().unwrap();
    let local = dir.path().join("local");
    let mut ran = 0;
    let mut names: Vec<String> = std::fs::read_dir(samples())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for (index, name) in names
        .iter()
        .enumerate()
        .filter(|(_, n)| !BROKEN.contains(&n.as_str()))
    {
        let file = prepared(dir.path(), name);
        let out = format!("run-{index}");
        let mut args = vec![
            "--target", "mem:", "--out", &out, "--quiet", "--output", "json",
        ];
        match name.as_str() {
            // Pauses are cut to the duration.
            "delay-stage-config-sample.xml" => args.extend(["--duration", "1s", "--size", "1KiB"]),
            // Ranges lie in objects of the stated size.
            "sio-config-range-sample.xml" => args.extend(["--ops", "20"]),
            // Unchanged.
            "sio-config-smoke-test.xml" => {}
            "sio-config-sample.xml" => {
                args.extend(["--ops", "20", "--size", "1KiB"]);
                args.extend(["--allow-local-writes", local.to_str().unwrap()]);
            }
            "asus.xml" => args.extend(["--duration", "1s"]),
            "filewriter-config.xml" => {}
            _ => args.extend(["--ops", "100", "--size", "1KiB"]),
        }
        let outcome = run(dir.path(), &file, &args);
        // The embedded server archives nothing, so a stage of restores fails. As in COSBench, later stages still run.
        let restores = name == "sio-config-smoke-test.xml";
        assert_eq!(
            outcome.code,
            i32::from(restores),
            "{name}\n{}\n{}",
            outcome.stdout,
            outcome.stderr
        );
        let result = outcome.json();
        let failed = |phase: &serde_json::Value| phase["totals"]["failed"].as_u64().unwrap();
        for phase in result["phases"].as_array().unwrap() {
            // Deletions make later reads fail, which these samples allow.
            let allowed = name.starts_with("zmanda") && phase["name"] == "main";
            let refused = if restores && phase["name"] == "restore" {
                10
            } else {
                0
            };
            assert!(allowed || failed(phase) == refused, "{name}: {phase}");
        }
        ran += 1;
    }
    assert_eq!(ran, 31);
    let written =
        |container: &str| std::fs::read_dir(local.join(container)).map_or(0, Iterator::count);
    assert!(written("sio-config-1") + written("sio-config-2") > 0);
}

/// Local files are written only where that is allowed, and never replace existing files.
#[test]
fn local_writes_must_be_allowed() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["files", "other"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let serve = Serve::start(&[]);
    let files = dir.path().join("files");
    let write = |config: &str| {
        let stage = format!(
            "<workstage name=\"local\"><work name=\"l\" workers=\"2\" totalOps=\"12\"><operation \
             type=\"localwrite\" config=\"containers=r(1,2);objects=s(1,6);sizes=c(2)KB;{config}\"/></work></workstage>"
        );
        std::fs::write(dir.path().join("w.xml"), workload(&s3(&serve), &stage)).unwrap();
    };
    let own = format!("files={}", files.display());
    write(&own);
    run(dir.path(), "w.xml", &[]).expect(
        2,
        &["line 1, column ", "not allowed", "--allow-local-writes"],
    );
    run(dir.path(), "w.xml", &["--allow-local-writes", "other"])
        .expect(2, &["is not inside other"]);
    run(
        dir.path(),
        "w.xml",
        &["--allow-local-writes", "files", "--dry-run"],
    )
    .expect(0, &[]);
    assert_eq!(std::fs::read_dir(&files).unwrap().count(), 0);
    let outcome = run(
        dir.path(),
        "w.xml",
        &["--allow-local-writes", ".", "--output", "json"],
    );
    outcome.expect(0, &["writes files below"]);
    assert_eq!(outcome.json()["phases"][0]["totals"]["ok"], 12);
    for container in 1..=2 {
        for object in 1..=6 {
            let file = files.join(format!("mycontainers{container}/myobjects{object}"));
            assert_eq!(std::fs::metadata(file).unwrap().len(), 2000);
        }
    }
    run(dir.path(), "w.xml", &["--allow-local-writes", "."])
        .expect(2, &["could replace", "--delete-named"]);
    run(
        dir.path(),
        "w.xml",
        &["--allow-local-writes", ".", "--delete-named"],
    )
    .expect(0, &[]);
    write(&format!("{own};cprefix=../x"));
    run(dir.path(), "w.xml", &["--allow-local-writes", "."]).expect(2, &["cannot contain `/`"]);
}

#[test]
fn malformed_workloads_are_refused_with_the_place() {
    let dir = tempfile::tempdir().unwrap();
    for name in BROKEN {
        let file = prepared(dir.path(), name);
        let outcome = run(dir.path(), &file, &["--target", "mem:"]);
        outcome.expect(2, &["line 8, column ", "XML"]);
    }
}

#[test]
fn unsupported_storages_are_refused_with_place_reason_and_remedy() {
    let dir = tempfile::tempdir().unwrap();
    for (name, words) in [
        (
            "librados-config-sample.xml",
            ["line 3, column 3", "RADOS", "--target"],
        ),
        (
            "cdmi-base-config-sample.xml",
            ["line 4, column 3", "no driver", "--target"],
        ),
        (
            "sproxyd-config-sample.xml",
            ["line 3, column 3", "no driver", "--endpoint-url"],
        ),
        (
            "ampli-config-sample.xml",
            ["line 7, column ", "has another storage", "--target"],
        ),
        (
            "sio-config-prefetch-sample.xml",
            ["line 4, column ", "prefetch", "--target"],
        ),
    ] {
        let file = prepared(dir.path(), name);
        let outcome = run(dir.path(), &file, &["--dry-run"]);
        outcome.expect(2, &words);
    }
}

fn workload(storage: &str, stages: &str) -> String {
    format!("<workload name=\"w\">{storage}<workflow>{stages}</workflow></workload>")
}

fn s3(serve: &Serve) -> String {
    format!(
        "<storage type=\"s3\" config=\"accesskey={ACCESS_KEY};secretkey={SECRET_KEY};\
         endpoint=http://{};path_style_access=true\"/>",
        serve.address
    )
}

const FILL: &str = "<workstage name=\"init\"><work type=\"init\" workers=\"1\" config=\"cprefix=own-;containers=r(1,2)\"/>\
     </workstage><workstage name=\"prepare\"><work type=\"prepare\" workers=\"2\" \
     config=\"cprefix=own-;containers=r(1,2);objects=r(1,5);sizes=c(1)KB\"/></workstage>";
const EMPTY: &str = "<workstage name=\"cleanup\"><work type=\"cleanup\" workers=\"2\" \
     config=\"cprefix=own-;containers=r(1,2);objects=r(1,5)\"/></workstage>\
     <workstage name=\"dispose\"><work type=\"dispose\" workers=\"1\" config=\"cprefix=own-;containers=r(1,2)\"/></workstage>";

/// A run deletes only what it created, unless the user allows more.
#[test]
fn existing_objects_are_neither_replaced_nor_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&[]);
    let write = |name: &str, stages: &str| {
        std::fs::write(dir.path().join(name), workload(&s3(&serve), stages)).unwrap();
    };
    write("fill.xml", FILL);
    write("empty.xml", EMPTY);
    write("both.xml", &format!("{FILL}{EMPTY}"));
    write(
        "read.xml",
        "<workstage name=\"read\"><work name=\"r\" workers=\"1\" totalOps=\"5\"><operation type=\"read\" \
         config=\"cprefix=own-;containers=c(2);objects=s(1,5)\"/></work></workstage>",
    );
    run(dir.path(), "both.xml", &[]).expect(0, &[]);
    run(dir.path(), "fill.xml", &[]).expect(0, &[]);
    // The objects now belong to another run.
    run(dir.path(), "fill.xml", &[]).expect(2, &["own-1", "holds `myobjects", "--delete-named"]);
    run(dir.path(), "empty.xml", &[]).expect(2, &["own-1", "would be deleted", "--delete-named"]);
    run(dir.path(), "both.xml", &[]).expect(2, &["--delete-named"]);
    run(dir.path(), "read.xml", &[]).expect(0, &[]);
    run(dir.path(), "empty.xml", &["--delete-named"]).expect(0, &[]);
    // Nothing is left to read, so the stage fails, and the exit code says so.
    run(dir.path(), "read.xml", &[]).expect(1, &[]);
}

/// Keys in the XML reach the server, and nothing else.
#[test]
fn secrets_stay_in_the_workload_file() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(&[]);
    let text = workload(&s3(&serve), &format!("{FILL}{EMPTY}"));
    std::fs::write(dir.path().join("w.xml"), text).unwrap();
    let args = [
        "run",
        "w.xml",
        "--no-calibration",
        "--out",
        "run",
        "--cosbench-artifacts",
        "archive",
    ];
    let mut command = bucketload(dir.path(), &args);
    command
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY");
    let outcome = call(&mut command);
    outcome.expect(0, &[]);
    let mut texts = vec![outcome.stdout, outcome.stderr];
    let mut dirs = vec![dir.path().join("run"), dir.path().join("archive")];
    while let Some(next) = dirs.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => dirs.push(path),
                false => {
                    texts.push(String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned())
                }
            }
        }
    }
    assert!(texts.len() > 10);
    assert!(texts.iter().all(|text| !text.contains(SECRET_KEY)));
}

const MAIN: &str = "<workstage name=\"main\"><work name=\"main\" workers=\"2\" totalOps=\"40\">\
     <operation type=\"read\" ratio=\"50\" config=\"cprefix=own-;containers=u(1,2);objects=u(1,5)\"/>\
     <operation type=\"write\" ratio=\"50\" config=\"cprefix=own-;containers=u(1,2);objects=u(1,5);sizes=c(1)KB\"/>\
     </work></workstage><workstage name=\"delay\" closuredelay=\"1\"><work type=\"delay\"/></workstage>";

#[test]
fn the_archive_has_cosbenchs_files() {
    let dir = tempfile::tempdir().unwrap();
    let text = workload("<storage type=\"mock\"/>", &format!("{FILL}{MAIN}{EMPTY}"));
    std::fs::write(dir.path().join("w.xml"), text).unwrap();
    for strict in [false, true] {
        let out = format!("run-{strict}");
        let mut args = vec!["--out", &out, "--cosbench-artifacts", "archive"];
        if strict {
            args.extend(["--compat", "strict"]);
        }
        run(dir.path(), "w.xml", &args).expect(0, &["COSBench's artifacts: archive/w"]);
    }
    let report = ["report", "run-false", "--cosbench-artifacts", "archive"];
    call(&mut bucketload(dir.path(), &report)).expect(0, &["archive/w3-w"]);
    let read = |name: &str| std::fs::read_to_string(dir.path().join("archive").join(name)).unwrap();
    assert_eq!(read(".meta"), "3");
    let history = read("run-history.csv");
    assert_eq!(history.lines().count(), 4);
    for (line, id) in history.lines().skip(1).zip(["w1", "w2", "w3"]) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!((cells[0], cells[1]), (id, "w"));
        assert_eq!(
            (cells[5], cells[6]),
            ("init prepare read write cleanup dispose", "finished")
        );
    }
    let rows = |number: u32| -> Vec<Vec<String>> {
        let text = read(&format!("w{number}-w/w{number}-w.csv"));
        let lines = text
            .lines()
            .map(|l| l.split(',').map(str::to_owned).collect());
        lines.skip(1).collect()
    };
    let firsts: Vec<String> = rows(1)
        .iter()
        .map(|r| format!("{} {}", r[0], r[1]))
        .collect();
    assert_eq!(
        firsts,
        [
            "s1-init init-write",
            "s2-prepare prepare-write",
            "s3-main read",
            "s3-main write",
            "delay N/A",
            "s5-cleanup cleanup-delete",
            "s6-dispose dispose-delete"
        ]
    );
    // Reports of the same run are identical whenever they are written.
    let without_number = |number: u32| rows(number);
    assert_eq!(without_number(1), without_number(3));
    let count = |number: u32, row: usize| rows(number)[row][3].parse::<u64>().unwrap();
    assert_eq!((count(1, 0), count(1, 1)), (2, 10));
    assert_eq!(count(1, 2) + count(1, 3), 40);
    // COSBench has no samples of init and dispose.
    assert_eq!((count(2, 0), count(2, 6)), (0, 0));
    assert_eq!(rows(2)[0][5], "N/A");
    for row in rows(1) {
        assert_eq!(row[16], "completed", "{row:?}");
    }
    let names: Vec<String> = {
        let mut names: Vec<String> = std::fs::read_dir(dir.path().join("archive/w1-w"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    for wanted in [
        "driver1.csv",
        "s3-main.csv",
        "s3-main-worker.csv",
        "workload-config.xml",
        "workload.log",
    ] {
        assert!(names.iter().any(|name| name == wanted), "{names:?}");
    }
    let histogram = read("w1-w/w1-w-rt-histogram.csv");
    assert_eq!(histogram.lines().count(), 50_002);
    assert!(histogram.starts_with("ResTime,s3-main-w1-main-read,(%),s3-main-w1-main-write,(%)\n"));
    // B8: the timeline adds up to the totals.
    let timeline = read("w1-w/s3-main.csv");
    let sum = |column: usize| -> u64 {
        let cells = timeline
            .lines()
            .skip(2)
            .map(|line| line.split(',').nth(column).unwrap());
        cells.map(|cell| cell.parse::<u64>().unwrap()).sum()
    };
    assert_eq!((sum(1), sum(2)), (count(1, 2), count(1, 3)));
}

/// `hashCheck`: an object carries COSBench's checksum, which any reader can verify.
#[test]
fn objects_with_hash_check_end_with_a_checksum_that_reveals_corruption() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    std::fs::create_dir(&root).unwrap();
    let store = format!("posix:{}", root.display());
    let serve = Serve::start(&["--store", &store]);
    let special = |kind: &str, config: &str| {
        format!(
            "<workstage name=\"{kind}\"><work type=\"{kind}\" workers=\"2\" \
             config=\"cprefix=hash-;{config}\"/></workstage>"
        )
    };
    let fill = [
        special("init", "containers=r(1,2)"),
        special(
            "prepare",
            "containers=r(1,1);objects=r(1,9);sizes=u(100,900)B;hashCheck=true",
        ),
    ];
    let plain = special("prepare", "containers=r(2,2);objects=r(1,9);sizes=u(1,2)KB");
    let read = |container: u32| {
        format!(
            "<workstage name=\"read\"><work name=\"r\" workers=\"2\" totalOps=\"18\"><operation type=\"read\" \
             config=\"cprefix=hash-;containers=c({container});objects=s(1,9);hashCheck=true\"/></work></workstage>"
        )
    };
    let write = |name: &str, serve: &Serve, stages: &str| {
        std::fs::write(dir.path().join(name), workload(&s3(serve), stages)).unwrap();
    };
    write("fill.xml", &serve, &[fill.concat(), plain].concat());
    run(dir.path(), "fill.xml", &["--seed", "1"]).expect(0, &[]);
    // The checksum replaces the last 40 bytes.
    let mut found = 0;
    for entry in std::fs::read_dir(root.join("hash-1")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let (_, trailer) = bytes.split_at(bytes.len() - 40);
        assert!((100..=900).contains(&bytes.len()));
        assert!(trailer.starts_with(b"!!!!") && trailer.ends_with(b"!!!!"));
        assert!(trailer[4..36].iter().all(u8::is_ascii_hexdigit));
        found += 1;
    }
    assert_eq!(found, 9);
    // Another run with another seed does not know sizes and contents.
    write("read.xml", &serve, &read(1));
    let outcome = run(dir.path(), "read.xml", &["--seed", "2"]);
    outcome.expect(0, &[]);
    assert!(!outcome.stderr.contains("hashCheck"), "{}", outcome.stderr);
    write("read2.xml", &serve, &read(2));
    run(dir.path(), "read2.xml", &[]).expect(0, &["without a checksum"]);
    // Corruption in transit.
    drop(serve);
    let serve = Serve::start(&["--store", &store, "--fault", "corrupt,op=get"]);
    write("read.xml", &serve, &read(1));
    let damaged = run(dir.path(), "read.xml", &["--output", "json"]);
    damaged.expect(1, &["what the checksum at its end says"]);
    let totals = &damaged.json()["phases"][0]["totals"];
    assert_eq!(
        (totals["ok"].as_u64(), totals["failed"].as_u64()),
        (Some(0), Some(18))
    );
}

/// Triggers run only from an allowed directory: with their arguments before the stage, with -k after it.
#[test]
fn triggers_run_where_they_are_allowed() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let scripts = dir.join("scripts");
    std::fs::create_dir(&scripts).unwrap();
    let script = scripts.join("watch.sh");
    // The first call goes on during the stage, as a monitor does.
    let text = "#!/bin/sh\necho \"got $*\"\n[ \"$1\" = -k ] || exec sleep 1000\n";
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let stage = "<workstage name=\"init\" trigger=\"watch.sh(a,b c)\"><work type=\"init\" workers=\"1\" \
                 config=\"containers=r(1,1)\"/></workstage>\
                 <workstage name=\"dispose\" trigger=\"absent.sh\"><work type=\"dispose\" workers=\"1\" \
                 config=\"containers=r(1,1)\"/></workstage>";
    let write = |stage: &str| std::fs::write(dir.join("w.xml"), workload(MOCK, stage)).unwrap();
    write(stage);
    run(dir, "w.xml", &["--target", "mem:", "--dry-run"])
        .expect(0, &["triggers are not run", "--allow-triggers DIR"]);
    let allowed = ["--target", "mem:", "--allow-triggers", "scripts"];
    run(dir, "w.xml", &[&allowed[..], &["--dry-run"]].concat())
        .expect(2, &["trigger of stage `dispose`", "absent.sh"]);
    write(&stage.replace(" trigger=\"absent.sh\"", ""));
    let began = std::time::Instant::now();
    run(dir, "w.xml", &[&allowed[..], &["--out", "out"]].concat()).expect(0, &[]);
    assert!(
        began.elapsed() < std::time::Duration::from_secs(60),
        "the monitor was ended"
    );
    let log = std::fs::read_to_string(dir.join("out/scripts.log")).unwrap();
    let said: Vec<&str> = log.lines().filter(|line| line.starts_with("got")).collect();
    assert_eq!(said, ["got a b c", "got -k"], "{log}");
    // A script that fails ends the run.
    std::fs::write(&script, "#!/bin/sh\necho broken\nexit 3\n").unwrap();
    run(dir, "w.xml", &[&allowed[..], &["--out", "failed"]].concat())
        .expect(4, &["watch.sh failed (exit status: 3)", "scripts.log"]);
}

const MOCK: &str = "<storage type=\"mock\"/>";
