//! Runs on many hosts: network namespaces with faults between them.
//!
//! Eight agents (h1 to h8) and a coordinator (h9) have separate networks; the store runs on the machine itself (h0).
//! Every case must end with a labelled result before its deadline.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::netns::Hosts;
use crate::files::{self, TempDir};
use crate::process::{Process, wait_until};
use crate::program::{Serve, done, items, percentile_ns, program, run_phase, text, whole};
use crate::sh::{Result, cmd, ensure, need_programs, output, steps, words};

/// Number of agents, and the coordinator's host.
const AGENTS: u32 = 8;
const COORDINATOR: &str = "h9";
/// Network of the hosts; not the script's default, so both can exist.
const SUBNET: &str = "10.78.0";
const PORT: u16 = 7400;
pub(super) const TOKEN: (&str, &str) = ("BUCKETLOAD_AGENT_TOKEN", "conformance-token-0001");
/// Far longer than any case takes.
pub(super) const DEADLINE: Duration = Duration::from_secs(240);

/// A call of the program on `host`, with credentials only if `server` is given.
fn on_host(hosts: &Hosts, host: &str, args: &str, server: Option<&Serve>) -> Result<Command> {
    let mut command = hosts.script(&format!("exec {host}"));
    command
        .arg(program()?)
        .args(words(args))
        .env(TOKEN.0, TOKEN.1);
    for name in ["AWS_CA_BUNDLE", "AWS_PROFILE", "AWS_ENDPOINT_URL"] {
        command.env_remove(name);
    }
    for (name, value) in server.iter().flat_map(|server| server.aws_env()) {
        if name != "AWS_ENDPOINT_URL" {
            command.env(name, value);
        }
    }
    Ok(command)
}

/// One agent per host.
struct Agents(Vec<Process>);

impl Agents {
    fn start(hosts: &Hosts, dir: &TempDir) -> Result<Self> {
        let mut agents = Self(Vec::new());
        for k in 1..=AGENTS {
            let line = format!("agent --listen 0.0.0.0:{PORT}");
            let mut command = on_host(hosts, &format!("h{k}"), &line, None)?;
            let path = dir.path().join(format!("agent-{k}.log"));
            let log = File::create(&path).map_err(files::at(&path))?;
            agents
                .0
                .push(Process::start(command.stdout(Stdio::null()).stderr(log))?);
        }
        Ok(agents)
    }

    /// The addresses of all agents.
    fn list() -> String {
        let one = |k| format!("{SUBNET}.{}:{PORT}", 10 + k);
        (1..=AGENTS).map(one).collect::<Vec<_>>().join(",")
    }
}

/// Shared by all cases.
struct Bench {
    hosts: Hosts,
    server: Serve,
    url: String,
    dir: TempDir,
}

impl Bench {
    /// Arguments of a run of `load` that writes to `out`.
    fn arguments(&self, out: &str, load: &str) -> String {
        format!(
            "run mixed --target s3://bench/x --create-bucket --endpoint-url {} --objects 200 --size 4KiB \
             --no-calibration --out {out} --set phases.run.steady-state=false {load}",
            self.url
        )
    }

    fn begin(&self, args: &str) -> Result<Process> {
        Process::recorded(&mut on_host(
            &self.hosts,
            COORDINATOR,
            args,
            Some(&self.server),
        )?)
    }

    /// Starts a run of `load` on all agents.
    fn agents_run(&self, out: &str, timeout: &str, load: &str) -> Result<Process> {
        let list = Agents::list();
        let load = format!("{load} --agents {list} --agent-timeout {timeout}");
        self.begin(&self.arguments(out, &load))
    }

    /// Like [`Bench::agents_run`], returning once every agent has delivered two measured intervals.
    fn measuring(&self, out: &str, timeout: &str, load: &str) -> Result<Process> {
        let mut run = self.agents_run(out, timeout, load)?;
        let measured = |agent: &Value| {
            let last = &agent["last_interval"];
            last["phase"].as_u64() >= Some(2) && last["index"].as_u64() >= Some(1)
        };
        wait_until("the agents measure", DEADLINE, || {
            let agents = agents_json(out).unwrap_or_default();
            let all = agents.len() == AGENTS as usize && agents.iter().all(measured);
            if !all {
                run.still_runs()?;
            }
            Ok(all)
        })?;
        Ok(run)
    }

    /// Fails unless the result left in `out` is readable and says that it is incomplete.
    fn readable(&self, out: &str) -> Result {
        let line = format!("report {out}");
        let mut report = on_host(&self.hosts, COORDINATOR, &line, None)?;
        done(&mut report)?.expect(0, &["INCOMPLETE"])
    }
}

/// The agents as the run in `out` reports them.
pub(super) fn agents_json(out: &str) -> Option<Vec<Value>> {
    let file = files::json(Path::new(out).join("agents.json")).ok()?;
    file["agents"].as_array().cloned()
}

/// All cases between namespaces.
pub(crate) fn all() -> Result {
    need_programs(&[("zstd", "zstd")])?;
    let hosts = Hosts::start(AGENTS + 1, SUBNET, "blc")?;
    let dir = TempDir::new("agents")?;
    let server = Serve::start("--store memory --threads 1")?;
    let port = server.endpoint().0.rsplit(':').next().unwrap_or_default();
    hosts.set(&format!("expose {port}"))?;
    let bench = Bench {
        url: format!("http://{SUBNET}.1:{port}"),
        hosts,
        server,
        dir,
    };
    steps(&[
        ("same operations as one process", &|| same(&bench)),
        ("SIGKILL of an agent", &|| killed(&bench)),
        ("a partition longer than the time-out", &|| cut_off(&bench)),
        ("a partition shorter than the time-out", &|| {
            cut_short(&bench)
        }),
        ("a stopped coordinator", &|| stopped(&bench)),
        ("SIGKILL of the coordinator", &|| headless(&bench)),
        ("200 ms of delay", &|| delayed(&bench)),
    ])
}

/// An operation without its time and its agent.
type What = Vec<String>;

/// The operations in the operation logs of a run, and the ascending response times of its successful reads.
fn operations(out: &str) -> Result<(BTreeSet<What>, Vec<u64>)> {
    let manifest = files::json(Path::new(out).join("run.json"))?;
    let run_id = text(&manifest["run_id"]);
    let (mut all, mut times) = (BTreeSet::new(), Vec::new());
    for path in files::list(Path::new(out))? {
        if !path.to_string_lossy().ends_with(".csv.zst") {
            continue;
        }
        let log = output(cmd("zstd", ["-dcq"]).arg(&path))?;
        let mut lines = log.lines();
        let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let at = |name: &str| {
            let found = names.iter().position(|known| *known == name);
            found.ok_or_else(|| format!("the operation log has no column {name}"))
        };
        let wanted = ["phase", "work", "class", "seq", "key", "size"];
        let wanted = wanted.map(at).into_iter().collect::<Result<Vec<_>>>()?;
        let (due, done, outcome) = (at("due_ns")?, at("done_ns")?, at("outcome")?);
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            let cell = |i: usize| cells.get(i).copied().unwrap_or_default();
            all.insert(
                wanted
                    .iter()
                    .map(|i| cell(*i).replace(run_id, "RUN"))
                    .collect(),
            );
            if cell(wanted[0]) == "run" && cell(wanted[2]) == "get" && cell(outcome) == "ok" {
                let number = |i: usize| cell(i).parse::<u64>().unwrap_or_default();
                times.push(number(done).saturating_sub(number(due)));
            }
        }
    }
    times.sort_unstable();
    Ok((all, times))
}

fn same(bench: &Bench) -> Result {
    let load = "--rate 400 --duration 5s --seed 11 --op-log=csv.zst --output json";
    let (one, many) = (bench.dir.file("one"), bench.dir.file("many"));
    let alone = bench.arguments(&one, &format!("{load} --threads 1"));
    bench.begin(&alone)?.end(DEADLINE)?.expect_code(0)?;
    let _agents = Agents::start(&bench.hosts, &bench.dir)?;
    let all = bench.agents_run(&many, "10s", load)?.end(DEADLINE)?;
    all.expect_code(0)?;
    // The agents have a network between them and no certificates.
    let clear = "cross the network without TLS";
    ensure(all.stdout.contains(clear), || {
        format!("the result does not say {clear:?}")
    })?;
    let (of_one, _) = operations(&one)?;
    let (of_many, times) = operations(&many)?;
    ensure(of_one == of_many && of_one.len() >= 2000, || {
        let differing = of_one.symmetric_difference(&of_many);
        let (one, many) = (of_one.len(), of_many.len());
        let some = differing.take(3).collect::<Vec<_>>();
        format!("{one} operations of one process, {many} of eight agents, such as {some:?}")
    })?;
    // Uses the same rank as the merged histogram, whose buckets are 0.1 % wide.
    let result = all.json()?;
    let mut classes = items(&run_phase(&result)?["classes"]);
    let get = classes.find(|class| class["class"] == "get");
    let response = &get.ok_or("the result has no class get")?["response"];
    let count = times.len();
    ensure(whole(&response["n"]) == count as u64, || {
        format!("{count} operations in the log, in the result {response}")
    })?;
    for q in [0.5, 0.9, 0.95, 0.99] {
        let merged = percentile_ns(response, q)? as u64;
        let rank = ((q * count as f64 - 1e-9).ceil() as usize).clamp(1, count);
        let exact = times[rank - 1];
        ensure(
            merged >= exact && merged - exact <= exact / 1000 + 1,
            || format!("at {q}: {merged} ns from histograms, {exact} ns from the operations"),
        )?;
    }
    Ok(())
}

/// A minute of load; every fault cuts it short.
const MINUTE: &str = "--rate 200 --duration 60s";

/// Fails unless the run ends soon with a readable result that says it is incomplete.
fn incomplete(bench: &Bench, out: &str, run: Process, lost: &str) -> Result {
    let run = run.end(DEADLINE)?;
    run.expect(4, &["INCOMPLETE", lost])?;
    ensure(run.took <= Duration::from_secs(55), || {
        format!("the run noticed only after {:.0} s", run.took.as_secs_f64())
    })?;
    bench.readable(out)
}

fn killed(bench: &Bench) -> Result {
    let agents = Agents::start(&bench.hosts, &bench.dir)?;
    let out = bench.dir.file("killed");
    let run = bench.measuring(&out, "10s", MINUTE)?;
    agents.0[2].signal(libc::SIGKILL)?;
    incomplete(bench, &out, run, "agent 2")
}

fn partition(bench: &Bench) -> Result {
    bench.hosts.set("partition h3")?;
    std::thread::sleep(Duration::from_secs(5));
    bench.hosts.set("clear h3")
}

fn cut_off(bench: &Bench) -> Result {
    let _agents = Agents::start(&bench.hosts, &bench.dir)?;
    let out = bench.dir.file("cut-off");
    let run = bench.measuring(&out, "3s", MINUTE)?;
    partition(bench)?;
    incomplete(bench, &out, run, "silent for 3 s")?;
    let said = files::read(bench.dir.file("agent-3.log"))?;
    ensure(said.contains("the load was stopped"), || {
        format!("the isolated agent says: {said}")
    })
}

fn cut_short(bench: &Bench) -> Result {
    let _agents = Agents::start(&bench.hosts, &bench.dir)?;
    let out = bench.dir.file("cut-short");
    let run = bench.measuring(&out, "40s", "--rate 200 --duration 25s")?;
    partition(bench)?;
    let run = run.end(DEADLINE)?;
    // Operations of the isolated agent waited and may have failed, which the verdict reports; but nothing may be
    // missing.
    ensure(!run.stdout.contains("INCOMPLETE") && run.code != 4, || {
        format!("exit code {}: {}", run.code, run.said())
    })?;
    let agents = agents_json(&out).unwrap_or_default();
    ensure(
        agents.iter().all(|agent| agent["state"] == "finished"),
        || format!("{agents:?}"),
    )
}

/// Sends the signal `what` to the coordinator while all agents measure. The agents must stop their load and say
/// `word`, and what was measured before must be readable.
fn without_coordinator(bench: &Bench, name: &str, what: libc::c_int, word: &str) -> Result {
    let _agents = Agents::start(&bench.hosts, &bench.dir)?;
    let out = bench.dir.file(name);
    let mut run = bench.measuring(&out, "3s", MINUTE)?;
    run.signal(what)?;
    let quiet = wait_until(
        "the agents stop without their coordinator",
        Duration::from_secs(60),
        || {
            Ok((1..=AGENTS).all(|k| {
                let said = files::read(bench.dir.file(&format!("agent-{k}.log")));
                said.is_ok_and(|said| {
                    said.contains(word) && said.contains("; the load was stopped")
                })
            }))
        },
    );
    // A stopped coordinator is killed as it is; its directory must still be readable.
    run.kill()?;
    quiet?;
    bench.readable(&out)
}

fn stopped(bench: &Bench) -> Result {
    without_coordinator(bench, "stopped", libc::SIGSTOP, "silent for 3 s")
}

fn headless(bench: &Bench) -> Result {
    // The kernel closes the connections, which the agents notice before any time-out.
    without_coordinator(bench, "headless", libc::SIGKILL, "the coordinator")
}

fn delayed(bench: &Bench) -> Result {
    let _agents = Agents::start(&bench.hosts, &bench.dir)?;
    bench.hosts.set("delay h2 200")?;
    let out = bench.dir.file("delayed");
    let run = bench.agents_run(&out, "10s", "--rate 80 --duration 8s")?;
    let outcome = run.end(DEADLINE);
    bench.hosts.set("clear h2")?;
    let outcome = outcome?;
    outcome.expect_code(0)?;
    ensure(!outcome.stdout.contains("INCOMPLETE"), || outcome.said())?;
    let agents = agents_json(&out).unwrap_or_default();
    for (k, agent) in agents.iter().enumerate() {
        let bound = whole(&agent["clock_bound_ns"]);
        let offset = agent["wall_offset_ns"].as_i64().unwrap_or(i64::MAX);
        // All agents share one machine and one wall clock, so the offset must lie within its bound, plus what may
        // pass between two readings on a busy machine.
        let far = k == 1;
        let right = offset.unsigned_abs() <= bound + 50_000_000
            && far == (bound > 90_000_000)
            && bound <= 300_000_000;
        ensure(right, || {
            format!("agent {k}: wall clock off by {offset} ns, bound {bound} ns")
        })?;
    }
    Ok(())
}
