//! `bucketload s3-hpc` from the user's view, with the rows that need no library.

use crate::common::{bucketload, call};

#[test]
fn the_rows_are_compared_in_one_report() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("objects");
    let out = dir.path().join("study");
    let (root, out) = (root.to_str().unwrap(), out.to_str().unwrap());
    let row = format!("again=--target file://{root} --posix-io threads");
    let args = [
        "s3-hpc",
        "--root",
        root,
        "--rows",
        "posix,http",
        "--row",
        &row,
        "--sizes",
        "1KiB,20KiB",
        "--objects",
        "30",
        "--max-bytes",
        "100KiB",
        "--repetitions",
        "1",
        "--verify",
        "--output",
        "json",
        "--out",
        out,
    ];
    let outcome = call(&mut bucketload(dir.path(), &args));
    outcome.expect(0, &["bucketload: posix 1.00 KiB P=1 run 1: write"]);
    let result = outcome.json();
    let rows = ["posix", "http", "again", "tcp", "rest"];
    for (size, objects) in [(1024, 30), (20_480, 5)] {
        for row in rows {
            let cells = result["cells"].as_array().unwrap();
            let cell = cells
                .iter()
                .find(|c| c["row"] == row && c["size_bytes"] == size)
                .unwrap();
            let steps = cell["figures"].as_array().unwrap();
            let names: Vec<_> = steps.iter().map(|s| s["step"].as_str().unwrap()).collect();
            match row {
                "tcp" => assert_eq!(names, ["write", "read", "stat"]),
                "rest" => assert_eq!(names, ["write", "read", "stat", "delete"]),
                _ => assert_eq!(names, ["write", "read", "stat", "list", "delete"], "{row}"),
            }
            for step in steps {
                assert_eq!(step["failed"], 0, "{row} {step}");
                assert!(step["ops_per_s"].as_f64().unwrap() > 0.0, "{row} {step}");
            }
        }
        let trials = std::fs::read_to_string(dir.path().join("study/trials.jsonl")).unwrap();
        let mut of_size = trials
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .filter(|trial| trial["size_bytes"] == size && trial["row"] == "http");
        let trial = of_size.next().unwrap();
        assert_eq!(trial["steps"][0]["ok"], objects);
        assert_eq!(trial["steps"][0]["bytes"], objects * size);
        assert!(
            dir.path()
                .join("study")
                .join(trial["dir"].as_str().unwrap())
                .join("report.html")
                .is_file()
        );
    }
    // Every row deleted the objects that it created.
    let objects = std::fs::read_dir(dir.path().join("objects")).unwrap();
    let left: Vec<_> = objects.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        left.iter()
            .all(|name| name.to_string_lossy().starts_with(".bucketload")),
        "{left:?}"
    );
    // The directory leads to the same report again, as text.
    let again = call(&mut bucketload(dir.path(), &["report", out]));
    again.expect(0, &[]);
    assert!(
        again.stdout.contains("20.0 KiB x 5, 1 process"),
        "{}",
        again.stdout
    );
}

#[test]
fn impossible_rows_are_refused_before_anything_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], words: &[&str]| {
        let mut all = vec!["s3-hpc", "--root", "objects"];
        all.extend(args);
        call(&mut bucketload(dir.path(), &all)).expect(2, words);
    };
    refused(
        &["--library", "/nowhere/libs3.so.4"],
        &["/nowhere/libs3.so.4", "--rows posix,http"],
    );
    refused(
        &["--rows", "posix", "--row", "posix=--target mem:"],
        &["two rows named \"posix\""],
    );
    refused(
        &["--rows", "posix", "--row", "=--target mem:"],
        &["NAME='--target URL"],
    );
    refused(&["--rows", "posix", "--sizes", "big"], &["--sizes"]);
    let target = call(&mut bucketload(
        dir.path(),
        &[
            "run",
            "put",
            "--target",
            "libs3://b",
            "--libs3-library",
            "libc.so.6",
        ],
    ));
    target.expect(
        2,
        &["libc.so.6: this is not a libs3 library: it has no S3_initialize"],
    );
    let flag = call(&mut bucketload(
        dir.path(),
        &["run", "put", "--target", "s3://b", "--libs3-library", "x"],
    ));
    flag.expect(2, &["--libs3-library does not apply to s3://"]);
}
