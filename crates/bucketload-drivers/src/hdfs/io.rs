//! The runtime of the library's connections.
//!
//! The library pools idle connections to data nodes for the whole process, whichever thread opened them.
//! A connection is bound to the runtime that created it. On a load thread's own runtime, a pooled
//! connection would be handed to other threads, fail after its thread has ended, and hang while its thread
//! waits for something else. So all connections belong to one small runtime that lasts as long as the
//! driver, and load threads await its results.

use std::num::NonZero;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::http::config::ConfigError;

/// Most threads of the runtime.
const MAX_THREADS: usize = 8;

/// A runtime for connections, which ends when this value is dropped.
#[derive(Debug)]
pub(super) struct IoRuntime {
    /// `None` only while dropping.
    runtime: Option<Runtime>,
    handle: Handle,
    threads: usize,
}

impl IoRuntime {
    /// Starts a thread for every second core.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start() -> Result<Self, ConfigError> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let threads = (cores / 2).clamp(1, MAX_THREADS);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("hdfs-io")
            .enable_all()
            .build()
            .map_err(|error| {
                let remedy = "raise the limit on threads";
                ConfigError::new("hdfs", format!("cannot start a runtime: {error}"), remedy)
            })?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
            threads,
        })
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    pub(super) const fn threads(&self) -> usize {
        self.threads
    }
}

impl Drop for IoRuntime {
    fn drop(&mut self) {
        // Drivers are dropped inside runtimes, where waiting for threads is forbidden.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
