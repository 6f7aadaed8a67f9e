//! The placement of the objects of a study's cells: looked up on servers that the study started, reported as load per
//! data node, and included in its evidence. The store is a stand-in with the ring of a Swift cluster of three
//! devices.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Outcome, bucketload, call, operations};
use bucketload_drivers::placement::ring::{HashPath, Ring};
use bucketload_study::journal::read;
use bucketload_study::model::{JournalLine, Placement, TargetFacts};

const STUDY: &str = r#"
name = "spread"
title = "Spread"
seed = 3
repetitions = 2
recovery = "0s"
settle = "0s"
[[target]]
name = "ring"
server = "swift"
api = "s3"
[[target]]
name = "broken"
server = "ceph"
[[target]]
name = "memory"
url = "mem:"
[[experiment]]
name = "hot"
workload = "hotspot"
estimate = "1s"
[experiment.options]
objects = 60
no-calibration = true
threads = 1
set = [
  "phases.uniform.rate=1000/s", "phases.zipf.rate=1000/s", "phases.zipf-mandelbrot.rate=1000/s",
  "phases.uniform.duration=500ms", "phases.zipf.duration=500ms", "phases.zipf-mandelbrot.duration=500ms",
]
[[experiment.figure]]
kind = "load-balance"
[[experiment.table]]
kind = "load-balance"
"#;

/// A script like those of clusters, with state in SERVERS_HOME and the commands `start` and `clean`.
const SCRIPT: &str = r#"#!/bin/sh
state="$SERVERS_HOME"
case "$1" in
start)
  mkdir -p "$state"
  BUCKETLOAD_SERVE_ACCESS_KEY=fakeaccesskey1 BUCKETLOAD_SERVE_SECRET_KEY=fakesecretkey00001 \
    "$FAKE_PROGRAM" serve --listen 127.0.0.1:0 --stats-page --announce >"$state/line" 2>/dev/null &
  echo $! >"$state/pid"
  while ! grep -q listening "$state/line"; do kill -0 $! || exit 1; sleep 0.05; done
  echo "AWS_ENDPOINT_URL=http://$(sed 's/.*"listening":"\([^"]*\)".*/\1/' "$state/line")"
  echo AWS_ACCESS_KEY_ID=fakeaccesskey1
  echo AWS_SECRET_ACCESS_KEY=fakesecretkey00001
  echo "SWIFT_STORAGE_URL=http://127.0.0.1:1/v1/AUTH_test"
  echo "SWIFT_RING=$HOME/object.ring.gz"
  echo "SWIFT_CONF=$HOME/swift.conf"
  echo "CEPH_CONF=$HOME/ceph.conf"
  ;;
clean)
  [ -f "$state/pid" ] || exit 0
  kill "$(cat "$state/pid")"
  rm -r "$state"
  ;;
esac
"#;

const CONF: &str = "[swift-hash]\nswift_hash_path_prefix = a\nswift_hash_path_suffix = b\n";

/// A ring of 256 partitions on three devices, one copy of each.
fn ring() -> Vec<u8> {
    let device = |i: u32| {
        format!(
            r#"{{"id": {i}, "ip": "127.0.0.1", "port": 6200, "device": "d{i}", "weight": 1.0}}"#
        )
    };
    let header = format!(
        r#"{{"byteorder": "little", "devs": [{}, {}, {}], "part_shift": 24, "replica_count": 1, "version": 1}}"#,
        device(0),
        device(1),
        device(2)
    );
    let mut file = b"R1NG\0\x01".to_vec();
    file.extend_from_slice(&u32::try_from(header.len()).unwrap().to_be_bytes());
    file.extend_from_slice(header.as_bytes());
    for partition in 0..256u16 {
        file.extend_from_slice(&(partition % 3).to_le_bytes());
    }
    file
}

fn executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Calls the program with stand-ins for both stores, and for Ceph's tools, which find no cluster.
fn run(dir: &Path, args: &[&str]) -> Outcome {
    let mut command: Command = bucketload(dir, args);
    let path = format!("{}:/usr/bin:/bin", dir.join("bin").display());
    command
        .env("PATH", path)
        .env("FAKE_PROGRAM", env!("CARGO_BIN_EXE_bucketload"));
    call(&mut command)
}

fn prepared() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    fs::write(dir.join("spread.toml"), STUDY).unwrap();
    executable(&dir.join("servers/common.sh"), "");
    executable(&dir.join("servers/swift.sh"), SCRIPT);
    executable(&dir.join("servers/ceph.sh"), SCRIPT);
    let ceph = "#!/bin/sh\necho 'no monitor answers' >&2\nexit 1\n";
    executable(&dir.join("bin/ceph"), ceph);
    let file = fs::File::create(dir.join("object.ring.gz")).unwrap();
    let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    gz.write_all(&ring()).unwrap();
    gz.finish().unwrap();
    fs::write(dir.join("swift.conf"), CONF).unwrap();
    root
}

/// The directories of the cells on a target, by repetition.
fn cells(study: &Path, target: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(study.join("cells")).unwrap();
    let mut found: Vec<PathBuf> = all
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(&format!("-{target}-r")))
        .collect();
    found.sort();
    found
}

#[test]
fn the_load_of_data_nodes_follows_from_the_keys_that_were_read() {
    let root = prepared();
    let dir = root.path();
    let outcome = run(dir, &["study", "spread.toml", "--dir", "s"]);
    outcome.expect(0, &["no placement: ", "no monitor answers"]);
    let study = dir.join("s");

    // Computed independently: each key's device from the ring, each phase's reads from the operation log.
    let (ring, hash) = (
        Ring::parse(&ring()).unwrap(),
        HashPath::parse(CONF).unwrap(),
    );
    let mut peaks: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let runs = cells(&study, "ring");
    assert_eq!(runs.len(), 2);
    for run in &runs {
        let mut loads: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        let id = bucketload_results::rundir::RunDir::open(run)
            .unwrap()
            .manifest()
            .run_id
            .clone();
        for ((phase, _, class, _, key, ..), _) in operations(run) {
            let key = key.replace("RUN", &id);
            let device = ring
                .devices(&hash, "AUTH_test", "bucketload-study", &key)
                .next()
                .unwrap()
                .to_owned();
            if class == "get" {
                *loads.entry(phase).or_default().entry(device).or_default() += 1.0;
            }
        }
        for (phase, devices) in loads {
            let (most, all) = devices
                .values()
                .fold((0.0_f64, 0.0), |(m, s), n| (m.max(*n), s + n));
            peaks.entry(phase).or_default().push(most / (all / 3.0));
        }
    }
    let table = fs::read_to_string(study.join("tables/hot-load-balance.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    for phase in ["uniform", "zipf", "zipf-mandelbrot"] {
        let line = lines
            .iter()
            .find(|line| line.starts_with(&format!("ring,\"{phase}: requests,")))
            .unwrap_or_else(|| panic!("{phase}: {table}"));
        // The description of the load contains a comma and is quoted.
        let figures: Vec<&str> = line.rsplit_once('"').unwrap().1.split(',').collect();
        assert_eq!(figures[1], "3", "{line}");
        let peak: f64 = figures[2].parse().unwrap();
        let wanted = peaks[phase].iter().product::<f64>().sqrt();
        assert!((peak / wanted - 1.0).abs() < 1e-9, "{line}: {wanted}");
    }
    assert!(
        peaks["zipf-mandelbrot"][0] > peaks["uniform"][0],
        "{peaks:?}"
    );
    assert!(table.contains("ring,objects,3,"), "{table}");
    // A single node, or an unknown placement, is stated, not drawn.
    let page = fs::read_to_string(study.join("report.html")).unwrap();
    assert!(page.contains("memory: a single node, nothing to balance."));
    assert!(page.contains("broken: the placement of its objects could not be looked up: "));
    assert!(page.contains("d0") && study.join("figures/hot-load-balance-ring.svg").is_file());
    let facts = |name: &str| -> TargetFacts {
        let text = fs::read_to_string(study.join(format!("targets/{name}.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(facts("ring").placement, Placement::Asked);
    assert_eq!(facts("memory").placement, Placement::OneNode);
    let unplaced = read(&study).unwrap();
    let unplaced = unplaced
        .iter()
        .filter(|line| matches!(line, JournalLine::Unplaced { .. }));
    assert_eq!(unplaced.count(), 2);
    // No files are left beside the run directories.
    let stray = fs::read_dir(study.join("cells")).unwrap().count();
    assert_eq!(stray, 6);

    it_is_evidence(dir, &runs[0]);
}

/// The placement is data in the bundle. A figure that does not follow from it is found.
fn it_is_evidence(dir: &Path, cell: &Path) {
    run(dir, &["bundle", "s", "-o", "b"]).expect(0, &[]);
    run(dir, &["verify-bundle", "b"]).expect(0, &[]);
    let placement = cell.join("placement.csv");
    let text = fs::read_to_string(&placement).unwrap();
    fs::write(&placement, text.replace("/d0", "/d1")).unwrap();
    run(dir, &["bundle", "s", "-o", "forged"]).expect(0, &["does not follow from the data"]);
    let refuted = run(dir, &["verify-bundle", "forged"]);
    refuted.expect(1, &[]);
    for word in ["tables/hot-load-balance.csv: ", "figures/hot-load-balance"] {
        assert!(refuted.stdout.contains(word), "{word}\n{}", refuted.stdout);
    }
}

/// Objects that a cell keeps for the lookup are deleted before the next cell.
#[test]
fn objects_kept_for_the_lookup_are_deleted() {
    let root = prepared();
    let dir = root.path();
    let args = [
        "study",
        "spread.toml",
        "--dir",
        "s",
        "--target",
        "broken",
        "--repetitions",
        "1",
    ];
    run(dir, &args).expect(0, &["no placement: "]);
    let cell = &cells(&dir.join("s"), "broken")[0];
    let said = fs::read_to_string(cell.join("output.log")).unwrap();
    assert!(
        said.contains("60 objects deleted") || said.contains("61 objects deleted"),
        "{said}"
    );
}
