//! Servers that a study starts: scripts of `servers/`, each started on a free loopback port, stopped when the study
//! turns to another target or ends, however it ends.
//!
//! What a script starts has a name that follows from the study's directory and the target's name. A study that
//! was killed finds what it left running and ends it before it begins anew.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use bucketload_results::rundir::host::HostFacts;
use bucketload_results::rundir::redact;
use bucketload_run::{StopHandle, StopLevel};
use bucketload_study::layout;
use bucketload_study::model::{SCHEMA, Study, Target, TargetFacts};
use rustix::process::{Pid, Signal, kill_process_group};

use super::check::{on_path, server_args, target_args};
use super::write_whole;
use crate::exit::Failure;

/// Scripts of several processes each: one instance per state folder, ports by settings.
const CLUSTERS: [&str; 3] = ["ceph", "swift", "hdfs"];

/// The directory of the scripts, if the study needs one.
pub(super) struct Scripts(Option<PathBuf>);

impl Scripts {
    /// Looks for the scripts: `given`, else `servers` in the working directory or above it.
    ///
    /// # Errors
    /// When a target needs a script that is not there.
    pub(super) fn find(given: Option<&Path>, study: &Study) -> Result<Self, Failure> {
        let wanted: Vec<&Target> = study
            .targets
            .iter()
            .filter(|target| !target.server.is_empty())
            .collect();
        let Some(first) = wanted.first() else {
            return Ok(Self(None));
        };
        let dir = match given {
            Some(dir) => dir.to_owned(),
            None => above(Path::new("servers").join("common.sh").as_path()).ok_or_else(|| {
                Failure::usage(format!(
                    "target {}: there is no directory `servers` with the script that starts it, here or above; \
                     run the study in a clone of the repository, name the directory with --servers, or measure \
                     another target with --target",
                    first.name
                ))
            })?,
        };
        for target in wanted {
            for name in [&target.server, &target.proxy] {
                let script = dir.join(format!("{name}.sh"));
                if !name.is_empty() && !script.is_file() {
                    return Err(Failure::usage(format!(
                        "target {}: there is no script {}; name the directory with --servers, or another server",
                        target.name,
                        script.display()
                    )));
                }
            }
        }
        let dir =
            std::path::absolute(&dir).map_err(|e| Failure::usage(format!("--servers: {e}")))?;
        Ok(Self(Some(dir)))
    }

    fn script(&self, name: &str) -> PathBuf {
        let dir = self.0.as_deref().unwrap_or(Path::new("servers"));
        dir.join(format!("{name}.sh"))
    }
}

/// The directory above the working directory (or itself) that holds `file`'s directory.
fn above(file: &Path) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let holds = here.ancestors().find(|dir| dir.join(file).is_file())?;
    Some(holds.join(file).parent()?.to_owned())
}

/// A target that can be used.
pub(super) struct Ready {
    /// The options by which commands reach it.
    pub(super) args: Vec<String>,
    /// Variables of the server.
    pub(super) env: BTreeMap<String, String>,
    /// What was started, last first; ended when dropped.
    _started: Vec<Started>,
}

/// Makes `target` ready and writes down what it is.
///
/// # Errors
/// Why it cannot be used.
pub(super) fn ready(
    target: &Target,
    dir: &Path,
    scripts: &Scripts,
    stop: &StopHandle,
) -> Result<Ready, String> {
    let mut facts = TargetFacts {
        schema: SCHEMA,
        name: target.name.clone(),
        title: target.label().to_owned(),
        machine: machine(),
        settings: target.settings.clone(),
        ..TargetFacts::default()
    };
    facts.versions.insert(
        "bucketload".to_owned(),
        env!("CARGO_PKG_VERSION").to_owned(),
    );
    let made = match target.server.is_empty() {
        true => given(target, dir, &mut facts),
        false => started(target, dir, scripts, stop, &mut facts),
    };
    if let Err(reason) = &made {
        facts.skipped.clone_from(reason);
    }
    let text = serde_json::to_string_pretty(&facts).unwrap_or_default();
    write_whole(&layout::target(dir, &target.name), text.as_bytes()).map_err(|e| e.message)?;
    made
}

/// A target that runs already, or needs nothing.
fn given(target: &Target, dir: &Path, facts: &mut TargetFacts) -> Result<Ready, String> {
    let own = own_dir(dir, &target.name);
    if target.url.contains("{dir}") {
        std::fs::create_dir_all(&own).map_err(|e| format!("{}: {e}", own.display()))?;
    }
    facts.url = redact::text(&target.url);
    facts.endpoint = redact::text(&target.endpoint);
    Ok(Ready {
        args: target_args(target, &own),
        env: BTreeMap::new(),
        _started: Vec::new(),
    })
}

/// The directory of a target's data inside the study's.
pub(super) fn own_dir(dir: &Path, target: &str) -> PathBuf {
    let own = dir.join("data").join(target);
    std::path::absolute(&own).unwrap_or(own)
}

fn started(
    target: &Target,
    dir: &Path,
    scripts: &Scripts,
    stop: &StopHandle,
    facts: &mut TargetFacts,
) -> Result<Ready, String> {
    facts.server.clone_from(&target.server);
    if !target.requires.is_empty() && !on_path(&target.requires) {
        return Err(format!("{} is not on the PATH", target.requires));
    }
    let settings = target.settings.clone();
    let server = Started::start(scripts, &target.server, dir, &target.name, settings, stop)?;
    let mut env = server.lines.clone();
    let api = if target.api.is_empty() {
        "s3"
    } else {
        &target.api
    };
    let mut endpoint = address(&env, api).ok_or_else(|| {
        format!(
            "servers/{}.sh names no endpoint of the API {api}",
            target.server
        )
    })?;
    facts.versions.insert(
        target.server.clone(),
        version(scripts, &target.server, &endpoint),
    );
    let mut running = Vec::new();
    if !target.proxy.is_empty() {
        let settings = BTreeMap::from([
            ("PROXY_TO".to_owned(), endpoint),
            (
                "PROXY_CACHE".to_owned(),
                if target.proxy_cache { "yes" } else { "no" }.to_owned(),
            ),
        ]);
        let proxy = Started::start(
            scripts,
            &target.proxy,
            dir,
            &format!("{}-proxy", target.name),
            settings,
            stop,
        )?;
        endpoint = address(&proxy.lines, api)
            .ok_or_else(|| format!("servers/{}.sh names no endpoint", target.proxy))?;
        env.insert("AWS_ENDPOINT_URL".to_owned(), endpoint.clone());
        facts.versions.insert(
            target.proxy.clone(),
            version(scripts, &target.proxy, &endpoint),
        );
        facts
            .settings
            .insert("proxy".to_owned(), target.proxy.clone());
        facts
            .settings
            .insert("proxy-cache".to_owned(), target.proxy_cache.to_string());
        running.push(proxy);
    }
    running.push(server);
    facts.endpoint = redact::text(&endpoint);
    let args = server_args(target, &endpoint);
    facts.url = args
        .iter()
        .find_map(|arg| arg.strip_prefix("--target="))
        .unwrap_or_default()
        .to_owned();
    Ok(Ready {
        args,
        env,
        _started: running,
    })
}

/// Where the lines of a script say that its API is.
fn address(lines: &BTreeMap<String, String>, api: &str) -> Option<String> {
    let names: &[&str] = match api {
        "s3" => &["AWS_ENDPOINT_URL", "ENDPOINT"],
        "swift" => &["ST_AUTH", "ENDPOINT"],
        "seaweedfs" => &["SEAWEEDFS_FILER_URL"],
        "azure" => &["AZURE_STORAGE_BLOB_ENDPOINT", "ENDPOINT"],
        _ => &["ENDPOINT"],
    };
    names.iter().find_map(|name| lines.get(*name)).cloned()
}

/// The version of what a script starts, as well as it can be known.
fn version(scripts: &Scripts, name: &str, endpoint: &str) -> String {
    let ask = |program: &str, args: &[&str]| {
        let output = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let said = [output.stdout, output.stderr].concat();
        let line = String::from_utf8_lossy(&said)
            .lines()
            .next()?
            .trim()
            .to_owned();
        (output.status.success() && !line.is_empty()).then_some(line)
    };
    let package = |package: &str| ask("dpkg-query", &["-W", "-f", "${Version}", package]);
    let known = match name {
        "ceph" => package("radosgw"),
        "swift" => package("swift-proxy"),
        // The script unpacks it beside the others' programs.
        "nginx" => ask(
            &home()
                .join("nginx/root/usr/sbin/nginx")
                .display()
                .to_string(),
            &["-v"],
        ),
        "seaweedfs" => ask("weed", &["version"]),
        _ => None,
    };
    // VERSION=${NAME_VERSION:-default}
    let script = || {
        let text = std::fs::read_to_string(scripts.script(name)).ok()?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("VERSION="))?;
        let inner = line
            .trim_matches('"')
            .strip_prefix("${")?
            .strip_suffix('}')?;
        let (variable, default) = inner.split_once(":-")?;
        Some(std::env::var(variable).unwrap_or_else(|_| default.to_owned()))
    };
    known
        .or_else(script)
        .unwrap_or_else(|| format!("unknown (at {endpoint})"))
}

fn machine() -> BTreeMap<String, String> {
    let host = HostFacts::collect();
    [
        ("os", host.platform),
        ("kernel", host.kernel),
        ("cpu", host.cpu_model),
        ("cores", host.cores.to_string()),
        ("memory_bytes", host.memory_bytes.to_string()),
        ("governor", host.governor),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// A server that a script has started.
struct Started {
    script: PathBuf,
    name: String,
    settings: BTreeMap<String, String>,
    stop: Vec<String>,
    /// Folder of a cluster's state.
    state: Option<PathBuf>,
    /// The KEY=VALUE lines that the script printed.
    lines: BTreeMap<String, String>,
}

impl Started {
    fn start(
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
        // What an earlier session left behind ends first, its data with it.
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

    /// Ports of a cluster, by the settings of its script; what the user has set stays.
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
        // The script takes neighbours of this one: below those that the system gives to connections.
        let port = 20_000 + free_port()? % 9_000;
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
            // Ctrl-C is for the study, which ends its servers itself.
            .process_group(0);
        command
    }

    /// Calls the script; what it says goes into `log`.
    fn call(
        &self,
        args: &[String],
        log: &Path,
        stop: &StopHandle,
    ) -> Result<BTreeMap<String, String>, String> {
        let wrong = |e: std::io::Error| format!("{}: {e}", self.script.display());
        let printed = log.with_extension("env");
        let mut child = self
            .command(args)
            .stdout(File::create(&printed).map_err(wrong)?)
            .stderr(File::create(log).map_err(wrong)?)
            .spawn()
            .map_err(wrong)?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(wrong)? {
                break status;
            }
            if stop.level() != StopLevel::Run {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process_group(group, Signal::TERM);
                }
                let _ = child.wait();
                break std::process::ExitStatus::default();
            }
            sleep(Duration::from_millis(50));
        };
        let text = std::fs::read_to_string(&printed).unwrap_or_default();
        // They hold credentials.
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
                .unwrap_or("it said nothing");
            return Err(format!(
                "servers/{}.sh could not start it ({status}): {}",
                self.name,
                redact::text(last)
            ));
        }
        Ok(lines(&text))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let ended = self
            .command(&self.stop)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !ended.is_ok_and(|status| status.success()) {
            eprintln!(
                "bucketload: the server {} could not be stopped; try {} {}",
                self.name,
                self.script.display(),
                self.stop.join(" ")
            );
        } else if let Some(state) = &self.state {
            // The script has ended everything in it.
            let _ = std::fs::remove_dir_all(state);
        }
    }
}

/// Lends a cluster's own folder what its script has fetched before (`NAME-…` beside it), which takes a minute each time.
fn share_programs(server: &str, state: &Path) {
    let known = home().read_dir().into_iter().flatten().flatten();
    for entry in known.filter(|entry| entry.path().is_dir()) {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(&format!("{server}-"))
            && std::fs::create_dir_all(state).is_ok()
        {
            // Without the link the script fetches it anew.
            let _ = std::os::unix::fs::symlink(entry.path(), state.join(name));
        }
    }
}

/// KEY=VALUE lines; values are taken as they are.
fn lines(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// A name for what is started for `target` of the study in `dir`: the same in every session of the study, another
/// one in every other directory (FNV-1a, 64 bits).
fn instance(dir: &Path, target: &str) -> String {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let text = format!("{}\0{target}", dir.display());
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("study{hash:016x}")
}

/// Where the scripts keep programs and state.
fn home() -> PathBuf {
    let own = std::env::var_os("SERVERS_HOME").map(PathBuf::from);
    own.unwrap_or_else(|| {
        let home = std::env::var_os("HOME").unwrap_or_default();
        PathBuf::from(home).join(".cache/bucketload-servers")
    })
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| format!("no free port: {e}"))?;
    listener
        .local_addr()
        .map(|addr| addr.port())
        .map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{address, instance, lines};

    #[test]
    fn instances_are_a_study_and_a_target() {
        let name = instance(Path::new("/a"), "minio");
        assert_eq!(name, instance(Path::new("/a"), "minio"));
        assert_ne!(name, instance(Path::new("/b"), "minio"));
        assert_ne!(name, instance(Path::new("/a"), "minio-4"));
    }

    #[test]
    fn the_endpoint_is_that_of_the_api() {
        let lines = lines("AWS_ENDPOINT_URL=http://a\nST_AUTH=http://a/auth/v1.0\nX=y=z\nnoise\n");
        assert_eq!(lines["X"], "y=z");
        assert_eq!(address(&lines, "s3").unwrap(), "http://a");
        assert_eq!(address(&lines, "swift").unwrap(), "http://a/auth/v1.0");
        assert_eq!(address(&lines, "seaweedfs"), None);
    }
}
