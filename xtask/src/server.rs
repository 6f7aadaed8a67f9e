//! Third-party servers for tests, through the scripts of `servers/`.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;

use crate::sh::{Result, cmd, output, root, run};

/// A running server; stopped and purged when dropped.
pub(crate) struct Server {
    /// Script name without `.sh`.
    pub(crate) name: String,
    /// The KEY=VALUE lines the script printed.
    pub(crate) env: BTreeMap<String, String>,
    settings: Vec<(String, String)>,
    stop: Vec<String>,
}

/// Scripts of several processes each: one instance per state folder, ports by settings.
const CLUSTERS: [&str; 3] = ["ceph", "swift", "hdfs"];

/// Where this run keeps servers' programs and state: `$SERVERS_HOME`, else the scripts' default.
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

/// A port below those that the system gives to connections: its neighbours are free, too.
fn low_port() -> Result<u16> {
    Ok(20_000 + free_port()? % 9_000)
}

impl Server {
    /// Installs and starts the server `name` in a fresh instance.
    pub(crate) fn start(name: &str) -> Result<Self> {
        Self::launch(name, &["rgw"], &[])
    }

    /// As [`Server::start`], with further settings for the script.
    pub(crate) fn start_with(name: &str, more: &[(&str, &str)]) -> Result<Self> {
        Self::launch(name, &["rgw"], more)
    }

    /// As [`Server::start`]; of Ceph these parts (`rgw`, `fs`).
    pub(crate) fn start_parts(name: &str, parts: &[&str]) -> Result<Self> {
        Self::launch(name, parts, &[])
    }

    fn launch(name: &str, parts: &[&str], more: &[(&str, &str)]) -> Result<Self> {
        let instance = format!("ci{}", std::process::id());
        let (settings, start, stop): (Vec<(String, String)>, Vec<String>, Vec<String>) =
            if CLUSTERS.contains(&name) {
                // one cluster per state folder: a folder of this process, with ports of its own
                let state = home().join(&instance);
                let mut settings = vec![("SERVERS_HOME".to_owned(), state.display().to_string())];
                let mut start = vec!["start".to_owned()];
                if name == "ceph" {
                    for key in ["CEPH_RGW_PORT", "CEPH_RGW_TLS_PORT"] {
                        settings.push((key.to_owned(), free_port()?.to_string()));
                    }
                    // the script derives a second port from this one by adding 3489
                    settings.push(("CEPH_MON_PORT".to_owned(), low_port()?.to_string()));
                    settings.push(("CEPH_STORE".to_owned(), "memstore".to_owned()));
                    settings.push(("CEPH_OSD_SIZE".to_owned(), "4G".to_owned()));
                    start.extend(parts.iter().map(|&part| part.to_owned()));
                } else if name == "hdfs" {
                    settings.push(("HDFS_DATANODES".to_owned(), "3".to_owned()));
                    for key in ["HDFS_PORT", "HDFS_HTTP_PORT"] {
                        settings.push((key.to_owned(), free_port()?.to_string()));
                    }
                    // the script adds up to 23 to this one
                    settings.push(("HDFS_DN_PORT".to_owned(), low_port()?.to_string()));
                } else {
                    for key in ["SWIFT_PORT", "SWIFT_MEMCACHE_PORT"] {
                        settings.push((key.to_owned(), free_port()?.to_string()));
                    }
                    // the script uses the next two ports, too
                    settings.push(("SWIFT_BASE_PORT".to_owned(), low_port()?.to_string()));
                }
                (settings, start, vec!["clean".into()])
            } else {
                let at = vec!["--instance".to_owned(), instance];
                let with = |verb: &str| [vec![verb.to_owned()], at.clone()].concat();
                (
                    Vec::new(),
                    with("start"),
                    [with("stop"), vec!["--purge".to_owned()]].concat(),
                )
            };
        let more = more.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        let settings = settings.into_iter().chain(more).collect();
        let mut server = Self {
            name: name.to_owned(),
            env: BTreeMap::new(),
            settings,
            stop,
        };
        let text = output(server.script(&start).env_remove("CARGO_TARGET_DIR"))?;
        server.env = parse_env(&text);
        Ok(server)
    }

    /// The value the script printed for `key`.
    pub(crate) fn get(&self, key: &str) -> Result<&str> {
        self.env
            .get(key)
            .map(String::as_str)
            .ok_or_else(|| format!("{}: printed no {key}", self.name))
    }

    /// Calls the server's script and returns what it prints.
    pub(crate) fn ask(&self, args: &[&str]) -> Result<String> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        output(&mut self.script(&args))
    }

    fn script(&self, args: &[String]) -> std::process::Command {
        let path = root().join("servers").join(format!("{}.sh", self.name));
        let mut command = cmd(&path.display().to_string(), args);
        command.envs(self.settings.iter().map(|(k, v)| (k, v)));
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut command = self.script(&self.stop);
        if let Err(error) = run(&mut command) {
            eprintln!("xtask: {} could not be stopped: {error}", self.name);
        }
        if CLUSTERS.contains(&self.name.as_str()) {
            let state = home().join(format!("ci{}", std::process::id()));
            if let Err(error) = std::fs::remove_dir_all(&state) {
                eprintln!("xtask: {}: {error}", state.display());
            }
        }
    }
}

/// Reads KEY=VALUE lines; values are taken as they are.
pub(crate) fn parse_env(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}
