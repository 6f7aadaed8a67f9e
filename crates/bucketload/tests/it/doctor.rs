//! `bucketload doctor` from the user's view: each fault of a server is named, and no other.

use std::path::Path;

use serde_json::Value;

use crate::common::{Outcome, Serve, bucketload, call};

/// Each quirk of the embedded server, and the checks that must name it.
const QUIRKS: [(&str, &[&str], i32); 47] = [
    ("clock-ahead", &["clock"], 3),
    ("wrong-region", &["region"], 1),
    ("no-keep-alive", &["keep-alive"], 1),
    ("slow-answers", &["round-trip"], 1),
    ("list-v2-refused", &["list-v2"], 1),
    ("list-v2-ignored", &["list-v2"], 1),
    ("list-v1-refused", &["list-v1"], 1),
    ("list-incomplete", &["list-complete"], 1),
    ("list-unsorted", &["list-order"], 1),
    ("list-max-keys-ignored", &["list-max-keys"], 1),
    ("list-paging-broken", &["list-paging"], 1),
    ("list-delimiter-ignored", &["list-delimiter"], 1),
    ("list-encoding-ignored", &["list-encoding"], 1),
    ("list-stale", &["list-after-write"], 1),
    ("read-stale", &["read-after-overwrite"], 1),
    ("read-short", &["get"], 1),
    ("range-ignored", &["range"], 1),
    ("suffix-range-refused", &["range-suffix"], 1),
    ("range-no-416", &["range-unsatisfiable"], 1),
    ("put-if-none-match-ignored", &["put-if-none-match"], 1),
    ("put-if-none-match-refused", &["put-if-none-match"], 1),
    ("put-if-match-ignored", &["put-if-match"], 1),
    ("append-offset-ignored", &["append"], 1),
    ("get-conditions-ignored", &["get-conditions"], 1),
    ("multipart-refused", &["multipart-create"], 1),
    ("multipart-forgotten", &["multipart-part"], 1),
    ("multipart-abort-refused", &["multipart-abort"], 1),
    ("multipart-list-parts-refused", &["multipart-list-parts"], 1),
    ("chunked-trailers-refused", &["checksum-trailer"], 1),
    ("checksums-ignored", &["checksum"], 1),
    ("content-md5-ignored", &["content-md5"], 1),
    ("payload-hash-ignored", &["payload-hash"], 1),
    ("delete-many-refused", &["delete-many"], 1),
    ("delete-many-silent", &["delete-many"], 1),
    ("delete-missing-404", &["delete-missing"], 1),
    ("copy-refused", &["copy"], 1),
    ("tagging-refused", &["tagging"], 1),
    ("tagging-overwrites", &["tagging"], 1),
    ("metadata-dropped", &["metadata"], 1),
    ("head-refused", &["head"], 1),
    ("keys-mangled", &["keys"], 1),
    ("errors-without-xml", &["errors"], 1),
    ("put-denied", &["put"], 3),
    ("list-denied", &["list"], 3),
    ("delete-denied", &["delete"], 3),
    ("etag-missing", &["etag"], 1),
    ("date-missing", &["clock"], 1),
];

/// A server over `store`, which starts with the empty bucket `desk`.
fn serve(store: &Path, quirk: &str) -> Serve {
    std::fs::create_dir_all(store.join("desk")).unwrap();
    let store = format!("posix:{}", store.display());
    let mut args = vec!["--store", store.as_str()];
    if !quirk.is_empty() {
        args.extend(["--quirk", quirk]);
    }
    Serve::start(&args)
}

/// Calls doctor; the region comes from no environment variable, so that a dialect may set it.
fn doctor(dir: &Path, url: &str, more: &[&str]) -> Outcome {
    let args = [
        "doctor",
        "s3://desk/p",
        "--endpoint-url",
        url,
        "--no-calibration",
    ];
    call(bucketload(dir, &[&args, more].concat()).env_remove("AWS_REGION"))
}

/// The checks that differ or failed.
fn named(report: &Value) -> Vec<&str> {
    let checks = report["checks"].as_array().unwrap();
    let wrong = checks
        .iter()
        .filter(|c| c["state"] == "differs" || c["state"] == "failed");
    wrong.map(|c| c["id"].as_str().unwrap()).collect()
}

/// Every file below the bucket's directory that holds an object or an upload.
pub(crate) fn objects(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(dir) else {
        return found;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(objects(&path)),
            false => found.push(path.display().to_string()),
        }
    }
    found
}

fn examine(quirk: &str, checks: &[&str], code: i32) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let server = serve(&store, quirk);
    let outcome = doctor(dir.path(), &server.url(), &["--json"]);
    let told = format!(
        "{quirk}: exit {}\n{}\n{}",
        outcome.code, outcome.stderr, outcome.stdout
    );
    let report: Value = serde_json::from_str(&outcome.stdout).map_err(|_| told.clone())?;
    if named(&report) != checks || outcome.code != code {
        return Err(format!("wanted {checks:?} and {code}; {told}"));
    }
    let left = objects(&store.join("desk"));
    // Without the right to delete, the objects stay, and the report says so.
    if left.is_empty() == (quirk == "delete-denied") || left.is_empty() == report["left"].is_array()
    {
        return Err(format!("left: {left:?}; {told}"));
    }
    Ok(())
}

#[test]
fn each_fault_is_named_and_no_other() {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let wrong = std::sync::Mutex::new(Vec::new());
    // Half of the faults are about waiting, so several at once take no longer.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some((quirk, checks, code)) = QUIRKS.get(i) else {
                        return;
                    };
                    if let Err(error) = examine(quirk, checks, *code) {
                        wrong.lock().unwrap().push(error);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        QUIRKS.len(),
        wrong.join("\n\n")
    );
}

#[test]
fn every_quirk_of_the_server_is_in_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let help = call(&mut bucketload(dir.path(), &["serve", "--help"])).stdout;
    let (_, about) = help.split_once("--quirk <NAME>").unwrap();
    let lines = about.lines().map(str::trim);
    let values = lines.take_while(|line| !line.starts_with("--"));
    let mut known: Vec<&str> = values
        .filter_map(|line| Some(line.strip_prefix("- ")?.split_once(':')?.0))
        .collect();
    let mut table: Vec<&str> = QUIRKS.iter().map(|(quirk, ..)| *quirk).collect();
    known.sort_unstable();
    table.sort_unstable();
    assert_eq!(table, known);
}

#[test]
fn a_store_without_faults_is_ready() {
    let dir = tempfile::tempdir().unwrap();
    let files = dir.path().join("files");
    std::fs::create_dir(&files).unwrap();
    let files_url = format!("file://{}", files.display());
    let served = format!("serve://{}", dir.path().join("served").display());
    for target in ["mem:", &files_url, &served] {
        let outcome = call(&mut bucketload(dir.path(), &["doctor", "-t", target]));
        outcome.expect(0, &[]);
        let first = outcome.stdout.lines().next().unwrap();
        assert_eq!(first, "READY: a run works here as is");
    }
    assert!(objects(&files).is_empty());
    assert!(objects(&dir.path().join("served/bucketload")).is_empty());
}

#[test]
fn a_missing_bucket_is_created_only_if_that_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let missing = doctor(dir.path(), &server.url(), &[]);
    missing.expect(3, &[]);
    assert!(
        missing
            .stdout
            .starts_with("NOT READY: bucket: `desk`: 404 NoSuchBucket"),
        "{}",
        missing.stdout
    );
    assert!(
        missing.stdout.contains("--create-bucket"),
        "{}",
        missing.stdout
    );
    doctor(dir.path(), &server.url(), &["--create-bucket"]).expect(0, &[]);
    // It was deleted again.
    doctor(dir.path(), &server.url(), &[]).expect(3, &[]);
}

#[test]
fn wrong_keys_show_both_sides_of_the_signature_and_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let args = ["doctor", "s3://desk", "--endpoint-url", &server.url()];
    let wrong = call(bucketload(dir.path(), &args).env("AWS_SECRET_ACCESS_KEY", "not-this-one"));
    wrong.expect(3, &[]);
    for words in [
        "NOT READY: signature: 403 SignatureDoesNotMatch",
        "our canonical request",
        "list-type=2&max-keys=1",
    ] {
        assert!(wrong.stdout.contains(words), "{}", wrong.stdout);
    }
    assert!(!wrong.stdout.contains("not-this-one"));
    let unknown = call(bucketload(dir.path(), &args).env("AWS_ACCESS_KEY_ID", "nobody0000"));
    assert!(
        unknown.stdout.contains("signature: 403 InvalidAccessKeyId"),
        "{}",
        unknown.stdout
    );
}

#[test]
fn ports_certificates_and_names_that_do_not_fit_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let issue = |name: &str, ends: (i32, u8, u8)| {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(ends.0, ends.1, ends.2);
        let cert = params.self_signed(&key).unwrap();
        std::fs::write(at(&format!("{name}.pem")), cert.pem()).unwrap();
        std::fs::write(at(&format!("{name}.key")), key.serialize_pem()).unwrap();
        let (pem, key) = (at(&format!("{name}.pem")), at(&format!("{name}.key")));
        Serve::start(&["--store", "memory", "--tls-cert", &pem, "--tls-key", &key])
    };
    let plain = Serve::start(&["--store", "memory"]);
    let good = issue("good", (2090, 1, 1));
    let expired = issue("expired", (2021, 1, 1));
    let port = |server: &Serve| server.address.rsplit(':').next().unwrap().to_owned();
    let (good_pem, expired_pem) = (at("good.pem"), at("expired.pem"));
    let cases: [(String, &[&str], &[&str]); 6] = [
        (
            format!("https://localhost:{}", port(&plain)),
            &[],
            &["NOT READY: tls:", "write http://"],
        ),
        (
            format!("http://localhost:{}", port(&good)),
            &[],
            &["NOT READY: tls:", "write https://"],
        ),
        (
            format!("https://localhost:{}", port(&good)),
            &["--ca-bundle", &expired_pem],
            &["NOT READY: tls:", "--ca-bundle FILE", "2090-01-01"],
        ),
        (
            format!("https://localhost:{}", port(&expired)),
            &["--ca-bundle", &expired_pem],
            &["NOT READY: tls:", "expired", "ended 2021-01-01"],
        ),
        (
            "http://127.0.0.1:1".to_owned(),
            &[],
            &["NOT READY: connect:", "firewall"],
        ),
        (
            "http://no-such-host.invalid:9000".to_owned(),
            &[],
            &["NOT READY: resolve:", "/etc/hosts"],
        ),
    ];
    for (url, more, words) in cases {
        let outcome = doctor(dir.path(), &url, more);
        outcome.expect(3, &[]);
        for word in words {
            assert!(
                outcome.stdout.contains(word),
                "{url}: no {word:?}\n{}",
                outcome.stdout
            );
        }
    }
    let url = format!("https://localhost:{}", port(&good));
    let trusted = doctor(
        dir.path(),
        &url,
        &["--ca-bundle", &good_pem, "--create-bucket"],
    );
    trusted.expect(0, &[]);
    assert!(
        trusted.stdout.contains("TLSv1_3") && trusted.stdout.contains("resumes sessions"),
        "{}",
        trusted.stdout
    );
}

#[test]
fn init_examines_the_store_and_saves_its_dialect() {
    let dir = tempfile::tempdir().unwrap();
    let server = serve(&dir.path().join("store"), "copy-refused");
    let url = server.url();
    let say = |args: &[&str], code: i32, words: &[&str]| {
        let outcome = call(&mut bucketload(dir.path(), args));
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert_eq!(outcome.code, code, "{args:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{args:?}: {word:?}: {said}");
        }
        said
    };
    let at = ["--target", "s3://desk/p", "--endpoint-url"];
    let init = |name: &'static str, url: &str, more: &[&'static str]| -> Vec<String> {
        let words = [&["init", name][..], &at, &[url], more].concat();
        words.into_iter().map(str::to_owned).collect()
    };
    let said = |words: Vec<String>, code: i32, expected: &[&str]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        say(&words, code, expected)
    };
    // What no run could use is not saved.
    let bare = url.trim_start_matches("http://");
    let refused = said(
        init("desk", bare, &[]),
        2,
        &["has no scheme", "nothing was saved"],
    );
    assert!(!refused.contains("saved @desk"), "{refused}");
    // The doctor's answer, what differs, and the next command.
    let told = said(
        init("desk", &url, &[]),
        0,
        &[
            "READY with this dialect: copy differs",
            "-> leave copy out",
            "saved its dialect in ~/.config/bucketload/desk.dialect.toml",
            "next:\n  bucketload run online-service --objects 2000 --target @desk\n",
        ],
    );
    assert!(!told.contains("ok    "), "{told}");
    let list = say(&["init", "--list"], 0, &["desk.dialect.toml"]);
    assert!(list.contains("@desk  s3://desk/p --dialect /"), "{list}");
    // The name stands for the dialect too.
    let run = ["run", "smoke", "--target", "@desk", "--no-calibration"];
    say(
        &run,
        2,
        &["copy", "desk.dialect.toml:", "run without the dialect"],
    );
    // Nobody asked: nothing is sent.
    let told = said(
        init("quiet", "http://127.0.0.1:9", &["--no-doctor"]),
        0,
        &["saved @quiet", "doctor @quiet"],
    );
    assert!(!told.contains("READY"), "{told}");
    // A dialect of one's own is kept, with its whole path.
    std::fs::write(dir.path().join("mine.toml"), "[refused]\nhead = \"no\"\n").unwrap();
    said(
        init("own", &url, &["--dialect", "mine.toml"]),
        0,
        &["saved @own"],
    );
    let own = format!("--dialect {}/mine.toml", dir.path().display());
    say(&["init", "--list"], 0, &[&own]);
    assert!(
        !dir.path()
            .join(".config/bucketload/own.dialect.toml")
            .exists()
    );
    std::fs::remove_file(dir.path().join("mine.toml")).unwrap();
    say(
        &["run", "put", "--target", "@own"],
        2,
        &["targets.toml [own]: dialect: ", "mine.toml", "--replace"],
    );
}

#[test]
fn a_dialect_makes_runs_work_and_refuses_what_the_store_cannot_do() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    std::fs::create_dir_all(store.join("desk")).unwrap();
    let posix = format!("posix:{}", store.display());
    let server = Serve::start(&[
        "--store",
        &posix,
        "--quirk",
        "wrong-region",
        "--quirk",
        "copy-refused",
    ]);
    let url = server.url();
    let told = doctor(dir.path(), &url, &["--write-dialect", "desk.toml"]);
    told.expect(1, &[]);
    assert!(
        told.stdout
            .starts_with("READY with this dialect: region, copy differ"),
        "{}",
        told.stdout
    );
    let run = |what: &str, more: &[&str]| {
        let args = [
            "run",
            what,
            "--target",
            "s3://desk/p",
            "--endpoint-url",
            &url,
            "--no-calibration",
            "--quiet",
        ];
        call(bucketload(dir.path(), &[&args, more].concat()).env_remove("AWS_REGION"))
    };
    let short = ["--ops", "20", "--size", "1KiB", "--objects", "10"];
    let with = [&short[..], &["--dialect", "desk.toml", "--out", "run"]].concat();
    assert_ne!(run("put", &short).code, 0);
    run("put", &with).expect(0, &[]);
    let manifest = std::fs::read_to_string(dir.path().join("run/run.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let region = manifest["settings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["name"] == "region");
    assert_eq!(region.unwrap()["value"], "eu-quirk-1");
    let source = region.unwrap()["source"].as_str().unwrap();
    assert!(source.starts_with("dialect desk.toml:"), "{source}");
    // Flags and variables precede the dialect.
    let args = [
        "config",
        "show",
        "--target",
        "s3://desk",
        "--dialect",
        "desk.toml",
    ];
    let shown = call(&mut bucketload(dir.path(), &args));
    assert!(shown.stdout.contains("(AWS_REGION)"), "{}", shown.stdout);
    let refused = run("smoke", &["--dialect", "desk.toml", "--out", "refused"]);
    refused.expect(2, &["copy", "desk.toml:", "501"]);
    std::fs::write(dir.path().join("bad.toml"), "[settings]\nregoin = \"x\"\n").unwrap();
    let bad = run("put", &["--dialect", "bad.toml"]);
    bad.expect(
        2,
        &["bad.toml:2: [settings] regoin", "did you mean `region`?"],
    );
    let args = ["doctor", "mem:", "--dialect", "desk.toml"];
    call(&mut bucketload(dir.path(), &args)).expect(2, &["--dialect"]);
}

/// What the doctor writes of a store that appends lets a workload append; without it, the workload is refused.
#[test]
fn a_dialect_says_that_a_store_appends() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let server = serve(&store, "");
    let url = server.url();
    doctor(dir.path(), &url, &["--write-dialect", "desk.toml"]).expect(0, &[]);
    let dialect = std::fs::read_to_string(dir.path().join("desk.toml")).unwrap();
    assert!(
        dialect.ends_with("\n[settings]\nappend = \"write-offset\"\n"),
        "{dialect}"
    );
    let workload = "[keysets.data]\ncount = 4\nsize = \"1KiB\"\nprepare = false\n\
                    [phases.run]\nops = 40\nworkers = 1\nmix.append = { keys = \"uniform\" }\n";
    std::fs::write(dir.path().join("append.toml"), workload).unwrap();
    let run = |more: &[&str]| {
        let args = [
            "run",
            "append.toml",
            "--target",
            "s3://desk/p",
            "--endpoint-url",
            &url,
            "--no-calibration",
            "--quiet",
            "--keep",
        ];
        call(&mut bucketload(dir.path(), &[&args, more].concat()))
    };
    run(&[]).expect(2, &["append", "--append write-offset"]);
    let mut bytes = 0;
    for (way, value) in [("--dialect", "desk.toml"), ("--append", "write-offset")] {
        run(&[way, value]).expect(0, &[]);
        bytes += 40 << 10;
        let paths = objects(&store.join("desk"));
        let is_mark = |path: &&String| path.rsplit('/').next().unwrap().starts_with('.');
        let found: u64 = paths
            .iter()
            .filter(|path| !is_mark(path))
            .map(|path| std::fs::metadata(path).unwrap().len())
            .sum();
        assert_eq!(found, bytes, "{way}: {paths:?}");
    }
}
