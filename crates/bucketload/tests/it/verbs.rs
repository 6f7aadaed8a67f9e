//! Every verb with the minimum of arguments: those that are required, and a free port if it listens.
//!
//! The test compares the rows with the verbs that the program lists: it fails for a verb without a row, and for a row
//! without a verb.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use crate::common::agents::wait_for;
use crate::common::{Outcome, bucketload, call};
use rustix::process::{Pid, Signal, kill_process_group};

/// How a call ends.
enum How {
    /// By itself, with this exit code and this output.
    Ends(i32, &'static str),
    /// Prints this on standard error, then serves until it is interrupted: with this exit code, or by a signal that
    /// it does not handle (`None`).
    Serves(&'static str, Option<i32>),
    /// Takes minutes with its defaults, so it is interrupted once it measures. It then exits with 130 and prints this
    /// about its result.
    Measures(&'static str),
}
use How::{Ends, Measures, Serves};

/// Verb, further arguments, outcome. Verbs that prepare many objects use `null:`, because a debug build takes a
/// minute for them; `interrupted` covers the default target. `DIR` is the directory of the call; files come from
/// [`scratch`].
const VERBS: &[(&str, &str, How)] = &[
    (
        "run",
        "online-service --target null:",
        Measures("INCOMPLETE"),
    ),
    // Its built-in load prepares objects for the embedded server.
    ("drill", "black-hole", Measures("INCOMPLETE")),
    ("replay", "requests.csv", Ends(0, "must exist")),
    ("model", "requests.csv", Ends(0, "constant")),
    ("convert", "workload.xml", Ends(0, "division=")),
    (
        "compare",
        "null: null: --workload get",
        Measures("interrupted"),
    ),
    (
        "capacity",
        "get --slo p99<1s --target null:",
        Measures("interrupted after"),
    ),
    (
        "sweep",
        "get --over workers=1,2 --target null:",
        Measures("interrupted"),
    ),
    ("study-grid", "", Measures("interrupted")),
    ("s3-hpc", "--root objects", Measures("Medians of")),
    // Without a stated rate, a small disk has no room for what five minutes write.
    ("io500", "--expect-rate 1MiB/s", Measures("[SCORE ]")),
    ("md-workbench", "", Measures("Total runtime")),
    ("kvcache", "--trace prompts.jsonl", Ends(0, "blocks hit")),
    (
        "checkpoint",
        "--count 1 --pause 0s --scale 1/100000",
        Measures("from barrier to last byte"),
    ),
    (
        "train",
        "--model unet3d --accelerator h100 --target null:",
        Measures("train-unet3d-h100"),
    ),
    (
        "study",
        "tiny.toml",
        Ends(0, "bucketload-studies/tiny/report.html"),
    ),
    ("study list", "", Ends(0, "ostorebench")),
    ("study show", "ossperf", Ends(0, "[[experiment]]")),
    ("study report", "studied", Ends(0, "studied/report.html")),
    ("init", "--list", Ends(0, "no target is saved")),
    ("workloads", "", Ends(0, "online-service")),
    ("show", "smoke", Ends(0, "name = \"smoke\"")),
    ("report", "kept", Ends(0, "kept/report.html")),
    ("bundle", "kept", Ends(0, "kept.bundle.tar.zst")),
    (
        "verify-bundle",
        "packed.tar.zst",
        Ends(0, "every figure follows"),
    ),
    // Each looks up objects in a cluster of its kind, and refuses a run on files.
    ("placement ceph", "kept", Ends(2, "no data nodes")),
    ("placement hdfs", "kept", Ends(2, "no data nodes")),
    ("placement seaweedfs", "kept", Ends(2, "no data nodes")),
    ("placement swift", "kept", Ends(2, "no data nodes")),
    ("doctor", "mem:", Ends(0, "READY")),
    (
        "cleanup",
        "--target file://DIR/objects-kept",
        Ends(0, "5 objects deleted"),
    ),
    ("config show", "", Ends(0, "target")),
    ("schema", "", Ends(0, "\"$schema\"")),
    ("man", "", Ends(0, ".TH")),
    ("completions", "bash", Ends(0, "complete -F")),
    ("help", "", Ends(0, "Commands:")),
    // Both need a service that their hosts can reach.
    (
        "k8s",
        "--agents 2 --image bucketload -- smoke --target s3://b --endpoint-url http://host:9000",
        Ends(0, "topologySpreadConstraints"),
    ),
    (
        "slurm",
        "--nodes 2 -- smoke --target s3://b --endpoint-url http://host:9000",
        Ends(0, "#SBATCH"),
    ),
    // The default ports may be in use on this machine.
    (
        "serve",
        "--listen 127.0.0.1:0",
        Serves("serving S3 at", None),
    ),
    (
        "gateway",
        "--root objects --listen 127.0.0.1:0",
        Serves("gateway to objects", Some(0)),
    ),
    ("agent", "--listen 127.0.0.1:0", Serves("agent at", Some(0))),
    (
        "controller",
        "--listen 127.0.0.1:0",
        Serves("console: http://", Some(0)),
    ),
    // The environment names the controller of the test.
    ("submit", "small.toml", Ends(0, "w")),
    ("info", "", Ends(0, "")),
    ("cancel", "w1", Ends(0, "")),
    ("top", "kept", Ends(0, "get finished")),
];

/// Creates the files that rows name.
fn scratch(dir: &Path) {
    let mut text = "ts_ns,op,bucket,key,size,off,len,client,status\n".to_owned();
    for i in 0..300u64 {
        let op = if i % 3 == 0 { "PUT" } else { "GET" };
        let _ = writeln!(text, "{},{op},b,k{},1000,0,-1,c,200", i * 2_000_000, i % 20);
    }
    fs::write(dir.join("requests.csv"), text).unwrap();
    let prompts =
        "{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 1, \"hash_ids\": [1]}\n";
    fs::write(dir.join("prompts.jsonl"), prompts.repeat(2)).unwrap();
    let small = "name = \"small\"\n[keysets.k]\ncount = 5\nsize = \"1KiB\"\n[phases.run]\nworkers = 1\n\
                 duration = \"30s\"\nmix = { get = { keyset = \"k\" } }\n";
    fs::write(dir.join("small.toml"), small).unwrap();
    let xml = r#"<workload name="w">
      <storage type="s3" config="accesskey=a;secretkey=s;endpoint=http://127.0.0.1:1" />
      <workflow><workstage name="main"><work name="main" workers="2" totalOps="4">
        <operation type="read" ratio="100" config="containers=u(1,2);objects=u(1,3)" />
      </work></workstage></workflow></workload>"#;
    fs::write(dir.join("workload.xml"), xml).unwrap();
    let study = "name = \"tiny\"\ntitle = \"Tiny\"\nrepetitions = 1\nrecovery = \"0s\"\nsettle = \"0s\"\n\
                 [[target]]\nname = \"nothing\"\nurl = \"null:\"\n[[experiment]]\nname = \"writes\"\n\
                 workload = \"put\"\nestimate = \"1s\"\nfield = \"workers\"\nvalues = [1]\n\
                 options = { ops = 20, size = \"1KiB\" }\n[[experiment.table]]\nkind = \"summary\"\n";
    fs::write(dir.join("tiny.toml"), study).unwrap();
    fs::create_dir(dir.join("objects-kept")).unwrap();
    let target = format!("file://{}/objects-kept", dir.display());
    let kept = "run get --objects 5 --size 1KiB --ops 20 --threads 1 --no-calibration --keep --quiet \
                --out kept --target";
    let made = |args: &str, more: &[&str]| {
        let args: Vec<&str> = args
            .split_whitespace()
            .chain(more.iter().copied())
            .collect();
        call(&mut bucketload(dir, &args)).expect(0, &[]);
    };
    made(kept, &[&target]);
    made("bundle kept --quiet --out packed.tar.zst", &[]);
    made("study tiny.toml --quiet --dir studied", &[]);
}

/// The verbs that `bucketload PATH... --help` lists, with their subcommands.
fn listed(dir: &Path, path: &str, all: &mut BTreeSet<String>) {
    let args: Vec<&str> = path.split_whitespace().chain(["--help"]).collect();
    let help = call(&mut bucketload(dir, &args));
    help.expect(0, &[]);
    let lines = help.stdout.lines().skip_while(|line| *line != "Commands:");
    let names = lines.skip(1).take_while(|line| !line.is_empty());
    let mut below = Vec::new();
    for line in names {
        // Continuation lines of a description are indented further.
        if let Some(name) = line
            .strip_prefix("  ")
            .filter(|rest| !rest.starts_with(' '))
        {
            below.extend(name.split_whitespace().next());
        }
    }
    // Whether the verb can also be called without a subcommand.
    let usage = help
        .stdout
        .lines()
        .skip_while(|line| !line.starts_with("Usage: "));
    let own_call = usage
        .take_while(|line| !line.is_empty())
        .any(|line| !line.contains("<COMMAND>"));
    if !path.is_empty() && (below.is_empty() || own_call) {
        all.insert(path.to_owned());
    }
    for name in below
        .into_iter()
        .filter(|name| path.is_empty() || *name != "help")
    {
        match name {
            "help" => _ = all.insert("help".to_owned()),
            name => listed(dir, format!("{path} {name}").trim(), all),
        }
    }
}

/// Whether a measuring phase has written figures anywhere below `dir`.
fn measures(dir: &Path) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let path = entry.path();
        match path
            .file_name()
            .is_some_and(|name| name == "intervals.jsonl")
        {
            true => has_measured(dir).unwrap_or(false),
            false => path.is_dir() && measures(&path),
        }
    })
}

/// Whether the run directory `out` has an interval of a measuring phase.
fn has_measured(out: &Path) -> Option<bool> {
    let manifest = fs::read_to_string(out.join("run.json")).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&manifest).ok()?;
    let phases = manifest["plan"]["phases"].as_array()?;
    let text = fs::read_to_string(out.join("intervals.jsonl")).ok()?;
    let of = |line: &str| -> Option<usize> {
        let rest = line.strip_prefix("{\"phase\":")?;
        rest.split(',').next()?.parse().ok()
    };
    let mut measured = text.lines().filter_map(of);
    Some(measured.any(|phase| phases[phase]["kind"] == "run"))
}

/// A process in its own group, as a shell starts it, with its output in files.
struct Called {
    child: Child,
    dir: tempfile::TempDir,
}

impl Called {
    fn start(command: &mut Command) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| Stdio::from(fs::File::create(dir.path().join(name)).unwrap());
        command
            .stdout(file("out"))
            .stderr(file("err"))
            .process_group(0);
        let child = command.spawn().unwrap();
        Self { child, dir }
    }

    fn said(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).unwrap()
    }

    /// Waits until `ready`, or until the process has ended.
    fn until(&mut self, what: &str, mut ready: impl FnMut(&Self) -> bool) {
        wait_for(what, || {
            let over = self.child.try_wait().unwrap().is_some();
            (over || ready(self)).then_some(())
        });
    }

    fn interrupt(&self) {
        // If the process has ended already, the group no longer exists, and the exit code shows it.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::INT);
    }

    fn end(mut self, what: &str) -> Outcome {
        let status = wait_for(what, || self.child.try_wait().unwrap());
        Outcome {
            code: status.code().unwrap_or(-1),
            stdout: self.said("out"),
            stderr: self.said("err"),
        }
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        // Has an effect only if the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a row in `dir`, and checks its outcome.
fn check_row(dir: &Path, verb: &str, further: &str, how: &How, controller: &str) {
    let further = further.replace("DIR", &dir.display().to_string());
    let args: Vec<&str> = verb.split(' ').chain(further.split_whitespace()).collect();
    let mut command = bucketload(dir, &args);
    command.env("BUCKETLOAD_CONTROLLER", controller);
    let what = format!("bucketload {verb} {further}");
    let mut called = Called::start(&mut command);
    let (outcome, code, word) = match how {
        Ends(code, word) => (called.end(&what), Some(*code), *word),
        Serves(word, code) => {
            called.until(&what, |called| called.said("err").contains(word));
            assert!(
                called.said("err").contains(word),
                "{what}: {}",
                called.said("err")
            );
            called.interrupt();
            (called.end(&what), *code, *word)
        }
        Measures(word) => {
            called.until(&what, |_| measures(dir));
            called.interrupt();
            (called.end(&what), Some(130), *word)
        }
    };
    let all = format!(
        "{what}: exit code {}\n{}\n{}",
        outcome.code, outcome.stdout, outcome.stderr
    );
    assert_eq!(outcome.code, code.unwrap_or(-1), "{all}");
    assert!(
        outcome.stdout.contains(word) || outcome.stderr.contains(word),
        "{word:?}: {all}"
    );
    assert!(!outcome.stderr.contains("panicked"), "{all}");
}

#[test]
fn every_verb_works_with_the_minimum_of_arguments() {
    let dir = tempfile::tempdir().unwrap();
    let mut known = BTreeSet::new();
    listed(dir.path(), "", &mut known);
    let rows: BTreeSet<String> = VERBS.iter().map(|row| row.0.to_owned()).collect();
    assert_eq!(known, rows, "verbs of the program, rows of this test");
    let mut controller = Called::start(&mut bucketload(
        dir.path(),
        &["controller", "--listen", "127.0.0.1:0"],
    ));
    let address = |called: &Called| {
        let said = called.said("err");
        let url = said
            .split_whitespace()
            .find(|word| word.starts_with("http://"))?;
        Some(url.trim_end_matches('/').to_owned())
    };
    controller.until("a controller", |called| address(called).is_some());
    let url = address(&controller).unwrap();
    // Runs a few at a time, because most of them wait for the clock, not for the processor.
    let (clients, others): (Vec<_>, Vec<_>) = VERBS
        .iter()
        .partition(|row| matches!(row.0, "submit" | "info" | "cancel"));
    let queue = Mutex::new(others.into_iter());
    let work = |rows: &mut dyn FnMut() -> Option<&'static (&'static str, &'static str, How)>| {
        while let Some((verb, further, how)) = rows() {
            // Each row has its own directory, so that its files can be attributed to it.
            let own = tempfile::tempdir().unwrap();
            scratch_for(own.path(), further);
            check_row(own.path(), verb, further, how, &url);
        }
    };
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..3 {
            threads.push(scope.spawn(|| work(&mut || queue.lock().unwrap().next())));
        }
        // These run in order: submit, show, cancel.
        let mut clients = clients.into_iter();
        threads.push(scope.spawn(move || work(&mut || clients.next())));
        for thread in threads {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    controller.interrupt();
    assert_eq!(controller.end("the controller").code, 0);
}

/// Creates the files that the row's arguments name, if any.
fn scratch_for(dir: &Path, further: &str) {
    let names = [
        "requests",
        "small",
        "prompts.jsonl",
        "workload.xml",
        "tiny",
        "studied",
        "kept",
        "packed",
    ];
    if names.iter().any(|name| further.contains(name)) {
        scratch(dir);
    }
}
