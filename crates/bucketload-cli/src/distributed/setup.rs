//! The description of the target for an agent: the coordinator's target, flags and environment variables, and the
//! contents of the files that these name.
//!
//! A workload or IO500's configuration may add settings; the agent gets the settings including these.
//!
//! Files are never written on the agent. Their contents are kept in anonymous memory (`memfd_create(2)`), and the names
//! in flags and variables are replaced by its path under `/proc/self/fd`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use bucketload_target::{Flag, Given, Settings, Value, flags};
use clap::Parser as _;
use serde::{Deserialize, Serialize};

use crate::cli::run::LoadArgs;
use crate::cli::target::TargetArgs;
use crate::cli::{Cli, Command};
use crate::connection::Connection;
use crate::drivers;
use crate::environment::{self, Variables};
use crate::exit::Failure;
use crate::target::{Api, OWN_BUCKET, Target};

/// Largest file that is sent, in bytes.
const LARGEST: u64 = 4 << 20;

/// The description of the target for an agent. Contains credentials, so it is never printed.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct TargetSetup {
    /// The coordinator's command line.
    command_line: Vec<String>,
    target: Target,
    /// The target flags, including changes by the workload.
    settings: Settings,
    variables: Variables,
    /// Contents of the files that variables name, by variable.
    variable_files: BTreeMap<String, Vec<u8>>,
    /// Contents of the files that flags name, by flag.
    flag_files: BTreeMap<String, Vec<u8>>,
    /// The coordinator's embedded server.
    embedded: Option<Embedded>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Embedded {
    url: String,
    access_key: String,
    secret_key: String,
}

impl TargetSetup {
    /// Describes the target of the coordinator's open `connection`.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn new(args: &TargetArgs, connection: &Connection) -> Result<Self, Failure> {
        let target = &connection.target;
        let mut variable_files = BTreeMap::new();
        drivers::ask(target, &args.settings, None, |driver, request| {
            for file in driver.files {
                let named = (request.variable)(file.variable).map(PathBuf::from);
                let usual = request.home.filter(|_| !file.below_home.is_empty());
                let path = named.or_else(|| usual.map(|home| home.join(file.below_home)));
                // A required file that cannot be read was refused when the target was opened.
                if let Some(contents) = path.and_then(|path| read(&path).ok()) {
                    let part = (file.part)(contents, request);
                    variable_files.insert(file.variable.to_owned(), part);
                }
            }
            Ok(())
        })?;
        let mut flag_files = BTreeMap::new();
        for flag in file_flags() {
            if let Some(path) = args.settings.path(flag) {
                let contents = read(&path).map_err(|e| {
                    Failure::usage(format!("{} {}: {e}", flag.name, path.display()))
                })?;
                flag_files.insert(flag.name.to_owned(), contents);
            }
        }
        Ok(Self {
            command_line: without_target(std::env::args()),
            target: target.clone(),
            settings: args.settings.clone(),
            variables: environment::consulted(),
            variable_files,
            flag_files,
            embedded: connection.embedded().map(|server| Embedded {
                url: format!("http://{}", server.address),
                access_key: server.access_key.clone(),
                secret_key: server.secret_key.clone(),
            }),
        })
    }

    /// Where COSBench's `localwrite` writes on the agent's machine, if the workload has it.
    pub(crate) fn local_files(&self) -> Option<&Path> {
        self.settings.local_files.as_deref()
    }

    /// Whether the run may replace files that exist already.
    pub(crate) fn may_replace_files(&self) -> bool {
        match Cli::try_parse_from(&self.command_line).map(|cli| cli.command) {
            Ok(Command::Run(args)) => args.cosbench.delete_named,
            _ => false,
        }
    }

    /// Opens the target as the coordinator does. The resources must outlive the connection.
    ///
    /// # Errors
    /// When the target cannot be opened here.
    pub(crate) fn open(mut self) -> Result<(Connection, LoadArgs, AssignmentResources), Failure> {
        let load = load(&self.command_line)?;
        let mut settings = self.settings;
        settings.local_files_on_agents = false;
        let mut files = Vec::new();
        for (name, contents) in &self.variable_files {
            let path = in_memory(contents, &mut files)?;
            settings.given.replace(name, &path);
            self.variables.insert(name.clone(), path);
        }
        for flag in file_flags() {
            if let Some(contents) = self.flag_files.get(flag.name) {
                settings.set(flag, [in_memory(contents, &mut files)?]);
            }
        }
        let mut target = self.target;
        if let Some(embedded) = self.embedded {
            target = Target::Service {
                api: Api::s3(),
                server: None,
                bucket: OWN_BUCKET.to_owned(),
                prefix: String::new(),
            };
            settings.set(&flags::ENDPOINT_URL, [embedded.url]);
            settings.set(&flags::REGION, ["us-east-1"]);
            settings.given = Given::default();
            self.variables = Variables::from([
                ("AWS_ACCESS_KEY_ID".to_owned(), embedded.access_key),
                ("AWS_SECRET_ACCESS_KEY".to_owned(), embedded.secret_key),
            ]);
        }
        let replaced = environment::replace(self.variables);
        let args = TargetArgs {
            target: None,
            settings,
        };
        let connection = Connection::open(target, &args, &load)?;
        let holding = AssignmentResources {
            _environment: replaced,
            _files: files,
        };
        Ok((connection, load, holding))
    }
}

/// The environment and the files of an assignment, which its connection uses.
pub(crate) struct AssignmentResources {
    _environment: environment::EnvironmentOverlay,
    _files: Vec<File>,
}

/// The load flags on the coordinator's command line. Coordinator and agent are the same version, so the flags parse.
fn load(command_line: &[String]) -> Result<LoadArgs, Failure> {
    match Cli::try_parse_from(command_line).map(|cli| cli.command) {
        Ok(Command::Run(args)) => Ok(args.load),
        Ok(Command::Io500(args)) => Ok(args.load),
        Ok(Command::MdWorkbench(args)) => Ok(args.load),
        Ok(Command::Checkpoint(args)) => Ok(args.load),
        Ok(Command::Train(args)) => Ok(args.load),
        Ok(Command::Kvcache(args)) => Ok(args.load),
        _ => Err(Failure::usage(
            "the coordinator's command does not support agents",
        )),
    }
}

/// The command line without the dialect's file and the target, whose name only this host may know: the settings contain
/// both.
fn without_target(words: impl Iterator<Item = String>) -> Vec<String> {
    const FLAGS: [&str; 3] = ["--dialect", "--target", "-t"];
    let mut skip = false;
    let kept = words.filter(|word| {
        let value = std::mem::replace(&mut skip, FLAGS.contains(&word.as_str()));
        let joined = word.starts_with("--dialect=")
            || word.starts_with("--target=")
            || word.starts_with("-t") && word.len() > 2;
        !value && !skip && !joined
    });
    kept.collect()
}

/// Flags that name files; agents get the contents of these.
fn file_flags() -> impl Iterator<Item = &'static Flag> {
    let all = drivers::registry().flags().into_iter();
    all.filter(|flag| matches!(flag.value, Value::File(_)))
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.len() > LARGEST {
        return Err(std::io::Error::other(format!(
            "the file is larger than {} MiB, too large to send to agents",
            LARGEST >> 20
        )));
    }
    std::fs::read(path)
}

/// Puts `contents` into anonymous memory, and returns its path in this process.
fn in_memory(contents: &[u8], files: &mut Vec<File>) -> Result<String, Failure> {
    let broken = |e: std::io::Error| {
        Failure::aborted(format!(
            "cannot keep the coordinator's files in memory: {e}"
        ))
    };
    let fd = rustix::fs::memfd_create("bucketload", rustix::fs::MemfdFlags::CLOEXEC)
        .map_err(|e| broken(e.into()))?;
    let mut file = File::from(fd);
    file.write_all(contents).map_err(broken)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    files.push(file);
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::{in_memory, without_target};

    #[test]
    fn agents_read_neither_the_dialects_file_nor_the_targets_name() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for line in [
            "run get --dialect d.toml --keep",
            "run get --dialect=d.toml --keep",
            "run get --target @desk --keep",
            "run --target=@desk get -t @desk --keep -t@desk",
        ] {
            assert_eq!(
                without_target(words(line).into_iter()),
                words("run get --keep")
            );
        }
    }

    #[test]
    fn files_in_memory_can_be_read_repeatedly() {
        let mut files = Vec::new();
        let path = in_memory(b"secret", &mut files).unwrap();
        for _ in 0..2 {
            assert_eq!(std::fs::read(&path).unwrap(), b"secret");
        }
    }
}
