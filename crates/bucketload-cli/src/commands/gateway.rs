//! `bucketload gateway`: serves a directory of objects over the gateway's protocol.

use std::sync::Arc;
use std::time::Duration;

use bucketload_gateway::{AccessToken, Server, ServerOptions};
use bucketload_store::{Durability, EtagMode, PosixOptions, PosixStore};

use super::serve::pin;
use crate::cli::gateway::GatewayArgs;
use crate::embedded::{Announcement, wait_for_stdin_end};
use crate::exit::{Exit, Failure, OrFail};
use crate::signals::{self, Signals};

/// Time that requests in flight get to finish.
const GRACE: Duration = Duration::from_secs(10);

/// Serves until a signal arrives or, with `--exit-with-stdin`, standard input closes.
pub(crate) fn execute(args: &GatewayArgs) -> Result<Exit, Failure> {
    let aborted = |e: std::io::Error| Failure::aborted(format!("gateway: {e}"));
    pin("gateway", args.cores.as_ref())?;
    let mut options = ServerOptions::new(args.listen.clone());
    options.connections = args.connections as usize;
    if let Some(file) = &args.token_file {
        options.token = Some(AccessToken::read("the gateway's token", file).or_usage()?);
    }
    let mut store = PosixOptions::new(&args.root);
    if !args.md5_etags {
        store.etag = EtagMode::Opaque;
    }
    if args.fsync {
        store.durability = Durability::FileAndDirectory;
    }
    let store = PosixStore::open(store)
        .map_err(|e| Failure::usage(format!("gateway --root {}: {e}", args.root.display())))?;
    let runtime = signals::runtime().map_err(aborted)?;
    // Installs the signal handlers before the gateway becomes visible, so that a signal always ends it cleanly.
    let mut signals = runtime
        .block_on(async { Signals::new() })
        .map_err(aborted)?;
    let server = Server::start(options, Arc::new(store))
        .map_err(|e| Failure::usage(format!("gateway --listen: {e}")))?;
    if args.announce {
        Announcement::print(server.address().to_string()).map_err(aborted)?;
    } else {
        eprintln!(
            "bucketload: gateway to {} at {}",
            args.root.display(),
            server.address()
        );
    }
    if !server.address().is_local() {
        eprintln!(
            "bucketload: warning: {} can be reached from other hosts: objects cross the network without encryption (the \
             token itself is never sent); use it on a trusted network only",
            server.address()
        );
    }
    // Without the flag, the sender stays alive and never sends.
    let (closed, stdin_ends) = tokio::sync::oneshot::channel::<()>();
    let mut closed = Some(closed);
    if args.exit_with_stdin {
        let closed = closed.take();
        std::thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(move || {
                wait_for_stdin_end();
                drop(closed);
            })
            .map_err(aborted)?;
    }
    runtime.block_on(async {
        tokio::select! {
            () = signals.next() => {}
            _ = stdin_ends => {}
        }
    });
    server.stop(GRACE);
    Ok(Exit::Ok)
}
