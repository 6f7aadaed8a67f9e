//! IO500 on a directory and on MinIO, in every mapping and in the extended mode, in one process and on several
//! agents: nothing fails, ranks verify data that others wrote, the searches find exactly the matching files, and the
//! result passes its own verification.

use std::path::Path;

use crate::files::{self, TempDir};
use crate::program::{Env, run_bucketload, try_bucketload};
use crate::server::Server;
use crate::sh::Result;

const RANKS: u64 = 4;
const FILES: u64 = 220;
/// Files of a tree in which each file is a bucket; MinIO makes buckets slowly.
const BUCKETS: u64 = 12;
/// MD-Workbench: data sets per rank, objects per data set, and objects replaced in each of two iterations.
const SETS: u64 = 10;
const OBJECTS: u64 = 5;
const REPLACED: u64 = 4;

/// An IO500 run: where, and how.
struct Case<'a> {
    name: &'a str,
    target: &'a str,
    env: &'a Env,
    mapping: &'a str,
    is_extended: bool,
}

/// All phases on a directory and on MinIO.
pub(super) fn all() -> Result {
    let data = TempDir::new("io500-data")?;
    let target = format!("--target file://{}", data.file(""));
    let nothing = Env::new();
    let directory = Case {
        name: "a directory",
        target: &target,
        env: &nothing,
        mapping: "files",
        is_extended: false,
    };
    let on_agents = Case {
        name: "a directory, 3 agents",
        target: &format!("{target} --launch local:3"),
        ..directory
    };
    for case in [&directory, &on_agents] {
        case.run()?;
        let is_extended = true;
        Case {
            is_extended,
            ..*case
        }
        .run()?;
    }
    let server = Server::start("minio")?;
    let bucket = "--target s3://io500/x --create-bucket";
    let agents = format!("{bucket} --launch local:2");
    for mapping in ["native", "multipart", "ior-libs3-single"] {
        for (name, target) in [("MinIO", bucket), ("MinIO, 2 agents", &*agents)] {
            Case {
                name,
                target,
                env: &server.env,
                mapping,
                is_extended: mapping == "native",
            }
            .run()?;
        }
    }
    // The run makes every bucket itself, in one process.
    Case {
        name: "MinIO",
        target: bucket,
        env: &server.env,
        mapping: PER_FILE,
        is_extended: true,
    }
    .run()
}

/// The mapping with a bucket per file.
const PER_FILE: &str = "ior-libs3-bucket-per-file";

impl Case<'_> {
    fn run(&self) -> Result {
        let dir = TempDir::new("io500")?;
        let out = dir.file("out");
        let has_buckets = self.mapping == PER_FILE;
        let files = if has_buckets { BUCKETS } else { FILES };
        let (name, mapping, target) = (self.name, self.mapping, self.target);
        // Every phase finishes before the stonewall. The random reads would last until it, so they are left out.
        let mut line = format!(
            "io500 --mapping {mapping} --ranks {RANKS} --out {out} --set debug.stonewall-time=200 \
             --set ior-rnd4K-easy-read.run=FALSE --set ior-easy.transferSize=6m --set ior-easy.blockSize=48m \
             --set ior-hard.segmentCount=100 --set mdtest-easy.n={files} --set mdtest-hard.n={files} {target}"
        );
        if self.is_extended {
            line += &format!(
                " --mode extended --set mdworkbench.precreatePerSet={OBJECTS} \
                 --set mdworkbench.filesPerProc={REPLACED}"
            );
        }
        let outcome = run_bucketload(&line, self.env)?;
        eprintln!("{name}, {mapping}:\n{}", outcome.stdout);
        let path = Path::new(&out).join("result.txt");
        let text = files::read(&path)?;
        let wrong = |what: &str| Err(format!("{name}, {mapping}: {what}"));
        if let Some(line) = text
            .lines()
            .find(|line| line.contains("failed") || line.contains("Not run to"))
        {
            return wrong(line);
        }
        for (phase, field, value) in self.expected() {
            let found = figure(&text, phase, field);
            if found != value.as_deref() {
                return wrong(&format!(
                    "{field} of {phase} is {found:?} instead of {value:?}:\n{text}"
                ));
            }
        }
        let verified = try_bucketload(&format!("io500 --verify {}", path.display()))?;
        verified.expect_code(1)?;
        match verified.stdout.contains("[OK] But this is an invalid run!") {
            true => Ok(()),
            false => wrong(&verified.stderr),
        }
    }

    /// Figures of phases that the parameters determine; `None` for a figure that must be absent.
    fn expected(&self) -> Vec<(&'static str, &'static str, Option<String>)> {
        let text = |number: u64| Some(number.to_string());
        if self.mapping == PER_FILE {
            let each = RANKS * BUCKETS;
            return vec![
                // Make the bucket; look it up.
                ("mdtest-easy-write", "requests", text(each)),
                ("mdtest-easy-stat", "requests", text(each)),
                ("mdtest-hard-stat", "requests", text(each)),
                ("find", "found", None),
                ("mdworkbench-bench", "requests", None),
            ];
        }
        // Names that contain 01 among 0 to 219: 101 and 201.
        let found = || text(2 * RANKS);
        let mut expected = vec![("find", "found", found())];
        if self.is_extended {
            let sets = RANKS * SETS;
            expected.extend([
                ("find-easy", "found", found()),
                ("find-hard", "found", found()),
                ("mdworkbench-create", "requests", text(sets * OBJECTS)),
                // Stat, read, delete and write, in two iterations.
                (
                    "mdworkbench-bench",
                    "requests",
                    text(sets * REPLACED * 4 * 2),
                ),
                ("mdworkbench-delete", "requests", text(sets * OBJECTS)),
            ]);
        } else {
            expected.push(("find-easy", "found", None));
        }
        expected
    }
}

/// A figure of a phase in a result.
fn figure<'t>(text: &'t str, phase: &str, field: &str) -> Option<&'t str> {
    let section = text.split_once(&format!("[{phase}]\n"))?.1;
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| line.split_once('='))
        .find(|(name, _)| name.trim() == field)
        .map(|(_, value)| value.trim())
}
