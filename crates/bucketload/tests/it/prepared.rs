//! A data set that is prepared in several sessions: one is killed, another goes on, and runs measure on it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::agents::{Agent, agents_of, background, end_of, wait_for};
use crate::common::{Outcome, Serve, bucketload, call};
use serde_json::Value;

const OBJECTS: u64 = 4_000;

struct Place {
    dir: tempfile::TempDir,
    /// Each PUT takes a while, so a session takes seconds.
    server: Serve,
}

impl Place {
    /// A store whose PUTs take `ms` milliseconds: the 32 workers write at most 32 objects in that time.
    fn new(ms: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = format!("posix:{}", dir.path().join("store").display());
        fs::create_dir(dir.path().join("store")).unwrap();
        let fault = format!("delay,ms={ms},op=put");
        let server = Serve::start(&["--store", &store, "--fault", &fault]);
        Self { dir, server }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn args(&self, more: &str) -> Vec<String> {
        let url = self.server.url();
        let objects = OBJECTS.to_string();
        let line = format!(
            "run online-service --objects {objects} --size 100B --duration 1s --rate 50/s --no-calibration \
             --create-bucket --target s3://bench --endpoint-url {url} {more}"
        );
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn run(&self, more: &str) -> Outcome {
        let args = self.args(more);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        call(&mut bucketload(self.path(), &args))
    }

    /// The directory of the only data set.
    fn data(&self) -> Option<PathBuf> {
        let runs = fs::read_dir(self.path().join("store/bench")).ok()?;
        let mut runs = runs.flatten().map(|entry| entry.path());
        runs.find(|path| path.join(".bucketload-run.json").is_file())
    }

    /// Objects that the journal says are there.
    fn journal(&self) -> Option<u64> {
        let text = fs::read(self.data()?.join(".bucketload-prepared.json")).ok()?;
        let journal: Value = serde_json::from_slice(&text).ok()?;
        let ranges = journal["keysets"][0]["done"].as_array()?;
        let length = |range: &Value| range[1].as_u64().unwrap() - range[0].as_u64().unwrap();
        Some(ranges.iter().map(length).sum())
    }

    /// The prepared objects in the directory of the store.
    fn objects(&self) -> Vec<PathBuf> {
        self.below("r")
    }

    /// The files below directory `name` of the data set.
    fn below(&self, name: &str) -> Vec<PathBuf> {
        fn walk(dir: &Path, into: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(dir).unwrap().flatten() {
                match entry.path() {
                    path if path.is_dir() => walk(&path, into),
                    path => into.push(path),
                }
            }
        }
        let mut all = Vec::new();
        walk(&self.data().unwrap().join(name), &mut all);
        all.sort();
        all
    }
}

fn prepared(outcome: &Outcome) -> u64 {
    let result = outcome.json();
    let phases = result["phases"].as_array().unwrap();
    let phase = phases.iter().find(|phase| phase["name"] == "prepare");
    phase.map_or(0, |phase| phase["totals"]["ok"].as_u64().unwrap())
}

#[test]
fn a_killed_preparation_goes_on_and_runs_measure_on_its_objects() {
    let place = Place::new(20);
    let args = place.args("--prepare-only --out first");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut killed = background(&mut bucketload(place.path(), &args));
    wait_for("an entry in the journal", || {
        place.journal().filter(|&there| there > 0)
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    let there = place.journal().unwrap();
    assert!((1..OBJECTS).contains(&there), "{there}");
    assert!(
        place.objects().len() as u64 >= there,
        "the journal says too much"
    );

    let half = format!("`read` has {there} of {OBJECTS} objects");
    place
        .run("--data first --out half")
        .expect(2, &[&half, "--prepare-only", "--incomplete"]);
    let told = place.run("--data first --incomplete --check 50 --out told --output json");
    // How much of what it reads is missing depends on when the other was killed, and so does the gate.
    assert!([0, 1].contains(&told.code), "exit code {}", told.code);
    let read = format!("{} objects of the data set were read", there.min(50));
    told.expect(told.code, &[&read, "is not complete"]);

    let rest = place.run("--data first --prepare-only --check 100 --out second --output json");
    rest.expect(
        0,
        &[
            "100 objects of the data set",
            "the data set is complete",
            "--data second",
        ],
    );
    assert_eq!(there + prepared(&rest), OBJECTS);
    assert_eq!(place.objects().len() as u64, OBJECTS);
    let nothing = place.run("--data second --prepare-only --check 4000 --out third --output json");
    nothing.expect(0, &["4000 objects of the data set were read"]);
    assert_eq!(prepared(&nothing), 0);
    let measured = place.run("--data first --out measured --output json");
    measured.expect(0, &["stays in the target"]);
    assert_eq!(prepared(&measured), 0);
    assert_eq!(place.objects().len() as u64, OBJECTS);

    place
        .run("--data first --seed 77 --out seed")
        .expect(2, &["another seed"]);
    place
        .run("--data gone --out gone")
        .expect(2, &["no such run directory"]);
    place
        .run("--check 5 --out check")
        .expect(2, &["--data RUN"]);

    let objects = place.objects();
    let mut bytes = fs::read(&objects[7]).unwrap();
    bytes[50] ^= 1;
    fs::write(&objects[7], bytes).unwrap();
    let altered = place.run("--data first --check 4000 --out altered");
    let name = objects[7].file_name().unwrap().to_str().unwrap();
    altered.expect(1, &["1 of 4000 objects that were read", name]);
    fs::remove_file(&objects[9]).unwrap();
    let deleted = place.run("--data first --prepare-only --check 4000 --out deleted");
    let name = objects[9].file_name().unwrap().to_str().unwrap();
    deleted.expect(1, &["2 of 4000 objects that were read", name]);
}

#[test]
fn data_sets_that_would_not_last_are_refused() {
    let place = Place::new(20);
    let args = place.args("--prepare-only --out first");
    let refused = |line: &str, words: &[&str]| {
        let args: Vec<&str> = line.split_whitespace().collect();
        call(&mut bucketload(place.path(), &args)).expect(2, words);
    };
    refused("run get --prepare-only", &["in memory keeps no objects"]);
    refused("run get --incomplete --target file:///tmp", &["--data"]);
    let target = &args[args.iter().position(|arg| arg == "--target").unwrap()..][..4].join(" ");
    refused(
        &format!("run delete --data 17-57560403 {target}"),
        &["delete on key set `data` may delete or change objects"],
    );
    refused(
        &format!("run get --data 17-57560403 {target}"),
        &["holds no data set of run 17-57560403"],
    );
    refused(
        &format!("run get --prepare-only --oracle {target} --create-bucket"),
        &["leave out --oracle"],
    );
}

#[test]
fn agents_fill_a_data_set_over_losses_and_in_other_numbers() {
    let place = Place::new(60);
    let mut agents = ["one", "two", "three"].map(|name| Agent::start(place.path(), name, None));
    let start = |agents: &[Agent], more: &str| {
        let addresses: Vec<&str> = agents.iter().map(|agent| agent.address.as_str()).collect();
        let args = place.args(&format!("--agents {} {more}", addresses.join(",")));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        background(&mut bucketload(place.path(), &args))
    };
    let grown = |before: u64| {
        wait_for("an entry in the journal", || {
            place.journal().filter(|&there| there > before)
        })
    };

    // The coordinator is killed: its agents stop, and what it has not entered is written again.
    let mut first = start(&agents, "--prepare-only --out first");
    grown(0);
    first.kill().unwrap();
    first.wait().unwrap();
    for agent in &agents {
        wait_for("the agent's word", || {
            agent.said().contains("the load was stopped").then_some(())
        });
    }
    let known = place.journal().unwrap();
    assert!((1..OBJECTS).contains(&known), "{known}");
    assert!(
        place.objects().len() as u64 >= known,
        "the journal says too much"
    );

    // An agent is killed: everything that the others wrote is in the journal.
    let second = start(&agents, "--prepare-only --data first --out second");
    grown(known);
    agents[0].child.kill().unwrap();
    let outcome = end_of(second);
    outcome.expect(
        4,
        &[
            "agent 0 (",
            &agents[0].address,
            "lost",
            "--prepare-only --data second",
        ],
    );
    let there = place.journal().unwrap();
    outcome.expect(4, &[&format!("has {there} of {OBJECTS} objects, without ")]);
    let records = agents_of(&place.path().join("second")).unwrap().agents;
    let survivors: u64 = records[1..].iter().map(|agent| agent.totals.ok).sum();
    assert!(records[0].totals.ok > 0 && survivors > 0, "{records:?}");
    assert!(
        there >= known + survivors,
        "{there} of {known} + {survivors}"
    );
    assert!(
        place.objects().len() as u64 >= there,
        "the journal says too much"
    );

    // Two go on, with exactly what is missing.
    let third = start(
        &agents[1..],
        "--prepare-only --data second --check 100 --out third --output json",
    );
    let third = end_of(third);
    third.expect(0, &["100 objects of the data set", "is complete"]);
    assert_eq!(prepared(&third), OBJECTS - there);
    assert_eq!(place.objects().len() as u64, OBJECTS);
    assert_eq!(place.journal(), Some(OBJECTS));

    // Four measure, twice: the fresh objects of each measurement have names of their own.
    let mut fresh = Vec::new();
    for out in ["measured", "again"] {
        let line = format!("--launch local:4 --data first --check 4000 --out {out} --output json");
        let measured = place.run(&line);
        measured.expect(0, &["4000 objects of the data set", "stays in the target"]);
        assert_eq!(prepared(&measured), 0);
        let result = measured.json();
        let phases = result["phases"].as_array().unwrap();
        let run = phases.iter().find(|phase| phase["name"] == "run").unwrap();
        assert_eq!(run["totals"]["failed"], 0, "{run}");
        fresh.push(place.below("").len() as u64 - OBJECTS);
    }
    // Marker and journal.
    assert!(fresh[0] > 2, "{fresh:?}");
    assert_eq!(fresh[1] - 2, 2 * (fresh[0] - 2));
    assert_eq!(place.objects().len() as u64, OBJECTS);
}

#[test]
fn two_sessions_do_not_prepare_the_same_data_set() {
    let place = Place::new(60);
    let args = place.args("--prepare-only --out first");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut first = background(&mut bucketload(place.path(), &args));
    let holder = format!("process {} on ", first.id());
    wait_for("an entry in the journal", || {
        place.journal().filter(|&there| there > 0)
    });
    place
        .run("--data first --prepare-only --out second")
        .expect(2, &[&holder, "wait until it has ended"]);
    // It has ended without saying so, and two others begin at the same moment.
    first.kill().unwrap();
    first.wait().unwrap();
    let known = place.journal().unwrap();
    let both = ["third", "fourth"].map(|out| {
        let line = format!("--data first --prepare-only --out {out} --output json");
        let args = place.args(&line);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        background(&mut bucketload(place.path(), &args))
    });
    let [one, other] = both.map(end_of);
    let (filled, refused) = match one.code {
        0 => (one, other),
        _ => (other, one),
    };
    filled.expect(0, &["is complete"]);
    assert_eq!(prepared(&filled), OBJECTS - known);
    refused.expect(2, &["wait until it has ended"]);
    assert_eq!(place.journal(), Some(OBJECTS));
}
