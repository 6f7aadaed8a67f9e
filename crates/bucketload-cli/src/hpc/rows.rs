//! The rows of `bucketload s3-hpc`: the flags and variables of each row's runs, and the servers behind the rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use bucketload_results::hpc::Row;
use clap::ValueEnum as _;

use crate::cli::hpc::{DEFAULT_LIBRARY, HpcOptions, OwnRow};
use crate::cli::values::words;
use crate::embedded::EmbeddedServer;
use crate::exit::Failure;
use crate::hpc::gateway::{LibraryMode, LibrarySetup, VARIABLES};
use crate::target::OWN_BUCKET;

/// Placeholder for the object size in flags; the null store reads the size from the key.
const SIZE: &str = "{size}";

/// A row and how to run it; `None` for the bare socket.
pub(crate) struct RowSetup {
    pub(crate) row: Row,
    pub(crate) command: Option<RowCommand>,
}

/// Flags and variables of `bucketload run` for a row.
#[derive(Default)]
pub(crate) struct RowCommand {
    flags: Vec<String>,
    variables: BTreeMap<String, String>,
}

impl RowCommand {
    /// Adds flags and variables to a command for objects of `size` bytes, and removes inherited libs3 variables.
    pub(crate) fn apply(&self, command: &mut Command, size: u64) {
        for name in VARIABLES {
            command.env_remove(name);
        }
        let flags = self
            .flags
            .iter()
            .map(|flag| flag.replace(SIZE, &size.to_string()));
        command.args(flags).envs(&self.variables);
    }
}

/// All rows, and their servers, which run as long as this value lives.
pub(crate) struct Rows {
    pub(crate) all: Vec<RowSetup>,
    _servers: Vec<EmbeddedServer>,
    _libraries: Vec<LibrarySetup>,
}

impl Rows {
    /// Starts the servers that the rows need.
    ///
    /// # Errors
    /// When a row cannot be measured, or a server does not start.
    pub(crate) fn open(options: &HpcOptions) -> Result<Self, Failure> {
        let root = &options.root;
        let made = std::fs::create_dir_all(root).and_then(|()| root.canonicalize());
        let root = made.map_err(|e| Failure::usage(format!("--root {}: {e}", root.display())))?;
        let own = own_rows(options)?;
        let mut rows = Self {
            all: Vec::new(),
            _servers: Vec::new(),
            _libraries: Vec::new(),
        };
        for row in &own {
            rows.own(*row, &root, options)?;
        }
        for text in &options.further {
            rows.further(text)?;
        }
        if !options.no_floors {
            rows.add(
                "tcp",
                "floor: the same bytes over a bare TCP connection",
                true,
                None,
            );
            let server = EmbeddedServer::start(&["--store".to_owned(), "null".to_owned()])
                .map_err(Failure::target)?;
            let run = http(&server, &format!("/{SIZE}B"));
            rows._servers.push(server);
            rows.add(
                "rest",
                "floor: HTTP to a server that keeps nothing",
                true,
                Some(run),
            );
        }
        let mut names: Vec<&str> = rows.all.iter().map(|row| &*row.row.name).collect();
        names.sort_unstable();
        match names.windows(2).find(|two| two[0] == two[1]) {
            Some(two) => Err(Failure::usage(format!(
                "--row: there are two rows named {:?}; rename one",
                two[0]
            ))),
            None => Ok(rows),
        }
    }

    fn add(&mut self, name: &str, meaning: &str, floor: bool, command: Option<RowCommand>) {
        let row = Row {
            name: name.to_owned(),
            meaning: meaning.to_owned(),
            floor,
        };
        self.all.push(RowSetup { row, command });
    }

    fn own(&mut self, row: OwnRow, root: &Path, options: &HpcOptions) -> Result<(), Failure> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        match row {
            OwnRow::Posix => {
                let flags = [
                    "--target",
                    &format!("file://{}", text(root)),
                    "--posix-io",
                    "sync",
                ];
                let run = RowCommand {
                    flags: flags.map(str::to_owned).to_vec(),
                    ..RowCommand::default()
                };
                self.add(
                    "posix",
                    "one file per object, by plain calls",
                    false,
                    Some(run),
                );
            }
            OwnRow::Embedded | OwnRow::Remote | OwnRow::RemoteUnix => {
                let (name, mode, meaning) = match row {
                    OwnRow::Embedded => (
                        "embedded",
                        LibraryMode::Embedded,
                        "libs3 in the process, on the directory",
                    ),
                    OwnRow::Remote => (
                        "remote",
                        LibraryMode::Remote,
                        "libs3 in the process, on a gateway over TCP",
                    ),
                    _ => (
                        "remote-unix",
                        LibraryMode::RemoteUnix,
                        "libs3 in the process, on a gateway over a Unix socket",
                    ),
                };
                let setup = mode.start(root, &[]).map_err(Failure::target)?;
                let flags = [
                    "--target",
                    &format!("libs3://{OWN_BUCKET}"),
                    "--libs3-library",
                    &text(&options.library),
                ];
                let run = RowCommand {
                    flags: flags.map(str::to_owned).to_vec(),
                    variables: setup.env.clone(),
                };
                self._libraries.push(setup);
                self.add(name, meaning, false, Some(run));
            }
            OwnRow::Http => {
                let store = format!("posix:{}", text(root));
                let server = ["--store", &store, "--fast-etags"].map(str::to_owned);
                let server = EmbeddedServer::start(&server).map_err(Failure::target)?;
                let run = http(&server, "");
                self._servers.push(server);
                self.add(
                    "http",
                    "HTTP to bucketload serve on the directory",
                    false,
                    Some(run),
                );
            }
        }
        Ok(())
    }

    /// Adds a row that the user describes.
    fn further(&mut self, text: &str) -> Result<(), Failure> {
        let wrong =
            |why: &str| Failure::usage(format!("--row {text}: {why}; write NAME='--target URL …'"));
        let (name, flags) = text
            .split_once('=')
            .ok_or_else(|| wrong("the name is missing"))?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(plain) {
            return Err(wrong(
                "a name consists of letters, digits, hyphens, dots and underscores",
            ));
        }
        let flags = words(flags).map_err(|why| wrong(&why))?;
        let run = RowCommand {
            flags: flags.clone(),
            ..RowCommand::default()
        };
        self.add(name, &flags.join(" "), false, Some(run));
        Ok(())
    }
}

/// Our own rows: those that were asked for, or all that can be measured.
fn own_rows(options: &HpcOptions) -> Result<Vec<OwnRow>, Failure> {
    let needs_library = |row: &OwnRow| !matches!(row, OwnRow::Posix | OwnRow::Http);
    let asked = match options.rows.is_empty() {
        true => OwnRow::value_variants(),
        false => &options.rows,
    };
    let library = options.library.as_os_str();
    if !asked.iter().any(needs_library) {
        return Ok(asked.to_vec());
    }
    match (crate::drivers::registry().check_library)(library) {
        Ok(()) => Ok(asked.to_vec()),
        // A user who names the library or its rows wants them measured.
        Err(why) if !options.rows.is_empty() || library != DEFAULT_LIBRARY => {
            Err(Failure::usage(format!(
                "--library: {why}; name another library, or leave out its rows: --rows posix,http"
            )))
        }
        Err(why) => {
            eprintln!(
                "bucketload: skipping the rows embedded, remote and remote-unix: {why}; name the library \
                 with --library"
            );
            Ok(asked
                .iter()
                .copied()
                .filter(|row| !needs_library(row))
                .collect())
        }
    }
}

/// A row on one of our own servers, below a prefix.
fn http(server: &EmbeddedServer, prefix: &str) -> RowCommand {
    let url = format!("http://{}", server.address);
    let flags = [
        "--target",
        &format!("s3://{OWN_BUCKET}{prefix}"),
        "--endpoint-url",
        &url,
        "--region",
        "us-east-1",
    ];
    RowCommand {
        flags: flags.map(str::to_owned).to_vec(),
        variables: BTreeMap::from([
            ("AWS_ACCESS_KEY_ID".to_owned(), server.access_key.clone()),
            (
                "AWS_SECRET_ACCESS_KEY".to_owned(),
                server.secret_key.clone(),
            ),
        ]),
    }
}
