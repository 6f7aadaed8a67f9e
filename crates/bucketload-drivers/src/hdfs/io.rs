//! The runtime that the library's connections live on.
//!
//! The library keeps idle connections to data nodes in one place for the whole process, whichever thread
//! made them. A connection waits on the runtime it was made in: on a load thread's own runtime it would
//! be handed to other threads, fail when its thread has ended, and hang while its thread waits for
//! something else. So all connections live on one small runtime that lasts as long as the driver; what
//! load threads await comes from there.

use std::num::NonZero;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::http::config::ConfigError;

/// Most threads of the runtime.
const MOST_THREADS: usize = 8;

/// A runtime for connections. Ends with this value.
#[derive(Debug)]
pub(super) struct Io {
    /// Taken only when it ends.
    runtime: Option<Runtime>,
    handle: Handle,
    threads: usize,
}

impl Io {
    /// Starts a thread for every second core.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start() -> Result<Self, ConfigError> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let threads = (cores / 2).clamp(1, MOST_THREADS);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("hdfs-io")
            .enable_all()
            .build()
            .map_err(|error| {
                let remedy = "raise the limit on threads";
                ConfigError::new("hdfs", format!("no runtime: {error}"), remedy)
            })?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
            threads,
        })
    }

    /// Where to spawn.
    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Number of threads.
    pub(super) const fn threads(&self) -> usize {
        self.threads
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        // Drivers are dropped inside runtimes, where waiting for threads is forbidden.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
