//! Servers that a study starts with the scripts of `servers/`, each on a free loopback port. A server is stopped when
//! the study switches to another target or ends for any reason.
//!
//! The name of a server's instance follows from the study's directory and the target's name. A study that was killed
//! therefore finds the servers that it left running, and stops them before it starts them again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bucketload_results::rundir::host::HostFacts;
use bucketload_results::rundir::redact;
use bucketload_run::StopHandle;
use bucketload_study::layout;
use bucketload_study::model::{Placement, SCHEMA, Target, TargetFacts};

use super::check::{fill, on_path, server_args, target_args};
use super::cores;
use super::library;
use super::placement::PlacementLookup;
use super::script::{Scripts, StartedServer, home};
use super::write_whole;
use crate::hpc::gateway::LibrarySetup;

/// Scripts that start one server process, whatever the number of its drives.
const SINGLE: [&str; 6] = [
    "minio",
    "versitygw",
    "s3proxy",
    "garage",
    "azurite",
    "fake-gcs-server",
];

/// A target that can be used.
pub(super) struct ReadyTarget {
    /// The options for commands on this target.
    pub(super) args: Vec<String>,
    /// Variables for these commands.
    pub(super) env: BTreeMap<String, String>,
    /// How to look up the placement of its objects.
    pub(super) lookup: Option<PlacementLookup>,
    /// The servers that were started, last first; they are stopped when dropped.
    _started: Vec<StartedServer>,
    /// The setup of a libs3 library.
    _library: Option<LibrarySetup>,
}

/// Makes `target` usable, and records facts about it.
///
/// # Errors
/// Why the target cannot be used.
pub(super) fn ready(
    target: &Target,
    dir: &Path,
    scripts: &Scripts,
    stop: &StopHandle,
) -> Result<ReadyTarget, String> {
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

/// A target that runs already or needs no server.
fn given(target: &Target, dir: &Path, facts: &mut TargetFacts) -> Result<ReadyTarget, String> {
    let own = own_dir(dir, &target.name);
    if target.url.contains("{dir}") {
        std::fs::create_dir_all(&own).map_err(|e| format!("{}: {e}", own.display()))?;
    }
    let library_setup = match library::mode_of(&target.url) {
        Some((mode, root)) => {
            let library = library::library();
            let name = library.file_name().unwrap_or_default();
            let name = name.to_string_lossy().into_owned();
            facts.settings.insert("library".to_owned(), name);
            let library_setup = library::start(mode, Path::new(&fill(root, &own)))?;
            if library_setup.has_server() {
                facts.cores = cores::words(&cores::spare());
            }
            Some(library_setup)
        }
        None => None,
    };
    let env = library_setup
        .as_ref()
        .map(|library_setup| library_setup.env.clone())
        .unwrap_or_default();
    facts.url = redact::text(&target.url);
    facts.endpoint = redact::text(&target.endpoint);
    let here = ["mem:", "null:", "file:", "serve:"];
    if library_setup.is_some() || here.iter().any(|scheme| target.url.starts_with(scheme)) {
        facts.placement = Placement::OneNode;
    }
    Ok(ReadyTarget {
        args: target_args(target, &own),
        env,
        lookup: None,
        _started: Vec::new(),
        _library: library_setup,
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
) -> Result<ReadyTarget, String> {
    facts.server.clone_from(&target.server);
    if !target.requires.is_empty() && !on_path(&target.requires) {
        return Err(format!("{} is not on the PATH", target.requires));
    }
    let settings = target.settings.clone();
    let server = StartedServer::start(scripts, &target.server, dir, &target.name, settings, stop)?;
    facts.cores = cores::words(&server.cores);
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
        let proxy = StartedServer::start(
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
    let lookup = PlacementLookup::of(&target.server, &env);
    facts.placement = match &lookup {
        Some(_) => Placement::Asked,
        None if SINGLE.contains(&&*target.server) => Placement::OneNode,
        None => Placement::Unknown,
    };
    Ok(ReadyTarget {
        args,
        env,
        lookup,
        _library: None,
        _started: running,
    })
}

/// The endpoint of an API according to the lines that a script printed.
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

/// The version of the program that a script starts, as far as it can be determined.
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
        // The script unpacks nginx beside the other programs.
        "nginx" => ask(
            &home()
                .join("nginx/root/usr/sbin/nginx")
                .display()
                .to_string(),
            &["-v"],
        )
        .map(|said| said.trim_start_matches("nginx version: ").to_owned()),
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

#[cfg(test)]
mod tests {
    use super::address;
    use crate::study::script::lines;

    #[test]
    fn the_endpoint_is_that_of_the_api() {
        let lines = lines("AWS_ENDPOINT_URL=http://a\nST_AUTH=http://a/auth/v1.0\nX=y=z\nnoise\n");
        assert_eq!(lines["X"], "y=z");
        assert_eq!(address(&lines, "s3").unwrap(), "http://a");
        assert_eq!(address(&lines, "swift").unwrap(), "http://a/auth/v1.0");
        assert_eq!(address(&lines, "seaweedfs"), None);
    }
}
