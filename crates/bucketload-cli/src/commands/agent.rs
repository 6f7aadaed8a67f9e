//! `bucketload agent`: a share of the runs of a coordinator on another host.

use std::ops::ControlFlow;
use std::sync::Arc;

use bucketload_agents::launch::rank::{LaunchedRank, detect};
use bucketload_agents::{Access, AgentOptions, AgentsError, dial, listen, serve_stdio};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::cli::GlobalArgs;
use crate::cli::agents::{AgentArgs, AgentsArgs};
use crate::cli::run::LoadArgs;
use crate::distributed::fleet::{self, Role};
use crate::distributed::{access, broken, host::DriverHost};
use crate::embedded::Announcement;
use crate::exit::{Exit, Failure};

/// What this process of a command with agents is: the coordinator, or, where a launcher has started the
/// command several times, an agent; its work is done then.
///
/// # Errors
/// When the launcher does not tell enough, or the agent's run was lost.
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
            join(&controller, rank, access, args.agents_wait, quiet).map(ControlFlow::Break)
        }
    }
}

/// Serves until it is ended, or one run.
pub(crate) fn execute(args: &AgentArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let access = access(args.token_file.as_deref(), &args.tls)?;
    let rank = match args.rank {
        Some(rank) => Some(rank),
        None if args.controller.is_some() => detect(&|name| std::env::var(name).ok())
            .map_err(broken)?
            .map(|place| place.rank),
        None => None,
    };
    let options = options(access, rank, global.quiet);
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
                "--listen, --controller or --stdio is missing",
            ));
        };
        options.access.check_listen(address.ip())?;
        let usage = |e: std::io::Error| AgentsError::usage(format!("--listen {address}: {e}"));
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .map_err(usage)?;
        let listening = listener.local_addr().map_err(usage)?;
        if args.announce {
            // Nobody reads it: the agent works all the same.
            let _ = Announcement::print(listening);
        }
        if !global.quiet {
            eprintln!(
                "bucketload: agent at {listening}; end it with Ctrl-C, twice to give up its run"
            );
        }
        let (stop, stopped) = oneshot::channel();
        let served = listen(options, listener, args.once, async {
            // Without handlers the sender is gone at once, but signals end the process anyway.
            if stopped.await.is_err() {
                std::future::pending().await
            }
        });
        tokio::select! {
            outcome = served => outcome.map(|()| Exit::Ok),
            () = ended_twice(stop) => Ok(Exit::Interrupted),
        }
    });
    // What a load thread may still hold is not waited for.
    runtime.shutdown_background();
    outcome.map_err(broken)
}

/// Works for the coordinator at `controller`: this process was started together with it.
fn join(
    controller: &str,
    rank: u32,
    access: Access,
    wait: std::time::Duration,
    quiet: bool,
) -> Result<Exit, Failure> {
    let options = options(access, Some(rank), quiet);
    let runtime = runtime()?;
    let outcome = runtime.block_on(dial(options, controller, wait));
    runtime.shutdown_background();
    outcome.map_err(broken)?;
    Ok(Exit::Ok)
}

fn options(access: Access, rank: Option<u32>, quiet: bool) -> AgentOptions {
    AgentOptions {
        access,
        rank,
        executor: Arc::new(DriverHost),
        say: Arc::new(move |text| {
            if !quiet {
                eprintln!("bucketload: {text}");
            }
        }),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::aborted(format!("agent: {e}")))
}

/// Ends with the second Ctrl-C or SIGTERM; `first` learns of the first.
async fn ended_twice(first: oneshot::Sender<()>) {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    let mut next = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    next().await;
    // A server that has ended meanwhile need not know.
    let _ = first.send(());
    next().await;
}
