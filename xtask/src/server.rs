//! Third-party servers for tests, started by the scripts in `servers/`.

use std::net::TcpListener;
use std::path::PathBuf;

use crate::files;
use crate::program::Env;
use crate::sh::{Result, output, root, run, script, words};

/// A running server; stopped and purged when dropped.
pub(crate) struct Server {
    /// Script name without `.sh`.
    pub(crate) name: String,
    /// The KEY=VALUE lines that the script printed.
    pub(crate) env: Env,
    settings: Env,
    start: String,
    stop: String,
}

/// Scripts that start several processes, one instance per state directory: name, settings that take a free port each,
/// the setting for the first of several consecutive ports, and fixed settings.
type Cluster = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);
const CLUSTERS: [Cluster; 3] = [
    // The script adds 3489 for a second port of the monitor.
    (
        "ceph",
        "CEPH_RGW_PORT CEPH_RGW_TLS_PORT",
        "CEPH_MON_PORT",
        &[("CEPH_STORE", "memstore"), ("CEPH_OSD_SIZE", "4G")],
    ),
    // Data nodes use up to 23 more ports.
    (
        "hdfs",
        "HDFS_PORT HDFS_HTTP_PORT",
        "HDFS_DN_PORT",
        &[("HDFS_DATANODES", "3")],
    ),
    // The script also uses the next two ports.
    (
        "swift",
        "SWIFT_PORT SWIFT_MEMCACHE_PORT",
        "SWIFT_BASE_PORT",
        &[],
    ),
];

/// Name of this process's instances.
fn instance() -> String {
    format!("ci{}", std::process::id())
}

/// Directory of the servers' programs and state: `$SERVERS_HOME`, or the scripts' default.
pub(crate) fn home() -> PathBuf {
    std::env::var_os("SERVERS_HOME").map_or_else(
        || {
            PathBuf::from(std::env::var_os("HOME").unwrap_or_default())
                .join(".cache/bucketload-servers")
        },
        PathBuf::from,
    )
}

/// A loopback port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| format!("no free port: {e}"))?;
    listener
        .local_addr()
        .map(|addr| addr.port())
        .map_err(|e| e.to_string())
}

/// A port below the range that the system assigns to connections, so that its neighbours are free too.
fn low_port() -> Result<u16> {
    Ok(20_000 + free_port()? % 9_000)
}

impl Server {
    /// Installs the server `name` and starts a fresh instance.
    pub(crate) fn start(name: &str) -> Result<Self> {
        Self::start_with(name, &[])
    }

    /// Like [`Server::start`], with additional settings for the script.
    pub(crate) fn start_with(name: &str, more: &[(&str, &str)]) -> Result<Self> {
        Self::launch(name, if name == "ceph" { "rgw" } else { "" }, more)
    }

    /// Ceph with these parts (`rgw`, `fs`).
    pub(crate) fn ceph(parts: &str) -> Result<Self> {
        Self::launch("ceph", parts, &[])
    }

    fn launch(name: &str, parts: &str, more: &[(&str, &str)]) -> Result<Self> {
        let instance = instance();
        let mut settings = Env::new();
        let mut set = |key: &str, value: String| settings.insert(key.to_owned(), value);
        let (mut start, mut stop) = (
            format!("start --instance {instance}"),
            format!("stop --instance {instance} --purge"),
        );
        if let Some((_, free, low, fixed)) = CLUSTERS.iter().find(|cluster| cluster.0 == name) {
            // One cluster per state directory: a directory for this process, with separate ports.
            set("SERVERS_HOME", home().join(&instance).display().to_string());
            for key in words(free) {
                set(&key, free_port()?.to_string());
            }
            set(low, low_port()?.to_string());
            for (key, value) in *fixed {
                set(key, (*value).to_owned());
            }
            start = format!("start {parts}");
            stop = "clean".to_owned();
        }
        for (key, value) in more {
            set(key, (*value).to_owned());
        }
        let mut server = Self {
            name: name.to_owned(),
            env: Env::new(),
            settings,
            start,
            stop,
        };
        let text = output(server.script(&server.start).env_remove("CARGO_TARGET_DIR"))?;
        server.env = parse_env(&text);
        Ok(server)
    }

    /// The value that the script printed for `key`.
    pub(crate) fn get(&self, key: &str) -> Result<&str> {
        self.env
            .get(key)
            .map(String::as_str)
            .ok_or_else(|| format!("{}.sh printed no {key}", self.name))
    }

    /// The shell command that starts this instance again, on the port and the data that it had.
    pub(crate) fn start_again(&self) -> Result<String> {
        let mut words = vec!["env".to_owned()];
        words.extend(
            self.settings
                .iter()
                .map(|(key, value)| format!("{key}={value}")),
        );
        words.push(
            root()
                .join(format!("servers/{}.sh", self.name))
                .display()
                .to_string(),
        );
        words.extend(self.start.split(' ').map(str::to_owned));
        // Clusters keep their ports among their settings.
        if let (Some(port), false) = (self.env.get("PORT"), self.is_cluster()) {
            words.extend(["--port".to_owned(), port.clone()]);
        }
        let words = words.iter().map(String::as_str);
        shlex::try_join(words).map_err(|e| format!("{}: {e}", self.name))
    }

    fn is_cluster(&self) -> bool {
        CLUSTERS.iter().any(|cluster| cluster.0 == self.name)
    }

    /// Runs the server's script and returns its output.
    pub(crate) fn ask(&self, line: &str) -> Result<String> {
        output(&mut self.script(line))
    }

    fn script(&self, line: &str) -> std::process::Command {
        let mut command = script(&self.name, line);
        command.envs(&self.settings);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = run(&mut self.script(&self.stop)) {
            eprintln!("xtask: {} could not be stopped: {error}", self.name);
        }
        if self.is_cluster()
            && let Err(error) = files::remove_dir(&home().join(instance()))
        {
            eprintln!("xtask: {error}");
        }
    }
}

/// Third-party clients installed by `clients.sh`, by its names for them.
pub(crate) struct Clients(Env);

impl Clients {
    /// Installs a group of clients: empty for those of S3, `-readers`, or `-clouds`.
    pub(crate) fn install(group: &str) -> Result<Self> {
        run(&mut script("clients", &format!("install{group}")))?;
        Ok(Self(parse_env(&output(&mut script(
            "clients",
            &format!("env{group}"),
        ))?)))
    }

    /// The path of a client.
    pub(crate) fn get(&self, name: &str) -> Result<&str> {
        let path = self.0.get(name).map(String::as_str);
        path.ok_or_else(|| format!("clients.sh names no {name}"))
    }
}

/// Reads KEY=VALUE lines; values are not unquoted.
pub(crate) fn parse_env(text: &str) -> Env {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}
