//! Files of IO500 itself: results that it wrote are accepted, its configurations are read as it reads them, and ours
//! are such files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{bucketload, call};

use super::files::sections;

/// The results that IO500 wrote.
fn results() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bucketload-results/tests/io500");
    let all = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let all: Vec<PathBuf> = all.filter(|path| path.is_dir()).collect();
    assert!(all.len() > 10, "{all:?}");
    all
}

#[test]
fn results_of_io500_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let verify = |path: &Path| {
        let path = path.display().to_string();
        call(&mut bucketload(dir.path(), &["io500", "--verify", &path]))
    };
    for result in results() {
        for path in [result.clone(), result.join("result_summary.txt")] {
            let verified = verify(&path);
            assert_eq!(
                (verified.code, verified.stdout.as_str()),
                (1, "[OK] But this is an invalid run!\n"),
                "{}: {}",
                path.display(),
                verified.stderr
            );
        }
        // Another value of an option that the run did not use is another configuration.
        let copy = dir.path().join("copy");
        fs::create_dir_all(&copy).unwrap();
        fs::copy(result.join("result.txt"), copy.join("result.txt")).unwrap();
        let ini = fs::read_to_string(result.join("config.ini")).unwrap();
        let forged = ini.replacen(
            "pfind-queue-length = 10000",
            "pfind-queue-length = 10001",
            1,
        );
        assert_ne!(ini, forged);
        fs::write(copy.join("config.ini"), forged).unwrap();
        verify(&copy).expect(1, &["config-hash"]);
    }
}

#[test]
fn configurations_of_io500_have_its_hash_and_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    for result in results() {
        let name = result.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(result.join("result.txt")).unwrap();
        let recorded = &sections(&text)["run"]["config-hash"];
        let config = result.join("config.ini").display().to_string();
        let io500 = |args: &[&str]| {
            let args = [&["io500", "--config", &config], args].concat();
            call(&mut bucketload(dir.path(), &args))
        };
        let hash = io500(&["--config-hash"]);
        match name.as_str() {
            "odd" => hash.expect(
                2,
                &[
                    "line 22: [ior-easy] filePerProc = FALSE",
                    "[mdtest-hard] files-per-dir = 100",
                ],
            ),
            _ => assert_eq!(
                hash.stdout,
                format!("{recorded}\n"),
                "{name}: {}",
                hash.stderr
            ),
        }
        if name != "odd" && name != "api" {
            let rate = ["--expect-rate", "1MiB", "--ranks", "2", "--dry-run"];
            io500(&rate).expect(0, &["ior-easy-write"]);
        }
    }
}

/// A configuration that holds phases back: the run goes on when the file is gone.
#[test]
fn a_phase_waits_until_its_file_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let pause = dir.path().join("pause");
    fs::create_dir(&pause).unwrap();
    fs::write(pause.join("find"), "").unwrap();
    fs::write(pause.join("timestamp"), "").unwrap();
    fs::write(
        dir.path().join("io500.ini"),
        "[debug]\nstonewall-time = 60\npause-dir = ./pause/\n[ior-easy]\nrun = FALSE\n[mdtest-easy]\nn = 10\n\
         [ior-hard]\nsegmentCount = 10\n[mdtest-hard]\nn = 10\n[find]\nnproc = 1\n",
    )
    .unwrap();
    let args = [
        "io500",
        "--config",
        "io500.ini",
        "--ranks",
        "2",
        "--target",
        "mem:",
        "--out",
        "out",
    ];
    let mut child = bucketload(dir.path(), &args)
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut all = String::new();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    for line in lines {
        let line = line.unwrap();
        for phase in ["timestamp", "find"] {
            if line.contains(&format!("{phase} begins when ./pause/{phase} is removed")) {
                fs::remove_file(pause.join(phase)).unwrap();
            }
        }
        all += &line;
        all.push('\n');
    }
    assert!(child.wait().unwrap().success(), "{all}");
    assert_eq!(fs::read_dir(&pause).unwrap().count(), 0, "{all}");
    let text = fs::read_to_string(dir.path().join("out/result.txt")).unwrap();
    let sections = sections(&text);
    assert!(text.contains("pause-dir is set"), "{text}");
    assert!(sections["SCORE"]["SCORE"].ends_with("[INVALID]"));
    // One rank searched everything: 20 transfers, and 10 files of 2 ranks in 2 trees.
    assert_eq!(sections["find"]["nproc"], "1");
    assert_eq!(sections["find"]["total-files"], "60");
    let csv = fs::read_to_string(dir.path().join("out/find.csv")).unwrap();
    assert_eq!(csv.lines().count(), 3, "{csv}");
}
