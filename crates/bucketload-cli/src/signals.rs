//! Ctrl-C and SIGTERM: the first ends the phase and cleans up, the second aborts. On request, the end of the parent
//! process counts as such a signal.

use bucketload_run::StopHandle;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Failure, OrFail};

/// A runtime on the calling thread.
///
/// # Errors
/// When the kernel provides no event queue.
pub(crate) fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Ctrl-C and SIGTERM.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Installs the handlers; needs a runtime.
    ///
    /// # Errors
    /// When a handler cannot be installed.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// A handle that signals stop, as [`watch`] describes.
///
/// # Errors
/// When signals cannot be handled.
pub(crate) fn watched() -> Result<StopHandle, Failure> {
    let stop = StopHandle::new();
    watch(stop.clone()).or_aborted()?;
    Ok(stop)
}

/// Starts the thread that turns signals into requests to stop.
///
/// # Errors
/// When the handlers cannot be installed.
pub(crate) fn watch(stop: StopHandle) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("signal handling: {e}");
    let runtime = runtime().map_err(failed)?;
    // Installed before this returns, so that a signal never finds the run without handlers.
    let mut signals = runtime.block_on(async { Signals::new() }).map_err(failed)?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                loop {
                    signals.next().await;
                    stop.stop();
                    eprintln!(
                        "bucketload: stopping; what was measured is kept. Press Ctrl-C again to abort without clean-up."
                    );
                }
            });
        })
        .map(drop)
        .map_err(failed)
}

/// Starts a thread that stops the run when standard input closes.
///
/// # Errors
/// When the thread cannot be started.
pub(crate) fn stop_with_stdin(stop: StopHandle) -> Result<(), String> {
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            crate::embedded::wait_for_stdin_end();
            stop.stop();
        })
        .map(drop)
        .map_err(|e| format!("standard input: {e}"))
}
