//! `bucketload doctor` on other services than S3, on directories, and on this client.

use bucketload_testkit::gcs::FakeGcs;
use bucketload_testkit::http::HttpResponse;
use bucketload_testkit::seaweedfs::FakeSeaweed;
use bucketload_testkit::swift::FakeSwift;
use bucketload_testkit::webhdfs::{Behaviour, FakeWebHdfs};
use serde_json::Value;

use crate::common::{Outcome, bucketload, call};
use crate::doctor::objects;

/// Doctor on another service than S3, with the environment that names it.
fn examine_service(target: &str, env: &[(&str, String)], more: &[&str]) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "doctor",
        target,
        "--create-bucket",
        "--no-calibration",
        "--json",
    ];
    let mut command = bucketload(dir.path(), &[&args, more].concat());
    call(command.envs(env.iter().map(|(name, value)| (name, value))))
}

/// The check `id` of a report.
fn check<'r>(report: &'r Value, id: &str) -> &'r Value {
    let mut checks = report["checks"].as_array().unwrap().iter();
    let found = checks.find(|check| check["id"] == id);
    found.unwrap_or_else(|| panic!("no check {id}: {report:#}"))
}

/// A target, the environment that names its service, and checks that work there.
type Service<'a> = (&'a str, Vec<(&'a str, String)>, &'a [&'a str]);

#[test]
fn services_other_than_s3_are_examined_operation_by_operation() {
    let swift = FakeSwift::start();
    let (gcs, seaweed) = (FakeGcs::start(|_| true), FakeSeaweed::start());
    let hdfs = FakeWebHdfs::start(Behaviour::default());
    let auth = format!("http://{}/auth/v1.0", swift.address);
    let services: [Service<'_>; 5] = [
        (
            "swift://desk/p",
            vec![
                ("ST_AUTH", auth),
                ("ST_USER", "test:tester".to_owned()),
                ("ST_KEY", "testing".to_owned()),
            ],
            &[
                "multipart",
                "delete-many",
                "copied",
                "sign-in",
                "list-v1-paging",
            ],
        ),
        (
            "gs://desk/p",
            vec![
                ("STORAGE_EMULATOR_HOST", format!("http://{}", gcs.addr)),
                ("GOOGLE_CLOUD_PROJECT", "desk".to_owned()),
            ],
            &[
                "multipart",
                "put-if-absent",
                "delete-many",
                "copied",
                "list-paging",
            ],
        ),
        (
            "seaweedfs://desk/p",
            vec![("SEAWEEDFS_FILER_URL", format!("http://{}", seaweed.filer))],
            &["append", "renamed", "tagging", "list-paging"],
        ),
        (
            "webhdfs://desk/p",
            vec![("HADOOP_USER_NAME", "me".to_owned())],
            &[
                "append",
                "renamed",
                "put-if-absent",
                "touch",
                "list-paging",
                "room",
            ],
        ),
        (
            "file://",
            vec![],
            &[
                "append",
                "renamed",
                "put-if-absent",
                "multipart",
                "room",
                "rename",
                "fsync",
            ],
        ),
    ];
    for (target, mut env, works) in services {
        let dir = tempfile::tempdir().unwrap();
        let mut more = Vec::new();
        let mut target = target.to_owned();
        if target.starts_with("webhdfs") {
            more.extend(["--endpoint-url", &hdfs.url]);
        }
        if target == "file://" {
            target = format!("file://{}", dir.path().display());
            env.clear();
        }
        let outcome = examine_service(&target, &env, &more);
        let report: Value = serde_json::from_str(&outcome.stdout)
            .unwrap_or_else(|e| panic!("{target}: {e}\n{}\n{}", outcome.stdout, outcome.stderr));
        let always = [
            "bucket",
            "put",
            "write",
            "get",
            "range",
            "range-end",
            "head",
            "list",
            "list-order",
            "keys",
            "delete",
            "deleted",
            "delete-missing",
            "read-after-overwrite",
        ];
        for id in always.iter().chain(works) {
            assert_eq!(
                check(&report, id)["state"],
                "ok",
                "{target}: {id}: {report:#}"
            );
        }
        assert!(report["left"].is_null(), "{target}: {report:#}");
        assert!(objects(dir.path()).is_empty());
    }
    let master = format!("http://{}", seaweed.master);
    let more = ["--seaweedfs-mode", "master", "--endpoint-url", &master];
    let report = examine_service("seaweedfs://ids/p", &[], &more).json();
    let room = check(&report, "room");
    assert_eq!(room["state"], "ok", "{report:#}");
    assert!(
        room["found"]
            .as_str()
            .unwrap()
            .starts_with("5 volumes free: the master has 9"),
        "{room}"
    );
    assert!(gcs.names("desk").is_empty());
    assert_eq!(swift.names("desk"), None);
}

#[test]
fn swift_that_refuses_the_key_is_told_apart_from_swift_that_is_not_there() {
    let swift = FakeSwift::start();
    let user = |key: &str, auth: String| {
        vec![
            ("ST_AUTH", auth),
            ("ST_USER", "test:tester".to_owned()),
            ("ST_KEY", key.to_owned()),
        ]
    };
    let auth = format!("http://{}/auth/v1.0", swift.address);
    let refused = examine_service("swift://desk/p", &user("not-this-one", auth), &[]);
    refused.expect(3, &[]);
    let report = refused.json();
    assert_eq!(check(&report, "connect")["state"], "ok");
    assert_eq!(check(&report, "sign-in")["state"], "failed", "{report:#}");
    assert!(
        !refused.stdout.contains("not-this-one"),
        "{}",
        refused.stdout
    );
    let closed = "http://127.0.0.1:1/auth/v1.0".to_owned();
    let absent = examine_service("swift://desk/p", &user("testing", closed), &[]);
    absent.expect(3, &[]);
    assert_eq!(check(&absent.json(), "connect")["state"], "failed");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let missing = examine_service("file:///no-such-directory", &[], &[]);
    missing.expect(3, &[]);
    assert_eq!(check(&missing.json(), "file-system")["state"], "failed");
}

#[test]
fn a_dialect_that_would_say_nothing_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let files = format!("file://{}", dir.path().display());
    let args = [
        "doctor",
        &files,
        "--write-dialect",
        "d.toml",
        "--no-calibration",
    ];
    let outcome = call(&mut bucketload(dir.path(), &args));
    assert!(
        outcome
            .stderr
            .contains("d.toml is not written: file:// has no settings"),
        "{}",
        outcome.stderr
    );
    assert!(!dir.path().join("d.toml").exists());
}

#[test]
fn dialects_of_other_services_hold_their_settings() {
    let dir = tempfile::tempdir().unwrap();
    let show = |target: &str, dialect: &str| {
        std::fs::write(
            dir.path().join("d.toml"),
            format!("[settings]\n{dialect}\n"),
        )
        .unwrap();
        let args = ["config", "show", "--target", target, "--dialect", "d.toml"];
        let mut command = bucketload(dir.path(), &args);
        command
            .env("AZURE_STORAGE_ACCOUNT", "desk")
            .env("AZURE_STORAGE_KEY", "a2V5");
        command.env("GOOGLE_OAUTH_ACCESS_TOKEN", "t");
        call(&mut command)
    };
    for (target, dialect, shown) in [
        (
            "az://desk",
            "azure-api-version = \"2021-12-02\"",
            "2021-12-02",
        ),
        ("gs://desk", "gcs-large-object = \"compose\"", "compose"),
        ("seaweedfs://desk", "seaweedfs-mode = \"master\"", "master"),
        ("libs3://desk", "addressing = \"virtual\"", "virtual"),
    ] {
        let outcome = show(target, dialect);
        outcome.expect(0, &[]);
        let line = outcome.stdout.lines().find(|line| line.contains(shown));
        assert!(
            line.is_some_and(|line| line.contains("dialect d.toml:2")),
            "{target}: {}",
            outcome.stdout
        );
    }
    show("gs://desk", "azure-api-version = \"2021-12-02\"")
        .expect(2, &["d.toml:2", "gs:// targets cannot set it"]);
    show("az://desk", "azure-api-version = \"2015-02-21\"").expect(2, &["d.toml:2", "2020-12-06"]);
}

#[test]
fn this_clients_own_limit_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["doctor", "mem:", "--json"];
    let report = call(&mut bucketload(dir.path(), &args)).json();
    let client = check(&report, "client");
    let said = client["found"].as_str().unwrap();
    assert!(
        said.starts_with("at most ")
            && said.contains("reads of 64 KiB a second")
            && said.contains("by HTTP")
            && said.contains("limit: "),
        "{said}"
    );
    assert_eq!(check(&report, "room")["state"], "not-tried");
    let without = [&args[..], &["--no-calibration"]].concat();
    let report = call(&mut bucketload(dir.path(), &without)).json();
    assert!(
        report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|c| c["id"] != "client")
    );
}

#[test]
fn an_older_azure_is_asked_for_a_version_that_it_knows() {
    // It knows no version after 2021-12-02, and lets nobody write.
    let address = bucketload_testkit::http::serve(|request| {
        let refused =
            |status, code: &str| HttpResponse::new(status, "").with("x-ms-error-code", code);
        match request.header("x-ms-version") {
            "" => refused(403, "AuthenticationFailed"),
            version if version > "2021-12-02" => refused(400, "InvalidHeaderValue"),
            _ if request.method == "PUT" => refused(403, "AuthorizationPermissionMismatch"),
            _ => HttpResponse::new(200, ""),
        }
    });
    let env = [
        ("AZURE_STORAGE_ACCOUNT", "desk".to_owned()),
        ("AZURE_STORAGE_KEY", "a2V5".to_owned()),
    ];
    let url = format!("http://{address}");
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "doctor",
        "az://box",
        "--endpoint-url",
        &url,
        "--json",
        "--write-dialect",
        "d.toml",
    ];
    let outcome = call(bucketload(dir.path(), &args).envs(env.iter().map(|(n, v)| (n, v))));
    outcome.expect(3, &[]);
    let report = outcome.json();
    let bucket = check(&report, "bucket");
    assert_eq!(bucket["state"], "differs", "{report:#}");
    assert_eq!(
        bucket["setting"],
        serde_json::json!(["azure-api-version", "2021-12-02"])
    );
    assert_eq!(check(&report, "put")["state"], "failed");
    let dialect = std::fs::read_to_string(dir.path().join("d.toml")).unwrap();
    assert!(
        dialect.contains("[settings]\nazure-api-version = \"2021-12-02\""),
        "{dialect}"
    );
    // The user's own choice stands.
    let own = [&args[..], &["--azure-api-version", "2023-01-03"]].concat();
    let outcome = call(bucketload(dir.path(), &own).envs(env.iter().map(|(n, v)| (n, v))));
    assert_eq!(check(&outcome.json(), "bucket")["state"], "failed");
}
