//! Reads of parts by their number from the user's view.

use std::path::Path;

use crate::common::{Outcome, bucketload, call, workload};

const PARTS: &str = r#"
name = "parts"

[keysets.data]
count = 3
size = "uniform(5MiB, 12MiB)"
part-size = "5MiB"

[phases.run]
ops = 60
workers = 2
keyset = "data"
mix = { get-part = 2, head-part = 1 }
"#;

fn run(dir: &Path, target: &str, more: &[&str]) -> Outcome {
    let file = workload(dir, PARTS);
    let file = file.to_string_lossy().into_owned();
    let args = ["run", &file, "--target", target, "--no-calibration"];
    let form = ["--threads", "1", "--output", "json"];
    call(&mut bucketload(dir, &[&args[..], &form, more].concat()))
}

#[test]
fn parts_are_read_and_judged() {
    let dir = tempfile::tempdir().unwrap();
    for judge in ["--verify", "--oracle"] {
        let outcome = run(dir.path(), "mem:", &[judge]);
        outcome.expect(0, &[]);
        let result = outcome.json();
        let classes = result["phases"][1]["classes"].as_array().unwrap();
        let of = |class| classes.iter().filter(move |row| row["class"] == class);
        let ok = |class| {
            of(class)
                .map(|row| row["ok"].as_u64().unwrap())
                .sum::<u64>()
        };
        assert!(ok("get-part") > 20 && ok("head-part") > 5, "{classes:?}");
        assert_eq!(ok("get-part") + ok("head-part"), 60);
    }
}

#[test]
fn parts_that_nobody_knows_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let set = |text: &str| run(dir.path(), "mem:", &["--set", text]);
    set("phases.run.mix={get-part={weight=1,keys=\"latest\"},put=1}").expect(
        2,
        &["phases.run.mix.get-part.keys", "`latest`", "use uniform"],
    );
    set("phases.run.mix={get-part=1,put={weight=1,keys=\"uniform\"}}").expect(
        2,
        &[
            "overwrites objects of key set `data`",
            "write to fresh keys",
        ],
    );
    set("phases.run.mix={get-part={weight=1,part-size=\"5MiB\"}}")
        .expect(2, &["`get-part` has no `part-size`"]);
    set("keysets.data.prepare=false")
        .expect(2, &["needs objects that preparation uploads in parts"]);
    let directory = dir.path().join("files");
    std::fs::create_dir(&directory).unwrap();
    let target = format!("file://{}", directory.display());
    run(dir.path(), &target, &[]).expect(2, &["get-part"]);
}
