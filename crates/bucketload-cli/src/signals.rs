//! Ctrl-C and SIGTERM: the first ends the phase and cleans up, the second aborts. On request, the end of the parent
//! process counts as such a signal.

use bucketload_run::StopHandle;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::{Failure, OrFail};

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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| format!("signal handling: {e}"))?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                let (Ok(mut interrupt), Ok(mut terminate)) =
                    (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
                else {
                    eprintln!("bucketload: cannot handle signals; Ctrl-C will end the run at once, without clean-up");
                    return;
                };
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                    }
                    stop.stop();
                    eprintln!(
                        "bucketload: stopping; what was measured is kept. Press Ctrl-C again to abort without clean-up."
                    );
                }
            });
        })
        .map(drop)
        .map_err(|e| format!("signal handling: {e}"))
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
