//! Every mistake of a user gets a clear message and the documented exit code.

use std::fs;
use std::net::TcpListener;

use crate::common::{Serve, bucketload, call, workload};

/// A short `bucketload run put` against `url`, with further arguments.
fn run(dir: &std::path::Path, url: &str, more: &[&str]) -> crate::common::Outcome {
    let base = [
        "run",
        "put",
        "--size",
        "1KiB",
        "--workers",
        "2",
        "--ops",
        "50",
        "--target",
        "s3://bench/t",
        "--endpoint-url",
        url,
    ];
    call(&mut bucketload(dir, &[&base, more].concat()))
}

#[test]
fn a_wrong_key_is_named() {
    let (dir, server) = (
        tempfile::tempdir().unwrap(),
        Serve::start(&["--store", "memory"]),
    );
    let args = [
        "run",
        "put",
        "--target",
        "s3://bench/t",
        "--create-bucket",
        "--endpoint-url",
        &server.url(),
    ];
    call(bucketload(dir.path(), &args).env("AWS_SECRET_ACCESS_KEY", "wrong-but-long-enough"))
        .expect(3, &["SignatureDoesNotMatch"]);
    let outcome = call(bucketload(dir.path(), &args).env("AWS_ACCESS_KEY_ID", "nobody"));
    outcome.expect(3, &["InvalidAccessKeyId"]);
    assert!(!format!("{}{}", outcome.stdout, outcome.stderr).contains(crate::common::SECRET_KEY));
}

#[test]
fn a_wrong_region_is_named_with_the_right_one() {
    let (dir, server) = (
        tempfile::tempdir().unwrap(),
        Serve::start(&["--store", "memory"]),
    );
    run(
        dir.path(),
        &server.url(),
        &["--create-bucket", "--region", "eu-north-9"],
    )
    .expect(3, &["region", "us-east-1"]);
}

#[test]
fn a_closed_port_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("http://127.0.0.1:{port}");
    run(dir.path(), &url, &[]).expect(3, &["refused", &port.to_string()]);
}

/// Whether the program under test includes the library of `hdfs://`, as a build of the whole workspace does.
fn has_hdfs() -> bool {
    bucketload::REGISTRY.by_scheme("hdfs").is_some()
}

#[test]
fn a_build_without_hdfs_says_where_to_get_it() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["run", "put", "--target", "hdfs://127.0.0.1:1/data/t"];
    let (code, words): (_, &[&str]) = match has_hdfs() {
        true => (3, &["hdfs://127.0.0.1:1", "refused"]),
        false => (2, &["hdfs://", "package", "--features hdfs", "webhdfs://"]),
    };
    call(&mut bucketload(dir.path(), &args)).expect(code, words);
}

#[test]
fn a_name_node_that_is_down_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = closed.local_addr().unwrap().to_string();
    drop(closed);
    let schemes: &[&str] = match has_hdfs() {
        true => &["webhdfs", "hdfs"],
        false => &["webhdfs"],
    };
    for scheme in schemes {
        let target = format!("{scheme}://{server}/data/t");
        let args = ["run", "put", "--ops", "5", "--target", &target];
        call(&mut bucketload(dir.path(), &args)).expect(3, &["127.0.0.1", "refused"]);
    }
    let target = format!("webhdfs://{server}/data");
    let args = [
        "run",
        "put",
        "--target",
        &target,
        "--endpoint-url",
        "http://h:1",
    ];
    call(&mut bucketload(dir.path(), &args)).expect(2, &["--endpoint-url", "omit one of them"]);
    let args = ["run", "put", "--target", &target, "--checksum", "crc32"];
    call(&mut bucketload(dir.path(), &args)).expect(2, &["--checksum", "webhdfs://"]);
}

#[test]
fn an_expired_certificate_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = expired_certificate(dir.path());
    let server = Serve::start(&["--store", "memory", "--tls-cert", &cert, "--tls-key", &key]);
    let url = format!("https://{}", server.address);
    let ca = ["--ca-bundle", cert.as_str(), "--create-bucket"];
    run(dir.path(), &url, &ca).expect(3, &["expired"]);
    run(dir.path(), &url, &["--create-bucket"]).expect(3, &["certificate"]);
    run(dir.path(), &url, &["--no-verify-ssl", "--create-bucket"]).expect(0, &[]);
}

fn expired_certificate(dir: &std::path::Path) -> (String, String) {
    let mut params =
        rcgen::CertificateParams::new(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2020, 2, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    let cert = params.self_signed(&key).unwrap();
    let paths = (dir.join("cert.pem"), dir.join("key.pem"));
    fs::write(&paths.0, cert.pem()).unwrap();
    fs::write(&paths.1, key.serialize_pem()).unwrap();
    (
        paths.0.to_string_lossy().into_owned(),
        paths.1.to_string_lossy().into_owned(),
    )
}

#[test]
fn a_full_store_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory", "--fault", "full,after=20KiB"]);
    run(dir.path(), &server.url(), &["--create-bucket"]).expect(1, &["full", "507"]);
}

#[test]
fn a_run_on_a_full_store_ends_early_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory", "--fault", "full,after=1MiB"]);
    let args = [
        "run",
        "put",
        "--size",
        "1KiB",
        "--workers",
        "4",
        "--duration",
        "10m",
        "--target",
        "s3://bench/t",
        "--create-bucket",
        "--no-calibration",
        "--endpoint-url",
        &server.url(),
    ];
    let begun = std::time::Instant::now();
    let outcome = call(&mut bucketload(
        dir.path(),
        &[&args[..], &["--output", "json"]].concat(),
    ));
    outcome.expect(
        1,
        &[
            "nearly all operations of phase `run` fail",
            "max-failed=100%",
            "507",
        ],
    );
    assert!(begun.elapsed().as_secs() < 300, "{:?}", begun.elapsed());
    let result = outcome.json();
    let phases = result["phases"].as_array().unwrap();
    let measured = phases.iter().find(|phase| phase["kind"] == "run").unwrap();
    assert_eq!(measured["end"], "failing");
    assert_eq!(result["verdict"]["word"], "DEGRADED");
    let reason = &result["verdict"]["reasons"][0];
    assert_eq!(reason["rule"], "V7");
    let said = reason["measured"].as_str().unwrap();
    assert!(
        said.contains("of them with `full`") && said.contains("ended early"),
        "{said}"
    );
}

#[test]
fn a_refused_run_leaves_no_directory_behind() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let refused = |more: &[&str]| {
        run(dir.path(), &server.url(), more).expect(3, &["--create-bucket"]);
    };
    refused(&[]);
    refused(&["--out", "named"]);
    refused(&["--out", "named", "--op-log"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    // A directory that was there before stays, empty.
    fs::create_dir(dir.path().join("mine")).unwrap();
    refused(&["--out", "mine"]);
    assert_eq!(fs::read_dir(dir.path().join("mine")).unwrap().count(), 0);
    // The next attempt is not refused because of the first.
    run(
        dir.path(),
        &server.url(),
        &["--create-bucket", "--out", "named"],
    )
    .expect(0, &[]);
}

#[test]
fn measurements_of_several_runs_that_are_refused_leave_no_directory_behind() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let url = server.url();
    let refused = |verb: &[&str], out: &[&str]| {
        let target = ["--target", "s3://absent/x", "--endpoint-url", &url];
        let args = [verb, &target[usize::from(verb[0] == "compare") * 2..], out].concat();
        call(&mut bucketload(dir.path(), &args)).expect(3, &["--create-bucket"]);
    };
    let verbs: [&[&str]; 4] = [
        &["capacity", "get", "--slo", "p99<1s", "--quick"],
        &["sweep", "get", "--over", "workers=1,2"],
        &[
            "compare",
            "s3://absent/a",
            "s3://absent/b",
            "--workload",
            "get",
        ],
        &["study-grid", "--processes", "1", "--no-floor"],
    ];
    for verb in verbs {
        refused(verb, &[]);
        refused(verb, &["--out", "named"]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{verb:?}");
        fs::create_dir(dir.path().join("mine")).unwrap();
        refused(verb, &["--out", "mine"]);
        assert_eq!(
            fs::read_dir(dir.path().join("mine")).unwrap().count(),
            0,
            "{verb:?}"
        );
        fs::remove_dir(dir.path().join("mine")).unwrap();
    }
}

#[test]
fn a_target_is_saved_and_used_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let server = Serve::start(&["--store", "memory"]);
    let say = |args: &[&str], code: i32, words: &[&str]| {
        let outcome = call(&mut bucketload(dir.path(), args));
        outcome.expect(code, &[]);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        for word in words {
            assert!(
                said.contains(word),
                "{args:?} does not say {word:?}: {said}"
            );
        }
        assert!(!said.contains(crate::common::SECRET_KEY), "{said}");
    };
    let url = server.url();
    let init = [
        "init",
        "desk",
        "--target",
        "s3://bench/t",
        "--endpoint-url",
        &url,
    ];
    say(&["init", "--list"], 0, &["no target is saved"]);
    say(
        &init,
        0,
        &[
            "saved @desk in ~/.config/bucketload/targets.toml",
            "NOT READY: bucket: `bench`: 404 NoSuchBucket",
            "doctor @desk --create-bucket",
            "run online-service --objects 2000 --target @desk --create-bucket",
        ],
    );
    say(&init, 2, &["@desk is saved already", "--replace"]);
    say(&[&init[..], &["--replace"]].concat(), 0, &["saved @desk"]);
    say(
        &["init", "--list"],
        0,
        &["@desk  s3://bench/t --endpoint-url http://127.0.0.1:"],
    );
    say(
        &[
            "run",
            "put",
            "--ops",
            "5",
            "--target",
            "@desk",
            "--create-bucket",
            "--keep",
        ],
        0,
        &["s3://bench/t"],
    );
    say(
        &["cleanup", "--target", "@desk", "--dry-run"],
        0,
        &["bench/t/bucketload-"],
    );
    say(&["init", "new"], 2, &["without a terminal"]);
    say(&["init", "--target", "s3://b"], 2, &["init desk"]);
    let saved = fs::read_to_string(dir.path().join(".config/bucketload/targets.toml")).unwrap();
    assert!(
        !saved.contains(crate::common::SECRET_KEY) && !saved.contains(crate::common::ACCESS_KEY)
    );
}

#[test]
fn a_lost_acknowledged_write_is_found_with_check_writes() {
    let dir = tempfile::tempdir().unwrap();
    let lossy = [
        "--store",
        "memory",
        "--fault",
        "lost,op=put,every=10,count=2",
    ];
    let server = Serve::start(&lossy);
    run(dir.path(), &server.url(), &["--create-bucket"]).expect(0, &[]);
    let server = Serve::start(&lossy);
    let checking = ["--create-bucket", "--check-writes", "--output", "json"];
    let outcome = run(dir.path(), &server.url(), &checking);
    outcome.expect(1, &["the write was acknowledged, but reading it back"]);
    let result = outcome.json();
    let phases = result["phases"].as_array().unwrap();
    let measured = phases.iter().find(|phase| phase["kind"] == "run").unwrap();
    assert_eq!(measured["totals"]["ok"], 48);
    assert_eq!(measured["totals"]["failed"], 2);
    // Checking overwrites by many workers is up to the oracle.
    let keys = "phases.run.mix.put.keys=uniform";
    let args = ["run", "mixed", "--check-writes", "--set", keys];
    call(&mut bucketload(dir.path(), &args)).expect(2, &["--check-writes", "--oracle"]);
    let args = ["run", "put", "--target", "null:", "--check-writes"];
    call(&mut bucketload(dir.path(), &args)).expect(2, &["--check-writes"]);
}

#[test]
fn a_run_in_which_most_operations_fail_is_not_a_success() {
    let dir = tempfile::tempdir().unwrap();
    // The store accepts the marker and 20 of 50 objects.
    let fault = ["--store", "memory", "--fault", "status=503,op=put,after=21"];
    let server = Serve::start(&fault);
    let outcome = run(dir.path(), &server.url(), &["--create-bucket"]);
    outcome.expect(1, &[]);
    let failed = "FAILED: share of failed operations 60";
    assert!(outcome.stdout.contains(failed), "{}", outcome.stdout);
    // A workload can allow such failures.
    let server = Serve::start(&fault);
    let allow = ["--create-bucket", "--set", "phases.run.max-failed=95%"];
    run(dir.path(), &server.url(), &allow).expect(0, &[]);
}

#[test]
fn a_bucket_that_does_not_exist_is_named_with_the_remedy() {
    let (dir, server) = (
        tempfile::tempdir().unwrap(),
        Serve::start(&["--store", "memory"]),
    );
    run(dir.path(), &server.url(), &[]).expect(3, &["bench", "--create-bucket"]);
}

#[test]
fn a_malformed_workload_is_shown_with_line_and_column() {
    let dir = tempfile::tempdir().unwrap();
    let path = workload(dir.path(), "name = \"x\"\nseed = [1,\n");
    let path = path.to_string_lossy();
    call(&mut bucketload(dir.path(), &["run", &path])).expect(2, &["workload.toml:", "seed"]);
}

#[test]
fn an_unknown_workload_and_an_unknown_field_get_a_suggestion() {
    let dir = tempfile::tempdir().unwrap();
    call(&mut bucketload(dir.path(), &["run", "online-servise"])).expect(2, &["online-service"]);
    let path = workload(dir.path(), "name = \"x\"\nsede = 3\n");
    call(&mut bucketload(
        dir.path(),
        &["run", &path.to_string_lossy()],
    ))
    .expect(2, &["sede", "seed"]);
}

#[test]
fn an_impossible_mix_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    call(&mut bucketload(
        dir.path(),
        &["run", "mixed", "--mix", "get=0,put=0"],
    ))
    .expect(2, &["mix"]);
    call(&mut bucketload(
        dir.path(),
        &["run", "mixed", "--mix", "got=1"],
    ))
    .expect(2, &["got"]);
}

#[test]
fn a_rate_of_zero_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    call(&mut bucketload(
        dir.path(),
        &["run", "online-service", "--rate", "0"],
    ))
    .expect(2, &["--rate"]);
}

#[test]
fn an_unknown_option_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    call(&mut bucketload(
        dir.path(),
        &["run", "put", "--worker", "3"],
    ))
    .expect(2, &["--workers"]);
}

#[test]
fn an_output_directory_that_exists_is_never_overwritten() {
    let (dir, server) = (
        tempfile::tempdir().unwrap(),
        Serve::start(&["--store", "memory"]),
    );
    run(
        dir.path(),
        &server.url(),
        &["--create-bucket", "--out", "out"],
    )
    .expect(0, &[]);
    run(dir.path(), &server.url(), &["--out", "out"]).expect(2, &["out"]);
}
