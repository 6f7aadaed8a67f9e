//! The scripts of `servers/`: finding them, and starting and stopping servers with them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

use bucketload_results::rundir::redact;
use bucketload_run::{StopHandle, StopLevel};
use bucketload_study::layout;
use bucketload_study::model::{Study, Target};
use rustix::process::{Pid, Signal, kill_process_group};

use super::{carried, cores};
use crate::exit::Failure;

/// Scripts that start several processes. Each state directory is one instance, and settings choose its ports.
const CLUSTERS: [&str; 3] = ["ceph", "swift", "hdfs"];

/// Where the scripts of a study are.
pub(super) enum Scripts {
    /// In a directory of the user; `None` if the study needs no scripts.
    Given(Option<PathBuf>),
    /// Built into the program; this is where they will be written.
    Carried(PathBuf),
}

impl Scripts {
    /// Looks for the scripts: in `given`, else in `servers` in the working directory or above it, else the built-in
    /// ones.
    ///
    /// # Errors
    /// When a target needs a script that does not exist.
    pub(super) fn find(given: Option<&Path>, study: &Study) -> Result<Self, Failure> {
        let wanted: Vec<&Target> = study
            .targets
            .iter()
            .filter(|target| !target.server.is_empty())
            .collect();
        if wanted.is_empty() && study.programs.is_empty() {
            return Ok(Self::Given(None));
        }
        let whole = |dir: &Path| {
            std::path::absolute(dir).map_err(|e| Failure::usage(format!("--servers: {e}")))
        };
        let own = || above(Path::new("servers").join("common.sh").as_path());
        let scripts = match given.map(Path::to_owned).or_else(own) {
            Some(dir) => Self::Given(Some(whole(&dir)?)),
            None => Self::Carried(whole(&carried::directory(&home()))?),
        };
        if !study.programs.is_empty() {
            scripts.contains(&study.programs).map_err(|why| {
                Failure::usage(format!(
                    "programs: {why}; name the directory with --servers, or another script"
                ))
            })?;
        }
        for target in wanted {
            for name in [&target.server, &target.proxy] {
                if !name.is_empty() {
                    scripts.contains(name).map_err(|why| {
                        Failure::usage(format!(
                            "target {}: {why}; name the directory with --servers, or another server",
                            target.name
                        ))
                    })?;
                }
            }
        }
        Ok(scripts)
    }

    /// Checks that a script of this name exists.
    fn contains(&self, name: &str) -> Result<(), String> {
        let there = match self {
            Self::Given(_) => self.script(name).is_file(),
            Self::Carried(_) => carried::contains(&format!("{name}.sh")),
        };
        match self {
            _ if there => Ok(()),
            Self::Given(_) => Err(format!(
                "there is no script {}",
                self.script(name).display()
            )),
            Self::Carried(_) => Err(format!(
                "there is no directory `servers` here or above, and {name}.sh is not built into the program"
            )),
        }
    }

    /// Writes the built-in scripts, if these are used.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn ready(&self) -> Result<(), Failure> {
        match self {
            Self::Given(_) => Ok(()),
            Self::Carried(dir) => carried::write(dir).map_err(|why| {
                Failure::usage(format!(
                    "cannot write the scripts of servers: {why}; name a writable directory in SERVERS_HOME"
                ))
            }),
        }
    }

    #[cfg(test)]
    pub(super) fn at(dir: &Path) -> Self {
        Self::Given(Some(dir.to_owned()))
    }

    pub(super) fn script(&self, name: &str) -> PathBuf {
        let dir = match self {
            Self::Given(dir) => dir.as_deref().unwrap_or(Path::new("servers")),
            Self::Carried(dir) => dir,
        };
        dir.join(format!("{name}.sh"))
    }
}

/// The directory of `file`, looked up in the working directory and above.
fn above(file: &Path) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let holds = here.ancestors().find(|dir| dir.join(file).is_file())?;
    Some(holds.join(file).parent()?.to_owned())
}

/// A server that a script started; it is stopped when this value is dropped.
pub(super) struct StartedServer {
    script: PathBuf,
    name: String,
    settings: BTreeMap<String, String>,
    stop: Vec<String>,
    /// Directory of a cluster's state.
    state: Option<PathBuf>,
    /// The KEY=VALUE lines that the script printed.
    pub(super) lines: BTreeMap<String, String>,
    /// The server's cores; empty for all.
    pub(super) cores: Vec<usize>,
}

impl StartedServer {
    pub(super) fn start(
        scripts: &Scripts,
        server: &str,
        dir: &Path,
        target: &str,
        settings: BTreeMap<String, String>,
        stop: &StopHandle,
    ) -> Result<Self, String> {
        let instance = instance(dir, target);
        let cluster = CLUSTERS.contains(&server);
        let mut started = Self {
            script: scripts.script(server),
            name: server.to_owned(),
            settings,
            stop: vec!["clean".to_owned()],
            state: None,
            lines: BTreeMap::new(),
            cores: cores::spare(),
        };
        let mut start = vec!["start".to_owned()];
        if cluster {
            let state = home().join(&instance);
            started
                .settings
                .insert("SERVERS_HOME".to_owned(), state.display().to_string());
            started.state = Some(state);
            started.ports(server)?;
            if server == "ceph" {
                start.push("rgw".to_owned());
            }
        } else {
            start.extend(["--instance".to_owned(), instance.clone()]);
            started.stop = ["stop", "--instance", &instance, "--purge"]
                .map(str::to_owned)
                .to_vec();
        }
        // Stops a server that an earlier session left running, and deletes its data.
        if started.state.as_ref().is_none_or(|state| state.exists()) {
            let _ = started
                .command(&started.stop)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
        if let Some(state) = &started.state {
            share_programs(server, state);
        }
        let log = dir.join(layout::TARGETS).join(format!("{target}.log"));
        started.lines = started.call(&start, &log, stop)?;
        Ok(started)
    }

    /// Chooses the ports of a cluster through the settings of its script. Settings of the user take precedence.
    fn ports(&mut self, server: &str) -> Result<(), String> {
        let (exact, based): (&[&str], &str) = match server {
            "ceph" => (&["CEPH_RGW_PORT", "CEPH_RGW_TLS_PORT"], "CEPH_MON_PORT"),
            "swift" => (&["SWIFT_PORT", "SWIFT_MEMCACHE_PORT"], "SWIFT_BASE_PORT"),
            _ => (&["HDFS_PORT", "HDFS_HTTP_PORT"], "HDFS_DN_PORT"),
        };
        for name in exact {
            let port = free_port()?;
            self.settings
                .entry((*name).to_owned())
                .or_insert(port.to_string());
        }
        // The script also uses neighbouring ports.
        let port = free_port()?;
        self.settings
            .entry(based.to_owned())
            .or_insert(port.to_string());
        Ok(())
    }

    fn command(&self, args: &[String]) -> Command {
        let mut command = Command::new(&self.script);
        command
            .args(args)
            .envs(&self.settings)
            .env_remove("CARGO_TARGET_DIR")
            .stdin(Stdio::null())
            // Ctrl-C must reach the study only, which stops its servers itself.
            .process_group(0);
        command
    }

    /// Calls the script with its messages in `log`. Returns the lines that it prints.
    fn call(
        &self,
        args: &[String],
        log: &Path,
        stop: &StopHandle,
    ) -> Result<BTreeMap<String, String>, String> {
        let wrong = |e: std::io::Error| format!("{}: {e}", self.script.display());
        let printed = log.with_extension("env");
        let mut command = self.command(args);
        command
            .stdout(File::create(&printed).map_err(wrong)?)
            .stderr(File::create(log).map_err(wrong)?);
        let mut child = cores::on(&self.cores, || command.spawn()).map_err(|e| match e.kind() {
            // The kernel reports a missing interpreter as a missing script.
            ErrorKind::NotFound if self.script.is_file() => {
                format!(
                    "servers/{}.sh needs bash and env, which are not installed",
                    self.name
                )
            }
            _ => wrong(e),
        })?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(wrong)? {
                break status;
            }
            if stop.level() != StopLevel::Run {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process_group(group, Signal::TERM);
                }
                let _ = child.wait();
                break ExitStatus::default();
            }
            sleep(Duration::from_millis(50));
        };
        let text = std::fs::read_to_string(&printed).unwrap_or_default();
        // The lines contain credentials.
        let _ = std::fs::remove_file(&printed);
        if stop.level() != StopLevel::Run {
            return Err("interrupted".to_owned());
        }
        if !status.success() {
            let said = std::fs::read_to_string(log).unwrap_or_default();
            let last = said
                .lines()
                .rev()
                .find(|line| !line.trim().is_empty())
                .unwrap_or("it printed no message");
            return Err(format!(
                "servers/{}.sh could not start the server ({status}): {}",
                self.name,
                redact::text(last)
            ));
        }
        Ok(lines(&text))
    }
}

impl Drop for StartedServer {
    fn drop(&mut self) {
        let ended = self
            .command(&self.stop)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !ended.is_ok_and(|status| status.success()) {
            eprintln!(
                "bucketload: cannot stop the server {}; try {} {}",
                self.name,
                self.script.display(),
                self.stop.join(" ")
            );
        } else if let Some(state) = &self.state {
            // The script has stopped every process that uses the directory.
            let _ = std::fs::remove_dir_all(state);
        }
    }
}

/// Links programs that the script downloaded before (`NAME-…`) into a cluster's state directory, because a download
/// takes a minute.
fn share_programs(server: &str, state: &Path) {
    let known = home().read_dir().into_iter().flatten().flatten();
    for entry in known.filter(|entry| entry.path().is_dir()) {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(&format!("{server}-"))
            && std::fs::create_dir_all(state).is_ok()
        {
            // Without the link, the script downloads the program again.
            let _ = std::os::unix::fs::symlink(entry.path(), state.join(name));
        }
    }
}

/// Parses KEY=VALUE lines; values are not unquoted.
pub(super) fn lines(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// The instance name of `target` in the study in `dir`, which is the same in every session of the study and differs
/// between directories (FNV-1a, 64 bits).
pub(super) fn instance(dir: &Path, target: &str) -> String {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let text = format!("{}\0{target}", dir.display());
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("study{hash:016x}")
}

/// The directory in which the scripts keep programs and state.
pub(super) fn home() -> PathBuf {
    let own = std::env::var_os("SERVERS_HOME").map(PathBuf::from);
    own.unwrap_or_else(|| {
        let home = std::env::var_os("HOME").unwrap_or_default();
        PathBuf::from(home).join(".cache/bucketload-servers")
    })
}

/// A free loopback port below the ephemeral ports, which the system could assign to a connection while the cluster
/// starts.
fn free_port() -> Result<u16, String> {
    for _ in 0..100 {
        let any = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let any = any.map_err(|e| format!("no free port: {e}"))?;
        let port = 20_000 + any.port() % 9_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err("no free port between 20000 and 28999".to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::instance;

    #[test]
    fn instances_are_named_after_study_and_target() {
        let name = instance(Path::new("/a"), "minio");
        assert_eq!(name, instance(Path::new("/a"), "minio"));
        assert_ne!(name, instance(Path::new("/b"), "minio"));
        assert_ne!(name, instance(Path::new("/a"), "minio-4"));
    }
}
