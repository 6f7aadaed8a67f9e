//! Drills at full length: known faults of the fault line before the embedded server (`known`), and servers of others that
//! commands kill, pause and restart, watched by a client of our own (`stores`, `prober`).

mod known;
mod prober;
mod stores;

use serde_json::Value;

use crate::files::{self, TempDir};
use crate::program::{Env, Outcome, bucketload, call};
use crate::sh::{Result, ensure, line, output, steps};

/// A shared machine makes baselines rough; whether they allow anything to be broken is tested elsewhere.
const ANY: &str =
    "--accept degraded,unsteady,overloaded,client-bound --no-calibration --quiet --output json";
/// Length of an interval, seconds.
const INTERVAL_S: f64 = 0.1;

/// Known faults before the embedded server.
pub(crate) fn known() -> Result {
    steps(&[
        ("drills: a black hole", &known::black_hole),
        ("drills: resets", &known::resets),
        ("drills: forged answers", &known::answers),
        ("drills: forgotten writes", &known::forgotten),
        ("drills: another client", &known::engines),
        ("drills: the idle fault line is no limit", &known::idle_line),
        ("drills: latency", &known::latency),
        ("drills: without a fault", &known::quiet),
    ])
}

/// Servers of others, and a disk that is full.
pub(crate) fn stores() -> Result {
    steps(&[
        ("drills: a full disk", &stores::full_disk),
        ("drills: versitygw is killed", &|| {
            stores::killed("versitygw")
        }),
        ("drills: MinIO is killed", &|| stores::killed("minio")),
        ("drills: MinIO is paused", &|| stores::paused("minio")),
        ("drills: an OSD of Ceph is killed", &stores::osd),
    ])
}

/// A drill of reads and writes of new objects of 1 KiB.
struct Drill<'a> {
    /// Fields of `[drill]`, one a line.
    stages: &'a str,
    /// Operations per second.
    rate: u32,
    /// The tables `[[fault]]`.
    faults: &'a str,
    /// Further arguments.
    flags: &'a str,
}

impl Drill<'_> {
    /// Runs it as `name` below `dir`.
    fn run(&self, dir: &TempDir, name: &str, env: &Env) -> Result<Outcome> {
        let Self {
            stages,
            rate,
            faults,
            flags,
        } = self;
        let file = dir.file(&format!("{name}.toml"));
        let text = format!(
            "name = \"{name}\"\n[drill]\n{stages}\n[keysets.o]\ncount = 100\nsize = \"1KiB\"\n[phases.run]\n\
             rate = \"{rate}/s\"\narrival = \"constant\"\n[phases.run.mix]\n\
             get = {{ weight = 70, keyset = \"o\", keys = \"uniform\" }}\n\
             put = {{ weight = 30, keyset = \"o\", keys = \"fresh\" }}\n{faults}\n"
        );
        files::write(&file, text)?;
        let line = format!("drill {file} --out {} {ANY} {flags}", dir.file(name));
        call(bucketload(&line)?.envs(env))
    }

    /// Like [`Drill::run`]; returns the whole result of a drill that broke what it should.
    fn result(&self, dir: &TempDir, name: &str, env: &Env) -> Result<Value> {
        let outcome = self.run(dir, name, env)?;
        outcome.expect_code(0)?;
        let result = outcome.json()?;
        ensure(result["drill"]["valid"] == true, || {
            format!("{name}: nothing was broken: {}", result["drill"]["why"])
        })?;
        Ok(result)
    }
}

fn number(value: &Value, field: &str) -> Result<f64> {
    value[field]
        .as_f64()
        .ok_or_else(|| format!("no {field} in {value}"))
}

/// Start of the first fault and end of the last one, seconds since the load began.
fn span(drill: &Value) -> Result<(f64, f64)> {
    let faults = drill["faults"]
        .as_array()
        .filter(|faults| !faults.is_empty());
    let faults = faults.ok_or_else(|| format!("no faults in {drill}"))?;
    Ok((
        number(&faults[0], "from_s")?,
        number(&faults[faults.len() - 1], "to_s")?,
    ))
}

/// An operation of the measured phase; instants are seconds since the load began.
struct Logged {
    class: String,
    key: String,
    due_s: f64,
    done_s: f64,
    ok: bool,
}

/// The operation log (CSV) of the drill in `out`.
fn operations(out: &std::path::Path) -> Result<Vec<Logged>> {
    let journal = files::read(out.join("drill.jsonl"))?;
    let began = journal.lines().find_map(|line| {
        let entry: Value = serde_json::from_str(line).ok()?;
        (entry["entry"] == "began").then(|| entry["at_ns"].as_f64())?
    });
    let began = began.ok_or("the journal names no start")?;
    let logs = files::list(out)?;
    let logs = logs
        .iter()
        .filter(|path| path.to_string_lossy().ends_with(".csv.zst"));
    let text = output(line("zstd -dcq").args(logs))?;
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| {
        head.iter()
            .position(|field| *field == name)
            .ok_or_else(|| format!("the log has no column {name}"))
    };
    let [phase, class, key, due, done, outcome] =
        ["phase", "class", "key", "due_ns", "done_ns", "outcome"].map(column);
    let (phase, class, key, due, done, outcome) = (phase?, class?, key?, due?, done?, outcome?);
    // Several files each have a head.
    let rows = lines.map(|line| line.split(',').collect::<Vec<_>>());
    let rows = rows.filter(|row| row.get(phase) == Some(&"run"));
    let parsed = rows.map(|row| {
        let at = |column: usize| row.get(column).copied().unwrap_or_default();
        let s = |column: usize| {
            let ns: Option<f64> = at(column).parse().ok();
            ns.map(|ns| (ns - began) / 1e9)
                .ok_or_else(|| format!("an odd row: {row:?}"))
        };
        Ok(Logged {
            class: at(class).to_owned(),
            key: at(key).to_owned(),
            due_s: s(due)?,
            done_s: s(done)?,
            ok: at(outcome) == "ok",
        })
    });
    parsed.collect()
}
