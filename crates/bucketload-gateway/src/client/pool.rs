//! Idle connections, most recently used first.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::error::{Error, Result};
use super::options::Options;
use crate::address::Address;

/// A connection that has been idle for longer is checked before use: the gateway may be gone.
const TRUSTED_IDLE: Duration = Duration::from_millis(100);

/// A gateway and its idle connections.
#[derive(Debug)]
pub(super) struct Pool {
    options: Options,
    idle: Mutex<Vec<(Connection, Instant)>>,
    /// Whether the gateway offers files for writing objects, as far as is known.
    pub(super) files: AtomicBool,
}

impl Pool {
    pub(super) const fn new(options: Options) -> Self {
        Self {
            files: AtomicBool::new(matches!(options.address, Address::Unix(_))),
            idle: Mutex::new(Vec::new()),
            options,
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Connection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection for one call with the time limit `limit`.
    pub(super) fn lease(pool: &Arc<Self>, limit: Option<Duration>) -> Result<Lease> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        let connection = loop {
            let top = pool.idle().pop();
            match top {
                None => break Self::connect(&pool.options, limit)?,
                Some((connection, since))
                    if since.elapsed() < TRUSTED_IDLE || connection.is_usable() =>
                {
                    break connection;
                }
                Some(_) => {}
            }
        };
        let mut lease = Lease {
            pool: Arc::clone(pool),
            connection: Some(connection),
        };
        lease.set_deadline(deadline)?;
        Ok(lease)
    }

    fn connect(options: &Options, limit: Option<Duration>) -> Result<Connection> {
        match limit {
            Some(limit) if limit < options.connect_timeout => {
                let mut hurried = options.clone();
                hurried.connect_timeout = limit;
                let mut opened = Connection::open(&hurried);
                if let Err(Error::Connect(error)) = &opened
                    && error.kind() == std::io::ErrorKind::TimedOut
                {
                    opened = Err(Error::TimedOut);
                }
                opened
            }
            _ => Connection::open(options),
        }
    }
}

/// A connection in use. It returns to the pool if it is clean.
#[derive(Debug)]
pub(super) struct Lease {
    pool: Arc<Pool>,
    connection: Option<Connection>,
}

impl Lease {
    /// Closes the connection instead of keeping it.
    pub(super) fn close(&mut self) {
        self.connection = None;
    }

    /// Closes the connection if the call failed for another reason than an answer of the store or the caller's body.
    pub(super) fn keep_or_close<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && !matches!(error, Error::Store(_) | Error::NotModified | Error::Body(_))
        {
            self.close();
        }
        result
    }
}

impl Deref for Lease {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
            .as_ref()
            .expect("a closed connection is not used")
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection
            .as_mut()
            .expect("a closed connection is not used")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && connection.is_clean()
        {
            let mut idle = self.pool.idle();
            if idle.len() < self.pool.options.idle_connections {
                idle.push((connection, Instant::now()));
            }
        }
    }
}
