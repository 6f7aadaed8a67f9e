//! `bucketload controller`, and `submit`, `cancel`, `info` and `top`, which talk to one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bucketload_agents::{Access, probe_async};
use bucketload_console::agents::AgentAddress;
use bucketload_console::client::{Client, ClientError};
use bucketload_console::controller::{Controller, ControllerConfig};
use bucketload_console::fleet::{Fleet, ProbeAnswer, Prober};
use bucketload_console::launcher::{BoxFuture, ProcessLauncher};
use bucketload_console::options::{OPTIONS, OptionKind};
use bucketload_console::server::Server;
use bucketload_console::tui::source::{ControllerSource, RunDirSource, Source};
use bucketload_console::web::{Console, ConsoleConfig, router};
use bucketload_console::{JobInfo, tui};
use bucketload_results::rundir::Manifest;
use bucketload_token::AccessToken;

use crate::cli::GlobalArgs;
use crate::cli::controller::{
    CancelArgs, ControllerArgs, InfoArgs, ReachArgs, SubmitArgs, TopArgs,
};
use crate::commands::docs::print;
use crate::distributed::access;
use crate::exit::{Exit, Failure, OrFail};
use crate::prometheus::TOKEN_ENV;
use crate::signals::{self, Signals};

/// Longest wait for the answer of an agent whose state is checked.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs until a signal comes.
pub(crate) fn execute(args: &ControllerArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let token = token(args.token_file.as_deref())?;
    check_exposure(args, token.is_some())?;
    let fleet = Arc::new(Fleet::new(args.agents.clone(), prober(args)?));
    let roots = roots(&args.allow_roots)?;
    let mut common = agent_flags(args)?;
    common.push("--confined".into());
    for root in &roots {
        common.extend(["--allow-root".into(), root.clone().into_os_string()]);
    }
    let launcher = ProcessLauncher::this_program(common)
        .map_err(|e| Failure::aborted(format!("cannot find this program: {e}")))?;
    let controller = Controller::open(ControllerConfig {
        data: args.data.clone(),
        launcher: Arc::new(launcher),
        grace: args.grace,
        clock: Arc::new(unix_ms),
    })
    .or_usage()?;
    let tls = args.tls_cert.as_deref().zip(args.tls_key.as_deref());
    let server = Server::bind(args.listen, tls).or_usage()?;
    let address = server.address().or_aborted()?;
    let console = Console::new(
        controller.clone(),
        ConsoleConfig {
            token,
            tls: tls.is_some(),
            is_overheard: tls.is_none() && !address.ip().is_loopback(),
            hosts: args.hosts.clone(),
            fleet: Arc::clone(&fleet),
            roots,
        },
    )
    .or_aborted()?;
    let runtime = signals::runtime().or_aborted()?;
    runtime
        .block_on(async {
            let mut signals = Signals::new()?;
            // Printed only after the signal handlers are installed, because an earlier signal kills the process.
            if !global.quiet {
                let scheme = if tls.is_some() { "https" } else { "http" };
                let data = args.data.display();
                eprintln!("bucketload: console: {scheme}://{address}/  data: {data}");
            }
            let stopper = controller.clone();
            tokio::spawn(async move {
                signals.next().await;
                eprintln!("bucketload: the controller is stopping; a current run is stopped and keeps its results");
                stopper.stop();
            });
            tokio::spawn(fleet.poll(controller.clone()));
            let serving = tokio::spawn(server.serve(router(console), controller.stopping()));
            controller.drive().await;
            match serving.await {
                Ok(served) => served,
                Err(e) => Err(std::io::Error::other(e)),
            }
        })
        .map_err(|e| Failure::aborted(format!("controller: {e}")))?;
    Ok(Exit::Ok)
}

/// Checks agents over gRPC.
struct AgentProber(Access);

impl Prober for AgentProber {
    fn probe<'a>(&'a self, agent: &'a AgentAddress) -> BoxFuture<'a, Result<ProbeAnswer, String>> {
        Box::pin(async move {
            let address = agent.to_string();
            let found = probe_async(&address, &self.0, PROBE_TIMEOUT).await;
            // The console shows the agent's name anyway.
            let found = found.map_err(|e| {
                let reason = e.message.strip_prefix(&format!("{address}: "));
                reason.unwrap_or(&e.message).to_owned()
            })?;
            Ok(ProbeAnswer {
                version: found.answer.version,
                host: found.answer.host,
                busy: found.answer.busy,
                clock_offset_ns: found.clock.offset_ns,
                clock_bound_ns: found.clock.bound_ns,
                round_trip_ns: u64::try_from(found.round_trip.as_nanos()).unwrap_or(u64::MAX),
            })
        })
    }
}

fn prober(args: &ControllerArgs) -> Result<Arc<dyn Prober>, Failure> {
    let access = access(args.agent_token_file.as_deref(), &args.agent_tls)?;
    Ok(Arc::new(AgentProber(access)))
}

/// The flags with which every run finds its agents. Paths are absolute, because each run has its own working directory.
fn agent_flags(args: &ControllerArgs) -> Result<Vec<OsString>, Failure> {
    let mut flags = Vec::new();
    if args.agents.is_empty() {
        return Ok(flags);
    }
    let agents: Vec<String> = args.agents.iter().map(ToString::to_string).collect();
    flags.push(format!("--agents={}", agents.join(",")).into());
    let tls = &args.agent_tls;
    for (name, file) in [
        ("--agent-token-file", &args.agent_token_file),
        ("--agent-cert", &tls.agent_cert),
        ("--agent-key", &tls.agent_key),
        ("--agent-ca", &tls.agent_ca),
    ] {
        if let Some(file) = file {
            let file = std::path::absolute(file)
                .map_err(|e| Failure::usage(format!("{name} {}: {e}", file.display())))?;
            flags.extend([name.into(), file.into_os_string()]);
        }
    }
    Ok(flags)
}

/// The directories below which targets may lie, absolute because each run has its own working directory.
fn roots(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let at = |root: &PathBuf| match root.canonicalize() {
        Ok(real) if real.is_dir() => Ok(real),
        Ok(_) => Err(Failure::usage(format!(
            "--allow-root {}: this is no directory; name one",
            root.display()
        ))),
        Err(e) => Err(Failure::usage(format!(
            "--allow-root {}: {e}; create the directory",
            root.display()
        ))),
    };
    named.iter().map(at).collect()
}

/// On addresses other than loopback, a controller needs a token, and TLS unless the user waives that.
fn check_exposure(args: &ControllerArgs, token: bool) -> Result<(), Failure> {
    let listen = args.listen;
    if listen.ip().is_loopback() {
        return Ok(());
    }
    if !token {
        return Err(Failure::usage(format!(
            "--listen {listen}: listening on an address other than loopback needs a token; set it with --token-file FILE or {TOKEN_ENV}"
        )));
    }
    if args.tls_cert.is_none() && !args.allow_plain_http {
        return Err(Failure::usage(format!(
            "--listen {listen}: listening on an address other than loopback needs --tls-cert and --tls-key, or --allow-plain-http on a trusted network"
        )));
    }
    Ok(())
}

/// The token from a file, or from the environment.
pub(crate) fn token(file: Option<&Path>) -> Result<Option<AccessToken>, Failure> {
    AccessToken::find("the console's token", file, TOKEN_ENV).or_usage()
}

fn unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The controller that flags name.
pub(crate) fn client(reach: &ReachArgs) -> Result<Client, Failure> {
    let token = token(reach.token_file.as_deref())?;
    Client::new(&reach.controller, token, reach.ca_bundle.as_deref()).map_err(failure)
}

/// The failure that a failed request means for the user.
pub(crate) fn failure(error: ClientError) -> Failure {
    match error {
        ClientError::Usage(text) | ClientError::Refused(text) => Failure::usage(text),
        ClientError::Unreachable(text) => Failure::aborted(text),
    }
}

/// Submits a workload and prints its identifier, as COSBench's `cli.sh` does.
pub(crate) fn submit(args: &SubmitArgs) -> Result<Exit, Failure> {
    let options = flags(&args.flags).or_usage()?;
    let client = client(&args.reach)?;
    let name = &args.workload;
    let path = Path::new(name);
    let looks_like_file = name.ends_with(".toml") || name.ends_with(".xml") || name.contains('/');
    let job = if looks_like_file || path.is_file() {
        let bytes = std::fs::read(path).map_err(|e| Failure::usage(format!("{name}: {e}")))?;
        let shown = path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        client.submit(Some((&shown, &bytes)), None, &options)
    } else {
        client.submit(None, Some(name), &options)
    };
    let job = job.map_err(failure)?;
    for note in &job.notes {
        eprintln!("bucketload: {note}");
    }
    print(format!("Accepted with ID: {}\n", job.id).as_bytes())
}

/// Cancels a workload and prints its state.
pub(crate) fn cancel(args: &CancelArgs) -> Result<Exit, Failure> {
    let job = client(&args.reach)?.cancel(&args.id).map_err(failure)?;
    print(format!("{}\n", line(&job)).as_bytes())
}

/// Prints the workloads, or one of them.
pub(crate) fn info(args: &InfoArgs) -> Result<Exit, Failure> {
    let client = client(&args.reach)?;
    let jobs = match &args.id {
        Some(id) => vec![client.job(id).map_err(failure)?],
        None => client.jobs().map_err(failure)?,
    };
    if args.json {
        let text = serde_json::to_string_pretty(&jobs).unwrap_or_default();
        return print(format!("{text}\n").as_bytes());
    }
    let mut text = String::new();
    for job in &jobs {
        text += &line(job);
        text.push('\n');
    }
    if args.id.is_none() {
        let active = |job: &&JobInfo| matches!(job.state.as_str(), "queuing" | "processing");
        text += &format!(
            "Total: {} active workloads\n",
            jobs.iter().filter(active).count()
        );
    } else {
        for job in jobs.iter().filter(|job| !job.message.is_empty()) {
            text += &format!("{}\n", job.message);
        }
    }
    print(text.as_bytes())
}

/// Shows a run on the terminal.
pub(crate) fn top(args: &TopArgs) -> Result<Exit, Failure> {
    let mut source: Box<dyn Source> = match &args.directory {
        Some(dir) => {
            // Reports errors before the screen switches.
            Manifest::read(dir).or_usage()?;
            Box::new(RunDirSource::new(dir.clone()))
        }
        None => {
            let client = client(&args.reach)?;
            client.live(None).map_err(failure)?;
            Box::new(ControllerSource::new(client, args.reach.controller.clone()))
        }
    };
    tui::show(source.as_mut())
        .map(|()| Exit::Ok)
        .map_err(|e| Failure::aborted(format!("terminal: {e}")))
}

/// Identifier, date of submission, state, verdict and name.
fn line(job: &JobInfo) -> String {
    let format = time::macros::format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
    let submitted = i64::try_from(job.submitted_ms / 1000)
        .ok()
        .and_then(|s| time::OffsetDateTime::from_unix_timestamp(s).ok())
        .and_then(|at| at.format(&format).ok())
        .unwrap_or_default();
    let state = if job.cancelling && job.state == "processing" {
        "CANCELLING".to_owned()
    } else {
        job.state.to_ascii_uppercase()
    };
    let verdict = job.verdict.as_deref().unwrap_or("-");
    format!("{}\t{submitted}\t{state}\t{verdict}\t{}", job.id, job.name)
}

/// Parses flags of `bucketload run` into names and values.
fn flags(words: &[String]) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--") else {
            return Err(format!("`{word}` is not a flag; write --NAME VALUE"));
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (flag, None),
        };
        let kind = OPTIONS
            .iter()
            .find(|row| row.name == name)
            .map(|row| row.kind);
        let value = match (kind, value) {
            (Some(OptionKind::Flag), None) => "true".to_owned(),
            (_, Some(value)) => value,
            (_, None) => words
                .next()
                .cloned()
                .ok_or_else(|| format!("--{name} needs a value"))?,
        };
        pairs.push((name.to_owned(), value));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::{check_exposure, flags};
    use crate::cli::{Cli, Command};

    #[test]
    fn flags_become_options() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let pairs = flags(&words("--rate 5/s --verify --size=1MiB")).unwrap();
        let pairs: Vec<(&str, &str)> = pairs
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [("rate", "5/s"), ("verify", "true"), ("size", "1MiB")]
        );
        assert!(flags(&words("rate")).is_err());
        assert!(
            flags(&words("--rate"))
                .unwrap_err()
                .contains("needs a value")
        );
    }

    #[test]
    fn other_addresses_need_a_token_and_tls() {
        let args = |line: &str| match Cli::try_parse_from(line.split(' ')).unwrap().command {
            Command::Controller(args) => args,
            other => panic!("{other:?}"),
        };
        let check = |line: &str, token| check_exposure(&args(line), token).map_err(|e| e.message);
        assert!(check("bucketload controller", false).is_ok());
        assert!(check("bucketload controller --listen [::1]:0", false).is_ok());
        let open = "bucketload controller --listen 0.0.0.0:0";
        assert!(check(open, false).unwrap_err().contains("token"));
        assert!(check(open, true).unwrap_err().contains("--tls-cert"));
        assert!(check(&format!("{open} --allow-plain-http"), false).is_err());
        assert!(check(&format!("{open} --allow-plain-http"), true).is_ok());
        assert!(check(&format!("{open} --tls-cert c --tls-key k"), true).is_ok());
        assert!(Cli::try_parse_from(["bucketload", "controller", "--tls-cert", "c"]).is_err());
    }
}
