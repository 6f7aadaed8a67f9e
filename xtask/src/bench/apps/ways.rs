//! The ways in which an application reaches its data.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::super::gateway::{ACCESS_KEY, SECRET_KEY};
use super::super::value_of;
use super::programs::Program;
use crate::files::{self, TempDir};
use crate::process::{Process, wait_until};
use crate::program::bucketload;
use crate::server::free_port;
use crate::sh::{Result, cmd, ensure, words};

/// Longest run of an application.
const PATIENCE: Duration = Duration::from_secs(300);
/// Longest start of a server.
const START: Duration = Duration::from_secs(30);

/// Where the data lies.
enum Kind {
    /// Files.
    Posix,
    /// A directory, through our library in the process.
    Embedded,
    /// A directory, through our library and a gateway on a Unix socket.
    Gateway,
    /// A server, through the original library.
    Server(Brand, PathBuf),
}

#[derive(Clone, Copy)]
enum Brand {
    Versitygw,
    Minio,
}

/// A way, with the library that the application loads.
pub(super) struct Way {
    pub(super) name: &'static str,
    kind: Kind,
    library: PathBuf,
}

impl Way {
    /// Plain files and our library, and the original library against the servers that `args` name.
    pub(super) fn all(ours: &Path, args: &[String]) -> Result<Vec<Self>> {
        let way = |name, kind, library: &Path| Self {
            name,
            kind,
            library: library.to_owned(),
        };
        let mut ways = vec![
            way("POSIX", Kind::Posix, ours),
            way("embedded", Kind::Embedded, ours),
            way("gateway", Kind::Gateway, ours),
        ];
        if let Some(original) = value_of(args, "--libs3")? {
            let original = std::path::absolute(original).map_err(|e| format!("{original}: {e}"))?;
            if !original.ends_with("libs3.so.4") {
                let original = original.display();
                return Err(format!(
                    "--libs3 {original}: a file named libs3.so.4 is expected"
                ));
            }
            let folder = original.parent().unwrap_or(Path::new("/"));
            for (option, name, brand) in [
                ("--versitygw", "original libs3, versitygw", Brand::Versitygw),
                ("--minio", "original libs3, MinIO", Brand::Minio),
            ] {
                if let Some(program) = value_of(args, option)? {
                    ways.push(way(name, Kind::Server(brand, program.into()), folder));
                }
            }
        }
        Ok(ways)
    }

    /// True if neither the library nor the server is ours.
    pub(super) fn is_foreign(&self) -> bool {
        matches!(self.kind, Kind::Server(..))
    }

    /// Runs `program` in a new directory on the tmpfs, and returns what it printed.
    pub(super) fn run(&self, path: &Path, program: &Program, work: &str) -> Result<String> {
        let dir = TempDir::in_memory("bench-apps")?;
        let data = dir.path().join("data");
        files::make_dir(&data)?;
        let mut command = mpirun(path, &self.library);
        let (place, mut backend) = match self.kind {
            Kind::Posix => (data.join("out").display().to_string(), "POSIX".to_owned()),
            _ => ("out".to_owned(), format!("S3-libs3 {}", keys("x"))),
        };
        let mut server = None;
        match &self.kind {
            Kind::Posix => files::make_dir(&place)?,
            Kind::Embedded => drop(command.env("BUCKETLOAD_S3_ROOT", &data)),
            Kind::Gateway => {
                let socket = dir.path().join("socket");
                let line = format!(
                    "gateway --root {} --listen unix:{}",
                    data.display(),
                    socket.display()
                );
                let mut gateway = bucketload(&line)?;
                server = Some(Process::start(gateway.stdout(Stdio::null()))?);
                wait_until("the gateway listens", START, || Ok(socket.exists()))?;
                command.env("BUCKETLOAD_S3_REMOTE", format!("unix:{}", socket.display()));
            }
            Kind::Server(brand, program) => {
                let address = format!("127.0.0.1:{}", free_port()?);
                server = Some(brand.start(program, &address, &data)?);
                wait_until("the server listens", START, || {
                    Ok(std::net::TcpStream::connect(&address).is_ok())
                })?;
                backend = format!("S3-libs3 {}", keys(&address));
            }
        }
        // IOR wants the name of a file, the others that of a directory.
        let place = match program.name {
            "ior" => format!("{place}/ior"),
            _ => place,
        };
        command.args(words(&format!(
            "-a {backend} {}{place} {work}",
            program.place
        )));
        let process = Process::recorded(command.current_dir(dir.path()))?;
        let outcome = process.end(PATIENCE)?;
        drop(server);
        outcome.expect_code(0)?;
        ensure(!has_errors(&outcome.said()), || {
            format!("{}: operations failed: {}", outcome.shown, outcome.said())
        })?;
        Ok(outcome.stdout)
    }
}

/// True if an application tells of operations that failed: MD-Workbench counts them and goes on.
fn has_errors(text: &str) -> bool {
    text.lines()
        .any(|line| line.contains("ERROR") || line.contains(" errs)") && !line.contains("(0 errs)"))
}

fn keys(host: &str) -> String {
    format!(
        "--S3-libs3.host={host} --S3-libs3.access-key={ACCESS_KEY} --S3-libs3.secret-key={SECRET_KEY}"
    )
}

/// Two ranks of `program` with the library in `folder`.
pub(super) fn mpirun(program: &Path, folder: &Path) -> Command {
    let mut command = cmd("mpirun", words("--allow-run-as-root --oversubscribe -n 2"));
    command.arg(program).env("LD_LIBRARY_PATH", folder);
    command
}

impl Brand {
    fn start(self, program: &Path, address: &str, data: &Path) -> Result<Process> {
        let mut command = Command::new(program);
        match self {
            Self::Versitygw => {
                command
                    .args(["--port", address])
                    .args(words("--region us-east-1 --quiet --keep-alive posix"))
                    .env("ROOT_ACCESS_KEY", ACCESS_KEY)
                    .env("ROOT_SECRET_KEY", SECRET_KEY);
            }
            Self::Minio => {
                command
                    .args(words("server --quiet --address"))
                    .arg(address)
                    .env("MINIO_ROOT_USER", ACCESS_KEY)
                    .env("MINIO_ROOT_PASSWORD", SECRET_KEY);
            }
        }
        let quiet = command.arg(data).stdin(Stdio::null()).stdout(Stdio::null());
        Process::start(quiet)
    }
}

#[cfg(test)]
mod tests {
    use super::has_errors;

    #[test]
    fn failed_operations_are_noticed() {
        assert!(has_errors(
            "precreate process max:0.0s op-max:3.2e-02s (2 errs) create"
        ));
        assert!(has_errors("ERROR: read(10, 0x1) failed, (aiori-POSIX.c:7)"));
        assert!(!has_errors(
            "benchmark process (0 errs) read\nWARNING: S3 \"ErrorBucketNotEmpty\": not empty"
        ));
    }
}
