//! Third-party clients as engines of our driver: the libraries with the shared suite, the command-line clients
//! operation by operation, against the embedded server. Swift's own client runs against OpenStack Swift, Azure's
//! against Azurite, Google's against an emulator.

use std::fmt::Write as _;

use crate::files::TempDir;
use crate::program::{self, Env, Serve, call, measured, run_phase, self_signed};
use crate::server::{Clients, Server};
use crate::sh::{Result, cargo, cmd, ensure, none_of, run, step};

/// The cargo features of the libraries.
const LIBRARIES: &str = "engine-aws-sdk,engine-object-store,engine-opendal";

/// The command-line clients, and the names that `clients.sh` gives them.
const PROGRAMS: [(&str, &str); 4] = [
    ("aws", "AWS"),
    ("mc", "MC"),
    ("rclone", "RCLONE"),
    ("s3cmd", "S3CMD"),
];

/// The shared suite, retries, failures and TLS with each library. Building the libraries takes minutes.
pub(crate) fn libraries() -> Result {
    run(&mut cargo(&format!(
        "test --locked -p bucketload-drivers --features {LIBRARIES} --test it engines::"
    )))
}

/// Runs each operation of each program and a short verified run, and prints a table of clients and operations.
pub(crate) fn programs() -> Result {
    let tools = Clients::install("")?;
    let server = Serve::start("--store memory")?;
    let mut results = ClientResults::default();
    for (name, key) in PROGRAMS {
        results.client(name, tools.get(key)?, server.aws_env(), "s3", "", None)?;
    }
    let swift = Server::start("swift")?;
    let tool = tools.get("SWIFT")?;
    results.client("swift", tool, swift.env.clone(), "swift", "", None)?;
    drop(swift);
    let clouds = Clients::install("-clouds")?;
    let azurite = Server::start("azurite")?;
    results.client("az", clouds.get("AZ")?, azurite.env.clone(), "az", "", None)?;
    drop(azurite);
    // gsutil requires https.
    let dir = TempDir::new("gsutil")?;
    let (cert, key) = (dir.file("cert.pem"), dir.file("key.pem"));
    self_signed(&cert, &key)?;
    let settings = [
        ("GCS_CERT", cert.as_str()),
        ("GCS_KEY", key.as_str()),
        ("GCS_BACKEND", "memory"),
    ];
    let emulator = Server::start_with("fake-gcs-server", &settings)?;
    let mut env = emulator.env.clone();
    env.insert("GCS_CA_BUNDLE".to_owned(), cert.clone());
    // The emulator answers deletes with `null` instead of an empty body. gsutil fails on it after the object is
    // deleted.
    let excused = Some("'NoneType' object has no attribute");
    let flags = format!("--ca-bundle {cert}");
    results.client("gsutil", clouds.get("GSUTIL")?, env, "gs", &flags, excused)?;
    println!("{}", table(&results.columns));
    none_of(&results.failures)
}

/// Results of the clients so far.
#[derive(Default)]
struct ClientResults {
    /// Name of a client, and its output for each operation.
    columns: Vec<(&'static str, String)>,
    failures: Vec<String>,
}

impl ClientResults {
    /// Runs every operation of a client, then a short run with additional `flags`.
    fn client(
        &mut self,
        name: &'static str,
        program: &str,
        env: Env,
        scheme: &str,
        flags: &str,
        excused: Option<&'static str>,
    ) -> Result {
        let folder = std::path::Path::new(program).parent();
        let folder = folder.unwrap_or("/".as_ref()).display();
        let client = Client {
            name,
            path: format!("{folder}:/usr/bin:/bin"),
            env,
            excused,
        };
        let printed = client.operations(&mut self.failures)?;
        self.columns.push((name, printed));
        let line = format!("--target {scheme}://engine-runs/x {flags}");
        let what = format!("a run with cli:{name}");
        self.failures
            .extend(step(&what, || client.measured(&line)).err());
        Ok(())
    }
}

/// The table's word for a failure that is the server's fault.
const EXCUSED: &str = "server";

/// A command-line client and its server.
struct Client {
    name: &'static str,
    /// `PATH` for finding the client.
    path: String,
    /// Address of the server, and credentials.
    env: Env,
    /// Part of the message of a failure that is the server's fault.
    excused: Option<&'static str>,
}

impl Client {
    /// Performs every operation and returns the output for each.
    fn operations(&self, failures: &mut Vec<String>) -> Result<String> {
        let client = program::tested_example("client")?;
        let own = std::env::var("PATH").unwrap_or_default();
        let outcome = call(
            cmd(&client.to_string_lossy(), [self.name])
                .env("PATH", format!("{}:{own}", self.path))
                .env_remove("AWS_CA_BUNDLE")
                .envs(&self.env),
        )?;
        let failed = |line: &&str| {
            let words = line.split_once('\t').map_or(*line, |(_, words)| words);
            words != "ok" && !self.excused.is_some_and(|excuse| words.contains(excuse))
        };
        // Exit code 1 means that an operation failed.
        if !matches!(outcome.code, 0 | 1) || outcome.stdout.lines().any(|line| failed(&line)) {
            failures.push(format!(
                "cli:{}: exit code {}\n{}{}",
                self.name, outcome.code, outcome.stdout, outcome.stderr
            ));
        }
        let excused = |line: &str| match self.excused {
            Some(excuse) if line.contains(excuse) => {
                let name = line.split_once('\t').map_or(line, |(name, _)| name);
                format!("{name}\t{EXCUSED}\n")
            }
            _ => format!("{line}\n"),
        };
        Ok(outcome.stdout.lines().map(excused).collect())
    }

    /// A short run that reads and verifies.
    fn measured(&self, more: &str) -> Result {
        let dir = TempDir::new("engine-run")?;
        let (name, out) = (self.name, dir.file("run"));
        let mut env = self.env.clone();
        env.insert("PATH".to_owned(), self.path.clone());
        let result = measured(
            &format!(
                "run get --engine cli:{name} --create-bucket --objects 3 --size 20KiB --workers 2 --ops 6 --verify \
                 --no-calibration --out {out} {more}"
            ),
            &env,
        )?;
        let totals = &run_phase(&result)?["totals"];
        ensure(totals["ok"] == 6 && totals["failed"] == 0, || {
            format!("{totals}")
        })
    }
}

/// A table with a row per operation and a column per client.
fn table(columns: &[(&str, String)]) -> String {
    let cells: Vec<Vec<(&str, &str)>> = columns
        .iter()
        .map(|(_, text)| text.lines().filter_map(|l| l.split_once('\t')).collect())
        .collect();
    let mut out = String::from("| operation |");
    for (name, _) in columns {
        let _ = write!(out, " cli:{name} |");
    }
    out += "\n|---|";
    out += &"---|".repeat(columns.len());
    let names = cells.first().into_iter().flatten().map(|(name, _)| *name);
    for name in names {
        let _ = write!(out, "\n| {name} |");
        for column in &cells {
            let cell = column.iter().find(|(n, _)| *n == name);
            let word = match cell {
                Some((_, "ok")) => "ok",
                Some((_, EXCUSED)) => EXCUSED,
                Some(_) => "FAILED",
                None => "-",
            };
            let _ = write!(out, " {word} |");
        }
    }
    out
}
