//! `bucketload agent`: carries out a share of a coordinator's runs.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use bucketload_agents::launch::rank::{LaunchedRank, detect};
use bucketload_agents::{Access, AgentOptions, AgentsError, dial, listen, serve_stdio};
use tokio::sync::oneshot;

use crate::cli::GlobalArgs;
use crate::cli::agents::{AgentArgs, AgentsArgs};
use crate::cli::run::LoadArgs;
use crate::distributed::fleet::{self, Role};
use crate::distributed::{access, broken, host::DriverHost};
use crate::embedded::Announcement;
use crate::exit::{Exit, Failure};
use crate::signals::{self, Signals};

/// Decides whether this process coordinates the agents of a command. If a launcher started the command several times
/// and this process is an agent, it does its share here, and the command is over.
///
/// # Errors
/// When the launcher does not provide enough information, or the agent's run was lost.
pub(crate) fn coordinates(
    args: &AgentsArgs,
    load: &LoadArgs,
    quiet: bool,
) -> Result<ControlFlow<Exit, Option<LaunchedRank>>, Failure> {
    if load.dry_run {
        return Ok(ControlFlow::Continue(None));
    }
    match fleet::role(args)? {
        Role::Coordinator(place) => Ok(ControlFlow::Continue(place)),
        Role::Agent { controller, rank } => {
            let access = access(args.agent_token_file.as_deref(), &args.tls)?;
            let options = options(access, Some(rank), args.allow_local_writes.clone(), quiet);
            join(&controller, options, args.agents_wait).map(ControlFlow::Break)
        }
    }
}

/// Serves until the process is ended, or for one run.
pub(crate) fn execute(args: &AgentArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let access = access(args.token_file.as_deref(), &args.tls)?;
    let rank = match args.rank {
        Some(rank) => Some(rank),
        None if args.controller.is_some() => detect(&|name| std::env::var(name).ok())
            .map_err(broken)?
            .map(|place| place.rank),
        None => None,
    };
    let options = options(access, rank, args.allow_local_writes.clone(), global.quiet);
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        if args.stdio {
            return serve_stdio(options).await.map(|()| Exit::Ok);
        }
        if let Some(controller) = &args.controller {
            return dial(options, controller, args.wait)
                .await
                .map(|()| Exit::Ok);
        }
        let Some(address) = args.listen else {
            return Err(AgentsError::usage(
                "name an address with --listen or --controller, or use --stdio",
            ));
        };
        options.access.check_listen(address.ip())?;
        let usage = |e: std::io::Error| AgentsError::usage(format!("--listen {address}: {e}"));
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .map_err(usage)?;
        let listening = listener.local_addr().map_err(usage)?;
        // Before anybody learns the address: whoever reads it may send a signal at once.
        let signals = Signals::new()
            .map_err(|e| AgentsError::usage(format!("cannot handle signals: {e}")))?;
        if args.announce {
            // The agent works even if nobody reads the announcement.
            let _ = Announcement::print(listening);
        }
        if !global.quiet {
            eprintln!(
                "bucketload: agent at {listening}; press Ctrl-C to end it, twice to abort its run"
            );
        }
        let (stop, stopped) = oneshot::channel();
        let served = listen(options, listener, args.once, async {
            // The sender outlives the server, so this is the first signal.
            let _ = stopped.await;
        });
        tokio::select! {
            outcome = served => outcome.map(|()| Exit::Ok),
            () = second_signal(signals, stop) => Ok(Exit::Interrupted),
        }
    });
    // Does not wait for load threads.
    runtime.shutdown_background();
    outcome.map_err(broken)
}

/// Works for the coordinator at `controller`, which the launcher started together with this process.
fn join(
    controller: &str,
    options: AgentOptions,
    wait: std::time::Duration,
) -> Result<Exit, Failure> {
    let runtime = runtime()?;
    let outcome = runtime.block_on(dial(options, controller, wait));
    runtime.shutdown_background();
    outcome.map_err(broken)?;
    Ok(Exit::Ok)
}

fn options(
    access: Access,
    rank: Option<u32>,
    allow_local_writes: Option<PathBuf>,
    quiet: bool,
) -> AgentOptions {
    AgentOptions {
        access,
        rank,
        executor: Arc::new(DriverHost { allow_local_writes }),
        say: Arc::new(move |text| {
            if !quiet {
                eprintln!("bucketload: {text}");
            }
        }),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    signals::runtime().map_err(|e| Failure::aborted(format!("agent: {e}")))
}

/// Returns after the second Ctrl-C or SIGTERM; `first` is notified of the first.
async fn second_signal(mut signals: Signals, first: oneshot::Sender<()>) {
    signals.next().await;
    // The server may have ended already.
    let _ = first.send(());
    signals.next().await;
}
