//! libs3-bucketload on a directory: directly, or over `bucketload gateway` as a child process.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, ChildStdin};

use crate::embedded::start_server;
use crate::study::cores;

/// Variable with the directory of the objects.
pub(crate) const ROOT: &str = "BUCKETLOAD_S3_ROOT";
/// Variable with the address of a gateway.
pub(crate) const REMOTE: &str = "BUCKETLOAD_S3_REMOTE";
/// Variable that selects how entity tags are computed.
pub(crate) const ETAG: &str = "BUCKETLOAD_S3_ETAG";
/// Every variable that tells libs3-bucketload where the objects are.
pub(crate) const VARIABLES: [&str; 4] = [ROOT, REMOTE, "BUCKETLOAD_S3_REMOTE_TOKEN_FILE", ETAG];

/// How the library accesses a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LibraryMode {
    /// Directly.
    Embedded,
    /// Over a gateway on loopback TCP.
    Remote,
    /// Over a gateway on a Unix socket.
    RemoteUnix,
}

/// What the library needs while it is measured.
#[derive(Default)]
pub(crate) struct LibrarySetup {
    /// Variables of every command.
    pub(crate) env: BTreeMap<String, String>,
    gateway: Option<Gateway>,
    /// Holds the Unix socket, because socket paths must be short, however long the directory's path is. The last field,
    /// because the socket's directory must outlive the gateway.
    _directory: Option<tempfile::TempDir>,
}

impl LibrarySetup {
    /// Whether a gateway was started.
    pub(crate) const fn has_server(&self) -> bool {
        self.gateway.is_some()
    }
}

impl LibraryMode {
    /// Starts what the library needs on the directory `root`, a gateway on `cores` (empty: all cores).
    ///
    /// # Errors
    /// When a gateway cannot be started.
    pub(crate) fn start(self, root: &Path, cores: &[usize]) -> Result<LibrarySetup, String> {
        let variable = |name: &str, value: String| (name.to_owned(), value);
        let over = |listen: &str, directory| {
            let started = cores::on(cores, || {
                Gateway::start(root, listen).map_err(std::io::Error::other)
            });
            let (gateway, address) = started.map_err(|e| e.to_string())?;
            Ok(LibrarySetup {
                env: BTreeMap::from([variable(REMOTE, address)]),
                gateway: Some(gateway),
                _directory: directory,
            })
        };
        match self {
            Self::Embedded => Ok(LibrarySetup {
                env: BTreeMap::from([variable(ROOT, root.to_string_lossy().into_owned())]),
                ..LibrarySetup::default()
            }),
            Self::Remote => over("127.0.0.1:0", None),
            Self::RemoteUnix => {
                let directory = tempfile::tempdir()
                    .map_err(|e| format!("cannot create a directory for a socket: {e}"))?;
                let listen = format!("unix:{}", directory.path().join("gateway").display());
                over(&listen, Some(directory))
            }
        }
    }
}

/// A gateway as a child process, which runs as long as this value lives.
struct Gateway {
    child: Child,
    /// Held open, because the child exits when it closes.
    stdin: Option<ChildStdin>,
}

impl Gateway {
    /// Starts a gateway to the directory `root`. Returns it with the address on which it listens.
    fn start(root: &Path, listen: &str) -> Result<(Self, String), String> {
        let (child, stdin, address) = start_server("gateway", |command| {
            command
                .args(["gateway", "--listen", listen, "--root"])
                .arg(root);
        })?;
        Ok((Self { child, stdin }, address))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // The gateway removes its socket and exits when its standard input closes.
        self.stdin = None;
        let _ = self.child.wait();
    }
}
