//! The embedded target: `bucketload serve` as a child process on its own loopback port, so that its
//! CPU time is never counted as the client's.
//!
//! The child announces its address as one JSON line on standard output. It exits when its standard input closes, which
//! happens however this process ends. Signals of the terminal do not reach the child, because an interrupted run still
//! needs its server to finish operations and to clean up.

use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Environment variable with the access key. Credentials are passed in the environment, because a process list would
/// show them.
pub(crate) const ACCESS_KEY_ENV: &str = "BUCKETLOAD_SERVE_ACCESS_KEY";
/// Environment variable with the secret key; see [`ACCESS_KEY_ENV`].
pub(crate) const SECRET_KEY_ENV: &str = "BUCKETLOAD_SERVE_SECRET_KEY";

/// The line that a server prints when it is ready.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Announcement<A> {
    /// The address on which the server listens.
    pub(crate) listening: A,
    /// Process id of the server.
    pub(crate) pid: u32,
}

impl<A: Serialize> Announcement<A> {
    /// Prints the line of this process.
    ///
    /// # Errors
    /// When standard output is closed.
    pub(crate) fn print(listening: A) -> std::io::Result<()> {
        let pid = std::process::id();
        let line = serde_json::to_string(&Self { listening, pid }).unwrap_or_default();
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}")?;
        out.flush()
    }
}

/// An embedded server, which runs as long as this value lives.
pub(crate) struct EmbeddedServer {
    child: Child,
    /// Held open, because the child exits when it closes.
    _stdin: Option<ChildStdin>,
    /// The address on which it listens.
    pub(crate) address: SocketAddr,
    /// The access key that it accepts.
    pub(crate) access_key: String,
    /// The secret key of the access key.
    pub(crate) secret_key: String,
}

impl EmbeddedServer {
    /// Starts `bucketload serve ARGS` and waits until it listens.
    ///
    /// # Errors
    /// When the process cannot be started or ends before it listens.
    pub(crate) fn start(args: &[String]) -> Result<Self, String> {
        let (access_key, secret_key) = (random_hex(10)?, random_hex(20)?);
        let (child, stdin, address) = start_server("embedded server", |command| {
            command
                .args(["serve", "--listen", "127.0.0.1:0"])
                .args(args)
                .env(ACCESS_KEY_ENV, &access_key)
                .env(SECRET_KEY_ENV, &secret_key);
        })?;
        Ok(Self {
            child,
            _stdin: stdin,
            address,
            access_key,
            secret_key,
        })
    }
}

/// Starts this program as a server, called `name` in messages, with the verb and arguments that `configure` adds.
/// Returns the process, its standard input and the address on which it listens.
///
/// # Errors
/// When the process cannot be started or ends before it listens.
pub(crate) fn start_server<A: DeserializeOwned>(
    name: &str,
    configure: impl FnOnce(&mut Command),
) -> Result<(Child, Option<ChildStdin>, A), String> {
    let failed = |e: std::io::Error| format!("{name}: {e}");
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    configure(&mut command);
    let mut child = command
        .args(["--announce", "--exit-with-stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C must reach the run only, which needs its server to clean up.
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
    match serde_json::from_str::<Announcement<A>>(&line) {
        Ok(announcement) => Ok((child, stdin, announcement.listening)),
        Err(_) => {
            drop(stdin);
            let status = child.wait().map_err(failed)?;
            Err(format!("{name}: ended before it listened ({status})"))
        }
    }
}

impl Drop for EmbeddedServer {
    fn drop(&mut self) {
        // Closing its standard input would end the child too, but not at once if it is busy.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `bytes` random bytes from the kernel, in hexadecimal.
pub(crate) fn random_hex(bytes: usize) -> Result<String, String> {
    let mut buffer = vec![0u8; bytes];
    let got = rustix::rand::getrandom(&mut buffer, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| format!("no random numbers: {e}"))?;
    if got != bytes {
        return Err("no random numbers: short read".to_owned());
    }
    Ok(buffer.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Blocks until standard input closes.
pub(crate) fn wait_for_stdin_end() {
    let mut sink = std::io::sink();
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut sink);
}
