//! What an agent is told of the target: the coordinator's flags, target, environment variables and the
//! contents of the files that these name.
//!
//! A workload or IO500's configuration may bring settings of its own (`Settled`); they are part of it, since flags and environment
//! alone would open another target.
//!
//! Files are never written on the agent: their contents lie in anonymous memory (`memfd_create(2)`) and
//! the names in flags and variables are replaced by its path under `/proc/self/fd`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use clap::{Parser as _, ValueEnum as _};
use serde::{Deserialize, Serialize};

use crate::cli::run::LoadArgs;
use crate::cli::target::{Addressing, Given, TargetArgs};
use crate::cli::{Cli, Command};
use crate::connection::Connection;
use crate::environment::{self, Variables};
use crate::exit::Failure;
use crate::target::{Api, OWN_BUCKET, Target};

/// Variables that name files, and the files that are meant below the home folder when they are not set.
const FILES: [(&str, &str); 6] = [
    ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
    ("AWS_CONFIG_FILE", ".aws/config"),
    ("AWS_CA_BUNDLE", ""),
    (
        "GOOGLE_APPLICATION_CREDENTIALS",
        ".config/gcloud/application_default_credentials.json",
    ),
    ("OS_CLIENT_CONFIG_FILE", ".config/openstack/clouds.yaml"),
    ("OS_CACERT", ""),
];

/// Largest file that is sent, bytes.
const LARGEST: u64 = 4 << 20;

/// What an agent is told of the target. Holds credentials, so it is never printed.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The coordinator's command line.
    command_line: Vec<String>,
    target: Target,
    settled: Settled,
    variables: Variables,
    /// Contents of the files that variables name, by variable.
    variable_files: BTreeMap<String, Vec<u8>>,
    /// Contents of the files that flags name, by flag.
    flag_files: BTreeMap<String, Vec<u8>>,
    /// The coordinator's embedded server.
    embedded: Option<Embedded>,
}

/// Flags about the target that a workload or configuration may change, as they are after it has.
#[derive(Clone, Serialize, Deserialize)]
struct Settled {
    endpoint_url: Vec<String>,
    region: Option<String>,
    /// Name of [`Addressing`].
    addressing: Option<String>,
    no_verify_ssl: bool,
    drop_caches: bool,
    given: Given,
}

impl Settled {
    fn of(args: &TargetArgs) -> Self {
        Self {
            endpoint_url: args.endpoint_url.clone(),
            region: args.region.clone(),
            addressing: args.addressing.map(|style| style.name().to_owned()),
            no_verify_ssl: args.no_verify_ssl,
            drop_caches: args.posix.posix_drop_caches,
            given: args.given.clone(),
        }
    }

    /// Changes the flags of the command line as the workload has.
    fn settle(&self, args: &mut TargetArgs) -> Result<(), Failure> {
        args.endpoint_url.clone_from(&self.endpoint_url);
        args.region.clone_from(&self.region);
        let style = self.addressing.as_deref();
        let style = style.map(|name| Addressing::from_str(name, false));
        args.addressing = style.transpose().map_err(Failure::usage)?;
        args.no_verify_ssl = self.no_verify_ssl;
        args.posix.posix_drop_caches = self.drop_caches;
        args.given = self.given.clone();
        Ok(())
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Embedded {
    url: String,
    access_key: String,
    secret_key: String,
}

impl Setup {
    /// That of the coordinator with `connection`, which it has opened already.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn new(args: &TargetArgs, connection: &Connection) -> Result<Self, Failure> {
        let variables = environment::consulted();
        let home = environment::home();
        let profile = args.profile.clone();
        let profile = profile.or_else(|| args.variable("AWS_PROFILE"));
        let profile = profile.unwrap_or_else(|| "default".to_owned());
        let is =
            |api: Api| matches!(&connection.target, Target::Service { api: of, .. } if *of == api);
        let mut variable_files = BTreeMap::new();
        for (name, below_home) in FILES {
            let wanted = match name {
                "AWS_SHARED_CREDENTIALS_FILE" | "AWS_CONFIG_FILE" => is(Api::S3),
                "GOOGLE_APPLICATION_CREDENTIALS" => is(Api::Gcs),
                "OS_CLIENT_CONFIG_FILE" => is(Api::Swift),
                _ => true,
            };
            let named = args.variable(name).map(PathBuf::from);
            let usual = home.as_ref().filter(|_| !below_home.is_empty());
            let path = named.or_else(|| usual.map(|home| home.join(below_home)));
            let Some(contents) = path.filter(|_| wanted).and_then(|path| read(&path).ok()) else {
                // A file that is needed and cannot be read was refused when the target was opened.
                continue;
            };
            let contents = match name {
                "AWS_SHARED_CREDENTIALS_FILE" | "AWS_CONFIG_FILE" => only(&contents, &profile),
                _ => contents,
            };
            variable_files.insert(name.to_owned(), contents);
        }
        let mut flag_files = BTreeMap::new();
        for (flag, path) in flag_paths(args) {
            let contents = read(path)
                .map_err(|e| Failure::usage(format!("{flag} {}: {e}", path.display())))?;
            flag_files.insert(flag.to_owned(), contents);
        }
        let command_line: Vec<String> = std::env::args().collect();
        let settled = Settled::of(args);
        let (mut rebuilt, _) = flags(&command_line)?;
        settled.settle(&mut rebuilt)?;
        if rebuilt != *args {
            return Err(Failure::aborted(
                "the workload changes a setting of the target that agents are not told",
            ));
        }
        Ok(Self {
            command_line,
            target: connection.target.clone(),
            settled,
            variables,
            variable_files,
            flag_files,
            embedded: connection.embedded().map(|server| Embedded {
                url: format!("http://{}", server.address),
                access_key: server.access_key.clone(),
                secret_key: server.secret_key.clone(),
            }),
        })
    }

    /// Opens the target as the coordinator has. What is returned beside it must live as long.
    ///
    /// # Errors
    /// When the target cannot be opened here.
    pub(crate) fn open(mut self) -> Result<(Connection, LoadArgs, Holding), Failure> {
        let (mut args, load) = flags(&self.command_line)?;
        self.settled.settle(&mut args)?;
        let mut files = Vec::new();
        for (name, contents) in &self.variable_files {
            let path = in_memory(contents, &mut files)?;
            args.given.replace(name, &path);
            self.variables.insert(name.clone(), path);
        }
        for (flag, contents) in &self.flag_files {
            let path = Some(PathBuf::from(in_memory(contents, &mut files)?));
            match flag.as_str() {
                "--ca-bundle" => args.ca_bundle = path,
                "--client-cert" => args.client_cert = path,
                "--client-key" => args.client_key = path,
                _ => args.token_file = path,
            }
        }
        let mut target = self.target;
        if let Some(embedded) = self.embedded {
            target = Target::Service {
                api: Api::S3,
                server: None,
                bucket: OWN_BUCKET.to_owned(),
                prefix: String::new(),
            };
            args.target = None;
            args.endpoint_url = vec![embedded.url];
            args.region = Some("us-east-1".to_owned());
            args.given = Given::default();
            self.variables = Variables::from([
                ("AWS_ACCESS_KEY_ID".to_owned(), embedded.access_key),
                ("AWS_SECRET_ACCESS_KEY".to_owned(), embedded.secret_key),
            ]);
        }
        let replaced = environment::replace(self.variables);
        let connection = Connection::open(target, &args, &load)?;
        let holding = Holding {
            _environment: replaced,
            _files: files,
        };
        Ok((connection, load, holding))
    }
}

/// The environment and the files of an assignment.
pub(crate) struct Holding {
    _environment: environment::Replaced,
    _files: Vec<File>,
}

/// The flags about target and load on another process's command line. This is the same version, so it
/// understands them.
fn flags(command_line: &[String]) -> Result<(TargetArgs, LoadArgs), Failure> {
    match Cli::try_parse_from(command_line).map(|cli| cli.command) {
        Ok(Command::Run(args)) => Ok((args.target, args.load)),
        Ok(Command::Io500(args)) => Ok((args.target, args.load)),
        Ok(Command::MdWorkbench(args)) => Ok((args.target, args.load)),
        _ => Err(Failure::usage("the coordinator's command is no run")),
    }
}

fn flag_paths(args: &TargetArgs) -> impl Iterator<Item = (&'static str, &Path)> {
    [
        ("--ca-bundle", &args.ca_bundle),
        ("--client-cert", &args.client_cert),
        ("--client-key", &args.client_key),
        ("--token-file", &args.token_file),
    ]
    .into_iter()
    .filter_map(|(flag, path)| Some((flag, path.as_deref()?)))
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.len() > LARGEST {
        return Err(std::io::Error::other("too large to be sent to agents"));
    }
    std::fs::read(path)
}

/// Puts `contents` into anonymous memory; returns its path in this process.
fn in_memory(contents: &[u8], files: &mut Vec<File>) -> Result<String, Failure> {
    let broken = |e: std::io::Error| Failure::aborted(format!("memory for a file: {e}"));
    let fd = rustix::fs::memfd_create("bucketload", rustix::fs::MemfdFlags::CLOEXEC)
        .map_err(|e| broken(e.into()))?;
    let mut file = File::from(fd);
    file.write_all(contents).map_err(broken)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    files.push(file);
    Ok(path)
}

/// The sections of an AWS file that belong to `profile`, and those that profiles refer to (`services`,
/// `sso-session`): other profiles' secrets stay where they are.
fn only(contents: &[u8], profile: &str) -> Vec<u8> {
    let text = String::from_utf8_lossy(contents);
    let mut kept = String::new();
    let mut keep = false;
    for line in text.lines() {
        if let Some(name) = line
            .trim()
            .strip_prefix('[')
            .and_then(|l| l.split(']').next())
        {
            let name = name.trim();
            let plain = name.strip_prefix("profile ").unwrap_or(name).trim();
            keep = plain == profile
                || name.starts_with("services ")
                || name.starts_with("sso-session ");
        }
        if keep {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::{in_memory, only};

    #[test]
    fn only_the_profile_that_is_used_is_sent() {
        let file = b"[default]\naws_secret_access_key = a\n[profile b]\nregion = x\n[b]\nkey = b\n\
                     [services s]\ns3 =\n  endpoint_url = http://h\n";
        let text = |profile: &str| String::from_utf8(only(file, profile)).unwrap();
        assert!(text("default").contains("= a") && !text("default").contains("= b"));
        assert!(text("b").contains("region = x") && text("b").contains("key = b"));
        assert!(!text("b").contains("= a") && text("b").contains("endpoint_url"));
    }

    #[test]
    fn files_lie_in_memory_and_can_be_read_again_and_again() {
        let mut files = Vec::new();
        let path = in_memory(b"secret", &mut files).unwrap();
        for _ in 0..2 {
            assert_eq!(std::fs::read(&path).unwrap(), b"secret");
        }
    }
}
