//! Runs on many hosts: network namespaces with faults between them.
//!
//! Eight agents (h1 to h8) and a coordinator (h9) each have a network of their own; the store is on the
//! machine itself (h0). Every case ends in a labelled result within its deadline.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::own::{Serve, TempDir, program};
use crate::sh::{Result, cmd, need_programs, output, root, step};

/// Agents, and the host of the coordinator behind them.
const AGENTS: u32 = 8;
const COORDINATOR: &str = "h9";
/// Network of the hosts, apart from the script's own default.
const SUBNET: &str = "10.78.0";
const PORT: u16 = 7400;
pub(super) const TOKEN: (&str, &str) = ("BUCKETLOAD_AGENT_TOKEN", "conformance-token-0001");
/// Far beyond what any case takes.
const DEADLINE: Duration = Duration::from_secs(240);

/// The hosts; their networks are deleted when dropped.
struct Hosts {
    home: TempDir,
}

impl Hosts {
    fn start() -> Result<Self> {
        need_programs(&[
            ("ip", "iproute2"),
            ("iptables", "iptables"),
            ("nft", "nftables"),
            ("zstd", "zstd"),
        ])?;
        let hosts = Self {
            home: TempDir::new("netns")?,
        };
        hosts.netns(&["start"])?;
        Ok(hosts)
    }

    fn script(&self, args: &[&str]) -> Command {
        let script = root().join("servers/netns.sh");
        let mut command = cmd(&script.to_string_lossy(), args);
        command
            .env("SERVERS_HOME", self.home.path())
            .env("NETNS_HOSTS", (AGENTS + 1).to_string())
            .env("NETNS_SUBNET", SUBNET)
            .env("NETNS_PREFIX", "blc");
        command
    }

    fn netns(&self, args: &[&str]) -> Result {
        output(&mut self.script(args)).map(drop)
    }

    /// A call of the program on `host`, with the credentials only where they are needed.
    fn program(&self, host: &str, args: &[&str], server: Option<&Serve>) -> Result<Command> {
        let program = program()?.to_string_lossy().into_owned();
        let mut all = vec!["exec", host, &program];
        all.extend(args);
        let mut command = self.script(&all);
        command.env(TOKEN.0, TOKEN.1);
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
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _ = output(&mut self.script(&["stop"]));
    }
}

/// An agent on each host.
struct Agents(Vec<Child>);

impl Agents {
    fn start(hosts: &Hosts, dir: &TempDir) -> Result<Self> {
        let mut agents = Self(Vec::new());
        for k in 1..=AGENTS {
            let listen = format!("0.0.0.0:{PORT}");
            let mut command =
                hosts.program(&format!("h{k}"), &["agent", "--listen", &listen], None)?;
            let log = std::fs::File::create(dir.file(&format!("agent-{k}.log")));
            let child = command
                .stdout(Stdio::null())
                .stderr(log.map_err(|e| e.to_string())?)
                .spawn()
                .map_err(|e| format!("agent on h{k}: {e}"))?;
            agents.0.push(child);
        }
        Ok(agents)
    }

    /// The addresses of all of them.
    fn list() -> String {
        let one = |k| format!("{SUBNET}.{}:{PORT}", 10 + k);
        (1..=AGENTS).map(one).collect::<Vec<_>>().join(",")
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What is common to all cases.
struct Bench {
    hosts: Hosts,
    server: Serve,
    url: String,
    dir: TempDir,
}

/// A run that has ended.
pub(super) struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
    took: Duration,
}

impl Ended {
    /// Everything that it printed.
    pub(super) fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    pub(super) fn expect(&self, code: i32, words: &[&str]) -> Result {
        let all = format!("exit code {}\n{}{}", self.code, self.stdout, self.stderr);
        if self.code != code {
            return Err(format!("wanted exit code {code}: {all}"));
        }
        match words.iter().find(|word| !all.contains(**word)) {
            Some(word) => Err(format!("nothing says {word:?}: {all}")),
            None => Ok(()),
        }
    }
}

impl Bench {
    /// Arguments of a run of `load` into `out`.
    fn arguments<'a>(&'a self, out: &'a str, load: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
        let mut args = vec![
            "run",
            "mixed",
            "--target",
            "s3://bench/x",
            "--create-bucket",
            "--endpoint-url",
            &self.url,
            "--objects",
            "200",
            "--size",
            "4KiB",
            "--no-calibration",
            "--out",
            out,
            "--set",
            "phases.run.steady-state=false",
        ];
        args.extend(load);
        args.extend(more);
        args
    }

    fn begin(&self, args: &[&str]) -> Result<(Child, Instant)> {
        let mut command = self.hosts.program(COORDINATOR, args, Some(&self.server))?;
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        Ok((child, Instant::now()))
    }

    /// A run of `load` by all agents.
    fn agents_run(&self, out: &str, timeout: &str, load: &[&str]) -> Result<(Child, Instant)> {
        let list = Agents::list();
        let more = ["--agents", &list, "--agent-timeout", timeout];
        self.begin(&self.arguments(out, load, &more))
    }

    /// Waits until every agent of `run` has delivered two intervals of the measurement.
    fn measuring(&self, (run, begun): &mut (Child, Instant), out: &str) -> Result {
        let measured = |agent: &Value| {
            let last = &agent["last_interval"];
            last["phase"].as_u64() >= Some(2) && last["index"].as_u64() >= Some(1)
        };
        while begun.elapsed() < DEADLINE {
            let agents = agents_json(out).unwrap_or_default();
            if agents.len() == AGENTS as usize && agents.iter().all(measured) {
                return Ok(());
            }
            if let Some(status) = run.try_wait().map_err(|e| e.to_string())? {
                let (stdout, stderr) = (drain(run.stdout.take()), drain(run.stderr.take()));
                let said = [stdout, stderr].map(|pipe| pipe.join().unwrap_or_default());
                return Err(format!(
                    "the run ended too early ({status}): {}",
                    said.concat()
                ));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err("the agents did not begin to measure".to_owned())
    }
}

/// Reads a pipe to its end beside the child, which would wait for room in it otherwise.
fn drain(pipe: Option<impl std::io::Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        // What could not be read is missing where it is looked for.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Waits for the end, at most for the deadline: a run that hangs is killed and reported.
pub(super) fn end(run: (Child, Instant)) -> Result<Ended> {
    end_within(run, DEADLINE)
}

/// The same with another deadline.
pub(super) fn end_within(
    (mut child, begun): (Child, Instant),
    deadline: Duration,
) -> Result<Ended> {
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    while child.try_wait().map_err(|e| e.to_string())?.is_none() {
        if begun.elapsed() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            let said = stderr.join().unwrap_or_default();
            return Err(format!("the run hung for {} s: {said}", deadline.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let took = begun.elapsed();
    let status = child.wait().map_err(|e| e.to_string())?;
    Ok(Ended {
        code: status.code().unwrap_or(-1),
        stdout: stdout.join().unwrap_or_default(),
        stderr: stderr.join().unwrap_or_default(),
        took,
    })
}

pub(super) fn agents_json(out: &str) -> Option<Vec<Value>> {
    let text = std::fs::read(Path::new(out).join("agents.json")).ok()?;
    let file: Value = serde_json::from_slice(&text).ok()?;
    file["agents"].as_array().cloned()
}

fn signal(child: &Child, signal: libc::c_int) -> Result {
    let pid = libc::pid_t::try_from(child.id()).map_err(|e| e.to_string())?;
    // SAFETY: sends a signal to a child of ours that has not been waited for; touches no memory.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error().to_string()),
    }
}

/// Everything between namespaces.
pub(crate) fn all() -> Result {
    let hosts = Hosts::start()?;
    let dir = TempDir::new("agents")?;
    let server = Serve::start(&["--store", "memory", "--threads", "1"])?;
    let port = server
        .endpoint()
        .0
        .rsplit_once(':')
        .map_or("", |(_, port)| port)
        .to_owned();
    hosts.netns(&["expose", &port])?;
    let bench = Bench {
        url: format!("http://{SUBNET}.1:{port}"),
        hosts,
        server,
        dir,
    };
    type Case = (&'static str, fn(&Bench) -> Result);
    let cases: [Case; 7] = [
        ("same operations as one process", same),
        ("SIGKILL of an agent", killed),
        ("a partition longer than the time-out", cut_off),
        ("a partition shorter than the time-out", cut_short),
        ("a stopped coordinator", stopped),
        ("SIGKILL of the coordinator", headless),
        ("200 ms of delay", delayed),
    ];
    let failures: Vec<String> = cases
        .into_iter()
        .filter_map(|(name, case)| step(name, || case(&bench)).err())
        .collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("\n"))
    }
}

/// An operation without when and by whom.
type What = Vec<String>;

/// The operations of an operation log, and the response times of its successful reads, ascending.
fn operations(out: &str) -> Result<(BTreeSet<What>, Vec<u64>)> {
    let manifest = std::fs::read(Path::new(out).join("run.json")).map_err(|e| e.to_string())?;
    let manifest: Value = serde_json::from_slice(&manifest).map_err(|e| e.to_string())?;
    let run_id = manifest["run_id"].as_str().unwrap_or_default().to_owned();
    let (mut all, mut times) = (BTreeSet::new(), Vec::new());
    for entry in std::fs::read_dir(out).map_err(|e| e.to_string())? {
        let path = entry.map_err(|e| e.to_string())?.path();
        if !path.to_string_lossy().ends_with(".csv.zst") {
            continue;
        }
        let text = output(cmd("zstd", ["-dcq"]).arg(&path))?;
        let mut lines = text.lines();
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
                    .map(|i| cell(*i).replace(&run_id, "RUN"))
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
    let load = [
        "--rate",
        "400",
        "--duration",
        "5s",
        "--seed",
        "11",
        "--op-log=csv.zst",
        "--output",
        "json",
    ];
    let (one, many) = (bench.dir.file("one"), bench.dir.file("many"));
    let alone = end(bench.begin(&bench.arguments(&one, &load, &["--threads", "1"]))?)?;
    alone.expect(0, &[])?;
    let _agents = Agents::start(&bench.hosts, &bench.dir)?;
    let all = end(bench.agents_run(&many, "10s", &load)?)?;
    // There is a network between them, and they have no certificates.
    let clear = "cross the network without TLS";
    all.expect(0, &[clear])?;
    if !all.stdout.contains(clear) {
        return Err(format!("the result does not say {clear:?}"));
    }
    let (of_one, _) = operations(&one)?;
    let (of_many, times) = operations(&many)?;
    if of_one != of_many || of_one.len() < 2000 {
        let differing = of_one
            .symmetric_difference(&of_many)
            .take(3)
            .collect::<Vec<_>>();
        return Err(format!(
            "{} operations of one process, {} of eight agents, such as {differing:?}",
            of_one.len(),
            of_many.len()
        ));
    }
    // The same rank as in the merged histogram, whose buckets are 0.1 % wide.
    let result: Value = serde_json::from_str(&all.stdout).map_err(|e| e.to_string())?;
    let phases = result["phases"].as_array().cloned().unwrap_or_default();
    let classes = phases
        .iter()
        .filter(|p| p["kind"] == "run")
        .flat_map(|p| p["classes"].as_array());
    let get = classes.flatten().find(|c| c["class"] == "get");
    let get = get.ok_or("the result has no class get")?;
    let response = &get["response"];
    if response["n"].as_u64() != Some(times.len() as u64) {
        return Err(format!(
            "{} operations in the log, in the result {response}",
            times.len()
        ));
    }
    for q in [0.5, 0.9, 0.95, 0.99] {
        let merged =
            percentile(response, q).ok_or_else(|| format!("no percentile of {q} in {response}"))?;
        let rank = ((q * times.len() as f64 - 1e-9).ceil() as usize).clamp(1, times.len());
        let exact = times[rank - 1];
        if merged < exact || merged - exact > exact / 1000 + 1 {
            return Err(format!(
                "at {q}: {merged} ns from histograms, {exact} ns from the operations"
            ));
        }
    }
    Ok(())
}

/// The percentile of share `q` of a latency in a result, nanoseconds.
fn percentile(latency: &Value, q: f64) -> Option<u64> {
    let list = latency["percentiles"].as_array()?;
    let found = list.iter().find(|p| p["q"].as_f64() == Some(q))?;
    found["value_ns"].as_u64()
}

/// A minute of load, which every fault cuts short.
const MINUTE: [&str; 4] = ["--rate", "200", "--duration", "60s"];

/// The result says that it is incomplete, soon, and is still there.
fn incomplete(bench: &Bench, out: &str, run: &Ended, lost: &str) -> Result {
    run.expect(4, &["INCOMPLETE", lost])?;
    if run.took > Duration::from_secs(55) {
        return Err(format!("it took {:.0} s to notice", run.took.as_secs_f64()));
    }
    let report = bench.hosts.program(COORDINATOR, &["report", out], None)?;
    readable(report)
}

fn readable(mut report: Command) -> Result {
    let text = output(&mut report)?;
    match text.contains("INCOMPLETE") {
        true => Ok(()),
        false => Err(format!("the report does not say INCOMPLETE: {text}")),
    }
}

fn killed(bench: &Bench) -> Result {
    let agents = Agents::start(&bench.hosts, &bench.dir)?;
    let out = bench.dir.file("killed");
    let mut run = bench.agents_run(&out, "10s", &MINUTE)?;
    bench.measuring(&mut run, &out)?;
    signal(&agents.0[2], libc::SIGKILL)?;
    incomplete(bench, &out, &end(run)?, "agent 2")
}

/// Cuts h3 off for five seconds.
fn partition(bench: &Bench) -> Result {
    bench.hosts.netns(&["partition", "h3"])?;
    std::thread::sleep(Duration::from_secs(5));
    bench.hosts.netns(&["clear", "h3"])
}

fn cut_off(bench: &Bench) -> Result {
    let _agents = Agents::start(&bench.hosts, &bench.dir)?;
    let out = bench.dir.file("cut-off");
    let mut run = bench.agents_run(&out, "3s", &MINUTE)?;
    bench.measuring(&mut run, &out)?;
    partition(bench)?;
    incomplete(bench, &out, &end(run)?, "silent for 3 s")?;
    let said = std::fs::read_to_string(bench.dir.file("agent-3.log")).unwrap_or_default();
    match said.contains("the load was stopped") {
        true => Ok(()),
        false => Err(format!("the agent that was cut off says: {said}")),
    }
}

fn cut_short(bench: &Bench) -> Result {
    let _agents = Agents::start(&bench.hosts, &bench.dir)?;
    let out = bench.dir.file("cut-short");
    let load = ["--rate", "200", "--duration", "25s"];
    let mut run = bench.agents_run(&out, "40s", &load)?;
    bench.measuring(&mut run, &out)?;
    partition(bench)?;
    let run = end(run)?;
    // The operations of the agent that was cut off waited, and may have failed: the verdict says so,
    // but nothing is missing.
    if run.stdout.contains("INCOMPLETE") || run.code == 4 {
        return Err(format!(
            "exit code {}: {}{}",
            run.code, run.stdout, run.stderr
        ));
    }
    let agents = agents_json(&out).unwrap_or_default();
    match agents.iter().all(|agent| agent["state"] == "finished") {
        true => Ok(()),
        false => Err(format!("{agents:?}")),
    }
}

/// A coordinator that gets `what` while all agents measure: they stop their load and say `word`, and what
/// was measured until then can be read.
fn without_coordinator(bench: &Bench, name: &str, what: libc::c_int, word: &str) -> Result {
    let _agents = Agents::start(&bench.hosts, &bench.dir)?;
    let out = bench.dir.file(name);
    let mut run = bench.agents_run(&out, "3s", &MINUTE)?;
    bench.measuring(&mut run, &out)?;
    let (mut child, _) = run;
    signal(&child, what)?;
    let begun = Instant::now();
    let mut quiet = false;
    while !quiet && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(200));
        quiet = (1..=AGENTS).all(|k| {
            let said = std::fs::read_to_string(bench.dir.file(&format!("agent-{k}.log")));
            said.is_ok_and(|said| said.contains(word) && said.contains("; the load was stopped"))
        });
    }
    // One that was stopped is killed as it is: its directory must be readable all the same.
    child.kill().map_err(|e| e.to_string())?;
    let _ = child.wait();
    if !quiet {
        return Err("the agents went on without their coordinator".to_owned());
    }
    readable(bench.hosts.program(COORDINATOR, &["report", &out], None)?)
}

fn stopped(bench: &Bench) -> Result {
    without_coordinator(bench, "stopped", libc::SIGSTOP, "silent for 3 s")
}

fn headless(bench: &Bench) -> Result {
    // The kernel closes its connections, which is noticed before any time-out.
    without_coordinator(bench, "headless", libc::SIGKILL, "the coordinator")
}

fn delayed(bench: &Bench) -> Result {
    let _agents = Agents::start(&bench.hosts, &bench.dir)?;
    bench.hosts.netns(&["delay", "h2", "200"])?;
    let out = bench.dir.file("delayed");
    let outcome = end(bench.agents_run(&out, "10s", &["--rate", "80", "--duration", "8s"])?);
    bench.hosts.netns(&["clear", "h2"])?;
    let outcome = outcome?;
    if outcome.code != 0 || outcome.stdout.contains("INCOMPLETE") {
        return Err(format!(
            "exit code {}: {}{}",
            outcome.code, outcome.stdout, outcome.stderr
        ));
    }
    let agents = agents_json(&out).unwrap_or_default();
    for (k, agent) in agents.iter().enumerate() {
        let bound = agent["clock_bound_ns"].as_u64().unwrap_or_default();
        let offset = agent["wall_offset_ns"].as_i64().unwrap_or(i64::MAX);
        // One machine, so one wall clock: the offset must lie within its bound, and what may pass between
        // two readings on a busy machine.
        let far = k == 1;
        if offset.unsigned_abs() > bound + 50_000_000
            || far != (bound > 90_000_000)
            || bound > 300_000_000
        {
            return Err(format!(
                "agent {k}: wall clock off by {offset} ns, bound {bound} ns"
            ));
        }
    }
    Ok(())
}
