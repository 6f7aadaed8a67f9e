//! The coordinator's side: finds or starts the agents of a run.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use bucketload_agents::launch::rank::{CONTROLLER_ENV, LaunchedRank, Launcher, detect};
use bucketload_agents::{Access, AgentCommand, Assignment, Fleet, GatherOptions, TOKEN_ENV};
use bucketload_core::plan::Plan;
use bucketload_run::{RunOptions, usable_cores};
use bucketload_token::AccessToken;

use super::broken;
use super::setup::TargetSetup;
use crate::cli::agents::{AgentsArgs, Launch};
use crate::cli::run::LoadArgs;
use crate::cli::target::TargetArgs;
use crate::connection::Connection;
use crate::cosbench;
use crate::embedded::random_hex;
use crate::exit::{Failure, OrFail};
use crate::job::Job;

/// Port on which the coordinator of a Kubernetes job listens.
pub(crate) const PORT: u16 = 7401;

/// The role of this process in a run on many hosts.
pub(crate) enum Role {
    /// Coordinates the run.
    Coordinator(Option<LaunchedRank>),
    /// Works for the coordinator at this address.
    Agent {
        /// `HOST:PORT`.
        controller: String,
        /// Its number.
        rank: u32,
    },
}

/// Finds the role of this process; a launcher may have started the same command several times.
///
/// # Errors
/// When the launcher named by `--launch` has not started this process, or does not provide enough information.
pub(crate) fn role(args: &AgentsArgs) -> Result<Role, Failure> {
    let (name, wanted, number) = match &args.launch {
        Some(Launch::Slurm(n)) => ("srun", &[Launcher::Slurm][..], n),
        Some(Launch::Mpi(n)) => (
            "mpirun",
            &[Launcher::OpenMpi, Launcher::Pmix, Launcher::Pmi][..],
            n,
        ),
        Some(Launch::Kubernetes(n)) => (
            "the job of `bucketload k8s`",
            &[Launcher::Kubernetes][..],
            n,
        ),
        _ => return Ok(Role::Coordinator(None)),
    };
    if number.is_some() {
        return Ok(Role::Coordinator(None));
    }
    let variable = |name: &str| std::env::var(name).ok();
    let place = detect(&variable)
        .map_err(broken)?
        .filter(|place| wanted.contains(&place.launcher));
    let Some(place) = place else {
        return Err(Failure::usage(format!(
            "--launch: this process was not started by {name}; start it that way, or say how many agents \
             to start, such as --launch slurm:4"
        )));
    };
    if place.rank == 0 {
        return Ok(Role::Coordinator(Some(place)));
    }
    let controller = match variable(CONTROLLER_ENV) {
        Some(address) => address,
        None => {
            let leader = place.leader.clone().ok_or_else(|| no_leader(name))?;
            let port = place.port.ok_or_else(|| no_leader(name))?;
            format!("{leader}:{port}")
        }
    };
    Ok(Role::Agent {
        controller,
        rank: place.rank,
    })
}

fn no_leader(launcher: &str) -> Failure {
    Failure::usage(format!(
        "--launch: {launcher} does not say where its first process runs; set {CONTROLLER_ENV} to \
         the HOST:PORT of that process, for all processes"
    ))
}

/// Number of agents that the flags ask for; `None` if there are none, or if the number is not known yet.
pub(crate) fn number(args: &AgentsArgs, place: Option<&LaunchedRank>) -> Option<u32> {
    match &args.launch {
        None => u32::try_from(args.agents.len()).ok().filter(|n| *n > 0),
        Some(Launch::Local(n)) => Some(*n),
        Some(Launch::Ssh(hosts)) => u32::try_from(hosts.len()).ok(),
        Some(Launch::Slurm(n) | Launch::Mpi(n) | Launch::Kubernetes(n)) => {
            n.or_else(|| place?.size)
        }
    }
}

/// Connects to the agents, if the run has any, and makes them carry out the load of `job`.
///
/// # Errors
/// When an agent does not connect or cannot open the target, or works cannot be assigned to the agents.
pub(crate) fn distribute(
    job: &mut Job,
    args: &AgentsArgs,
    load: &LoadArgs,
    place: Option<&LaunchedRank>,
    (connection, flags): (&Connection, &TargetArgs),
) -> Result<(), Failure> {
    if !args.is_distributed() {
        return Ok(());
    }
    let mut fleet = gather(args, place, connection, &job.options.run_id, job.quiet)?;
    if job.plan.is_named() {
        job.options.pins = cosbench::pins(&job.plan, &fleet.snapshot(), &mut job.notes)?;
        fleet.pin(job.options.pins.clone());
    }
    job.options.share.of = fleet.len() as u32;
    job.notes.extend(fleet.snapshot().clear_warning());
    assign(
        &mut fleet,
        args,
        load,
        &job.plan,
        &job.options,
        (connection, flags),
        job.op_log.is_some(),
    )?;
    job.manifest.client.threads = fleet.threads();
    job.agents = Some(fleet.watch());
    let remote = fleet.remote(&job.plan, job.options.interval);
    job.options.remote = Some(RefCell::new(Box::new(remote)));
    Ok(())
}

/// Starts agents as the flags say, and connects to all of them.
///
/// # Errors
/// When an agent does not connect.
fn gather(
    args: &AgentsArgs,
    place: Option<&LaunchedRank>,
    connection: &Connection,
    run_id: &str,
    quiet: bool,
) -> Result<Fleet, Failure> {
    let mut access = super::access(args.agent_token_file.as_deref(), &args.tls)?;
    let mut gather = GatherOptions {
        children: Vec::new(),
        dial: args.agents.clone(),
        listen: None,
        access: access.clone(),
        run_id: run_id.to_owned(),
        timeout: args.agent_timeout,
        deadline: args.agents_wait,
        say: Arc::new(move |text: &str| {
            if !quiet {
                eprintln!("bucketload: {text}");
            }
        }),
    };
    if args.agent_timeout < std::time::Duration::from_secs(1) {
        return Err(Failure::usage(
            "--agent-timeout must be at least 1s; with less, a busy host would count as lost",
        ));
    }
    let mut launched = None;
    match (&args.launch, place) {
        (None, _) => check_reach(connection, &args.agents)?,
        (Some(Launch::Local(n)), _) => {
            gather.children = (0..*n)
                .map(|i| local(&format!("local {i}"), args))
                .collect::<Result<_, _>>()?;
        }
        (Some(Launch::Ssh(hosts)), _) => {
            check_reach(connection, hosts)?;
            let child = |host: &String| ssh(host, args);
            gather.children = hosts.iter().map(child).collect();
        }
        (Some(_), Some(place)) => {
            refuse_embedded(connection)?;
            let size = place.size.ok_or_else(|| {
                Failure::usage(
                    "--launch: the launcher does not say how many processes it started; set \
                     BUCKETLOAD_AGENTS to that number for all of them",
                )
            })?;
            let port = place.port.unwrap_or(PORT);
            let anywhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
            gather.children = vec![local("local 0", args)?];
            if size > 1 {
                let listener = listen(args.agents_listen.unwrap_or(anywhere), &access)?;
                gather.listen = Some((listener, size - 1));
            }
        }
        (Some(launch), None) => {
            refuse_embedded(connection)?;
            let anywhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
            let (program, n) = match launch {
                Launch::Slurm(n) => (Some("srun"), n.unwrap_or(1)),
                Launch::Mpi(n) => (Some("mpirun"), n.unwrap_or(1)),
                _ => (None, launch_number(launch)),
            };
            if program.is_some() && access.token.is_none() {
                // Only the agents need the token, and they get it from this process.
                let made = random_hex(16).or_aborted()?;
                access.token = Some(AccessToken::parse("the agents' token", &made).or_aborted()?);
                gather.access = access.clone();
            }
            let anywhere = match program {
                Some(_) => anywhere,
                None => SocketAddr::new(anywhere.ip(), PORT),
            };
            let listener = listen(args.agents_listen.unwrap_or(anywhere), &access)?;
            if let Some(program) = program {
                let address = listener
                    .local_addr()
                    .map_err(|e| Failure::aborted(format!("--agents-listen: {e}")))?;
                launched = Some(LauncherProcess::start(program, n, address, &access, args)?);
            }
            gather.listen = Some((listener, n));
        }
    }
    let fleet = Fleet::gather(gather).map_err(broken)?;
    // All agents have connected; the launcher ends when they do.
    if let Some(launched) = launched {
        launched.leave();
    }
    Ok(fleet)
}

fn launch_number(launch: &Launch) -> u32 {
    match launch {
        Launch::Kubernetes(Some(n)) => *n,
        _ => 1,
    }
}

/// Sends every agent its assignment.
///
/// # Errors
/// When a file that the target needs cannot be read, or an agent refuses its assignment.
fn assign(
    fleet: &mut Fleet,
    args: &AgentsArgs,
    load: &LoadArgs,
    plan: &Plan,
    options: &RunOptions,
    (connection, target_args): (&Connection, &TargetArgs),
    op_log: bool,
) -> Result<(), Failure> {
    let setup = TargetSetup::new(target_args, connection)?;
    let setup = serde_json::to_value(setup).or_aborted()?;
    let of = fleet.len() as u32;
    let local = matches!(args.launch, Some(Launch::Local(_)));
    let usable = usable_cores().map_err(|e| Failure::aborted(format!("cores: {e}")))?;
    let layout = |index| match local {
        true => divide(&usable, connection.is_local(), load, index, of),
        false => (None, None),
    };
    let assigned = fleet.assign(|index| {
        let (threads, cores) = layout(index);
        Assignment {
            run_id: options.run_id.clone(),
            bucket: options.bucket.clone(),
            prefix: options.prefix.clone(),
            index,
            of,
            pins: options.pins.clone(),
            interval_ns: u64::try_from(options.interval.as_nanos()).unwrap_or(u64::MAX),
            threads,
            cores,
            data: options
                .data
                .as_ref()
                .map(|data| (data.run_id.clone(), data.prefix.clone())),
            op_log,
            plan: plan.clone(),
            setup: setup.clone(),
        }
    });
    assigned.map_err(broken)
}

/// Load threads and cores of agent `index` out of `of` agents on one machine. Agents share the machine's cores, or run
/// unpinned if there are too few.
fn divide(
    usable: &[usize],
    local_target: bool,
    load: &LoadArgs,
    index: u32,
    of: u32,
) -> (Option<u16>, Option<Vec<usize>>) {
    if load.cores.is_some() {
        return (None, None);
    }
    // As in a local run, a target on this machine keeps half of the cores.
    let mine = match local_target {
        true => &usable[..(usable.len() / 2).max(1).min(usable.len())],
        false => usable,
    };
    let (index, of) = (index as usize, (of as usize).max(1));
    let share = (mine.len() / of).max(1);
    let threads = load.threads.map_or(share, usize::from);
    let threads16 = u16::try_from(threads).ok();
    if threads * of > mine.len() {
        return (threads16, Some(Vec::new()));
    }
    let from = index * threads;
    (threads16, Some(mine[from..from + threads].to_vec()))
}

/// The flags of an agent that this command starts.
fn permissions(args: &AgentsArgs) -> impl Iterator<Item = &OsStr> {
    let allowed = args.allow_local_writes.iter();
    allowed.flat_map(|dir| [OsStr::new("--allow-local-writes"), dir.as_os_str()])
}

fn local(name: &str, args: &AgentsArgs) -> Result<AgentCommand, Failure> {
    let program = std::env::current_exe()
        .map_err(|e| Failure::aborted(format!("--launch: cannot find this program: {e}")))?;
    let mut command = Command::new(program);
    command.args(["agent", "--stdio", "--quiet"]);
    command.args(permissions(args));
    command.env_remove(TOKEN_ENV);
    Ok(AgentCommand {
        name: name.to_owned(),
        command,
    })
}

/// An agent through ssh. `BUCKETLOAD_SSH` names another program than `ssh`.
fn ssh(host: &str, args: &AgentsArgs) -> AgentCommand {
    let ssh = std::env::var("BUCKETLOAD_SSH").unwrap_or_else(|_| "ssh".to_owned());
    let mut command = Command::new(ssh);
    // Never prompt, and notice when a host is gone.
    command.args([
        "-T",
        "-o",
        "BatchMode=yes",
        "-o",
        "ServerAliveInterval=5",
        "--",
    ]);
    command.args([host, &args.agent_program, "agent", "--stdio", "--quiet"]);
    // The shell over there splits and expands words.
    let quoted = |word: &OsStr| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"));
    command.args(permissions(args).map(quoted));
    AgentCommand {
        name: host.to_owned(),
        command,
    }
}

fn listen(address: SocketAddr, access: &Access) -> Result<TcpListener, Failure> {
    access.check_listen(address.ip()).map_err(broken)?;
    TcpListener::bind(address)
        .map_err(|e| Failure::usage(format!("--agents-listen {address}: {e}")))
}

/// Checks that `hosts` can reach the target; the embedded server listens on loopback only.
fn check_reach(connection: &Connection, hosts: &[String]) -> Result<(), Failure> {
    let here = |host: &String| {
        host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]")
    };
    match hosts.iter().all(here) {
        true => Ok(()),
        false => refuse_embedded(connection),
    }
}

fn refuse_embedded(connection: &Connection) -> Result<(), Failure> {
    match connection.embedded() {
        None => Ok(()),
        Some(_) => Err(Failure::usage(
            "agents on other hosts cannot reach the embedded server, which listens on loopback only; \
             name a service: --target s3://BUCKET/PREFIX --endpoint-url URL",
        )),
    }
}

/// A scheduler's program that starts agents.
struct LauncherProcess {
    child: Option<std::process::Child>,
}

impl LauncherProcess {
    fn start(
        program: &str,
        n: u32,
        listening: SocketAddr,
        access: &Access,
        args: &AgentsArgs,
    ) -> Result<Self, Failure> {
        use std::os::unix::process::CommandExt as _;
        let host = match listening.ip().is_unspecified() {
            true => rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            false => listening.ip().to_string(),
        };
        let agent = match args.agent_program.as_str() {
            "bucketload" => std::env::current_exe().unwrap_or_else(|_| PathBuf::from("bucketload")),
            other => PathBuf::from(other),
        };
        let mut command = Command::new(program);
        command.args(["-n", &n.to_string()]);
        if program == "mpirun" {
            command.args(["-x", TOKEN_ENV]);
        }
        command.arg(agent).args(["agent", "--quiet"]);
        command.args(permissions(args));
        command.args(["--controller", &format!("{host}:{}", listening.port())]);
        if let Some(token) = &access.token {
            command.env(TOKEN_ENV, token.expose());
        }
        for (flag, path) in [
            ("--agent-cert", &args.tls.agent_cert),
            ("--agent-key", &args.tls.agent_key),
            ("--agent-ca", &args.tls.agent_ca),
        ] {
            if let Some(path) = path {
                command.arg(flag).arg(path);
            }
        }
        command.stdin(std::process::Stdio::null());
        // Ctrl-C is for the coordinator.
        command.process_group(0);
        let child = command
            .spawn()
            .map_err(|e| Failure::usage(format!("--launch: {program}: {e}")))?;
        Ok(Self { child: Some(child) })
    }

    /// Lets the program run until its agents end.
    fn leave(mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        // Reaps the program, which would otherwise stay a zombie until this process ends.
        let _ = std::thread::Builder::new()
            .name("launcher".to_owned())
            .spawn(move || child.wait());
    }
}

impl Drop for LauncherProcess {
    /// Ends the program if the agents did not connect.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::divide;
    use crate::cli::run::LoadArgs;

    #[test]
    fn agents_on_one_machine_share_its_cores() {
        let load = LoadArgs::default();
        let cores = [0, 1, 2, 3, 4, 5, 6, 7];
        let of = |index| divide(&cores, true, &load, index, 2);
        assert_eq!(of(0), (Some(2), Some(vec![0, 1])));
        assert_eq!(of(1), (Some(2), Some(vec![2, 3])));
        let crowded = divide(&cores[..2], false, &load, 3, 4);
        assert_eq!(crowded, (Some(1), Some(Vec::new())), "unpinned");
        let threads = LoadArgs {
            threads: Some(4),
            ..LoadArgs::default()
        };
        assert_eq!(
            divide(&cores, false, &threads, 1, 2),
            (Some(4), Some(vec![4, 5, 6, 7]))
        );
    }
}
