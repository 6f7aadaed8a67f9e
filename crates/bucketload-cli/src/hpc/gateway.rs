//! `bucketload gateway` as a child process, and the variables that direct libs3-bucketload to it or to a directory.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Variable with the directory of the objects.
pub(crate) const ROOT: &str = "BUCKETLOAD_S3_ROOT";
/// Variable with the address of a gateway.
pub(crate) const REMOTE: &str = "BUCKETLOAD_S3_REMOTE";
/// Variable that selects how entity tags are computed.
pub(crate) const ETAG: &str = "BUCKETLOAD_S3_ETAG";
/// Every variable that tells libs3-bucketload where the objects are.
pub(crate) const VARIABLES: [&str; 4] = [ROOT, REMOTE, "BUCKETLOAD_S3_REMOTE_TOKEN_FILE", ETAG];

/// A gateway as a child process, which runs as long as this value lives.
pub(crate) struct Gateway {
    child: Child,
    /// Held open, because the child exits when it closes.
    stdin: Option<ChildStdin>,
}

impl Gateway {
    /// Starts a gateway to the directory `root`. Returns it with the address on which it listens.
    ///
    /// # Errors
    /// When it cannot be started, or ends before it listens.
    pub(crate) fn start(root: &Path, listen: &str) -> Result<(Self, String), String> {
        let failed = |e: std::io::Error| format!("gateway: {e}");
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .args([
                "gateway",
                "--announce",
                "--exit-with-stdin",
                "--fast-etags",
                "--listen",
                listen,
                "--root",
            ])
            .arg(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C must not reach the gateway, because runs still need it to clean up.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let stdin = child.stdin.take();
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut line)
                .map_err(failed)?;
        }
        let gateway = Self { child, stdin };
        let announced: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        match announced["listening"].as_str() {
            Some(address) => Ok((gateway, address.to_owned())),
            None => Err("the gateway ended before it listened".to_owned()),
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // The gateway removes its socket and exits when its standard input closes.
        self.stdin = None;
        let _ = self.child.wait();
    }
}
