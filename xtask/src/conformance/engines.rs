//! Clients other than our own as engines of our driver: the libraries through the shared suite, the
//! command-line clients operation by operation, all against the embedded server; Swift's own client
//! against OpenStack Swift, Azure's against Azurite, Google's against the emulator of its storage.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::own::{self, Serve, TempDir, bucketload, call, run_phase, self_signed};
use crate::server::{Server, parse_env};
use crate::sh::{Result, cargo, cmd, output, root, run, step};

/// The cargo features of the libraries.
const LIBRARIES: &str = "engine-aws-sdk,engine-object-store,engine-opendal";

/// The command-line clients that `clients.sh` installs, and its names for them.
const PROGRAMS: [(&str, &str); 4] = [
    ("aws", "AWS"),
    ("mc", "MC"),
    ("rclone", "RCLONE"),
    ("s3cmd", "S3CMD"),
];

/// The shared suite, retries, failures and TLS with each library. Building them takes minutes.
pub(crate) fn libraries() -> Result {
    run(&mut cargo([
        "test",
        "--locked",
        "-p",
        "bucketload-drivers",
        "--features",
        LIBRARIES,
        "--test",
        "engines",
    ]))
}

/// Each operation of each program, and a short verified run; prints a table client x operation.
pub(crate) fn programs() -> Result {
    let script = root().join("servers/clients.sh");
    let script = script.to_string_lossy().into_owned();
    run(&mut cmd(&script, ["install"]))?;
    let tools = parse_env(&output(&mut cmd(&script, ["env"]))?);
    let server = Serve::start(&["--store", "memory"])?;
    let mut columns = Vec::new();
    let mut failures = Vec::new();
    for (name, key) in PROGRAMS {
        let tool = tool(&tools, key)?;
        let client = Client {
            name,
            path: format!("{}:/usr/bin:/bin", folder(tool)),
            env: server.aws_env(),
            target: "s3://engine-runs/x",
            flags: Vec::new(),
            excused: None,
        };
        columns.push((name, client.meet(&mut failures)?));
    }
    let swift = Server::start("swift")?;
    let client = Client {
        name: "swift",
        path: format!("{}:/usr/bin:/bin", folder(tool(&tools, "SWIFT")?)),
        env: swift.env.clone().into_iter().collect(),
        target: "swift://engine-runs/x",
        flags: Vec::new(),
        excused: None,
    };
    columns.push((client.name, client.meet(&mut failures)?));
    drop(swift);
    clouds(&script, &mut columns, &mut failures)?;
    println!("{}", table(&columns));
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n")),
    }
}

/// The clients of Azure and of Google Cloud Storage.
fn clouds(
    script: &str,
    columns: &mut Vec<(&'static str, String)>,
    failures: &mut Vec<String>,
) -> Result {
    run(&mut cmd(script, ["install-clouds"]))?;
    let tools = parse_env(&output(&mut cmd(script, ["env-clouds"]))?);
    let azurite = Server::start("azurite")?;
    let client = Client {
        name: "az",
        path: format!("{}:/usr/bin:/bin", folder(tool(&tools, "AZ")?)),
        env: azurite.env.clone().into_iter().collect(),
        target: "az://engine-runs/x",
        flags: Vec::new(),
        excused: None,
    };
    columns.push((client.name, client.meet(failures)?));
    drop(azurite);
    // gsutil speaks https only.
    let dir = TempDir::new("gsutil")?;
    let (cert, key) = (dir.file("cert.pem"), dir.file("key.pem"));
    self_signed(&cert, &key)?;
    let settings = [
        ("GCS_CERT", cert.as_str()),
        ("GCS_KEY", key.as_str()),
        ("GCS_BACKEND", "memory"),
    ];
    let emulator = Server::start_with("fake-gcs-server", &settings)?;
    let mut env: Vec<_> = emulator.env.clone().into_iter().collect();
    env.push(("GCS_CA_BUNDLE".to_owned(), cert.clone()));
    let client = Client {
        name: "gsutil",
        path: format!("{}:/usr/bin:/bin", folder(tool(&tools, "GSUTIL")?)),
        env,
        target: "gs://engine-runs/x",
        flags: vec!["--ca-bundle".to_owned(), cert],
        // The emulator answers deletes with `null` where the service answers nothing, at which gsutil
        // stumbles after the deed.
        excused: Some("'NoneType' object has no attribute"),
    };
    columns.push((client.name, client.meet(failures)?));
    Ok(())
}

fn tool<'a>(tools: &'a BTreeMap<String, String>, key: &str) -> Result<&'a str> {
    let tool = tools.get(key).map(String::as_str);
    tool.ok_or_else(|| format!("clients.sh names no {key}"))
}

fn folder(program: &str) -> String {
    let parent = std::path::Path::new(program).parent();
    parent.unwrap_or("/".as_ref()).display().to_string()
}

/// What the table says of an operation that the server and not the client is to blame for.
const EXCUSED: &str = "server";

/// A command-line client and the server that it is tried on.
struct Client {
    name: &'static str,
    /// `PATH` with which it is found.
    path: String,
    /// Where the server is and who asks.
    env: Vec<(String, String)>,
    /// Of the short run.
    target: &'static str,
    /// Further flags of the short run.
    flags: Vec<String>,
    /// What a failure says that is the server's and not the client's.
    excused: Option<&'static str>,
}

impl Client {
    /// Every operation, then a short run; returns what was printed about each operation.
    fn meet(&self, failures: &mut Vec<String>) -> Result<String> {
        let printed = self.operations(failures)?;
        let what = format!("a run with cli:{}", self.name);
        failures.extend(step(&what, || self.measured()).err());
        Ok(printed)
    }

    /// Performs every operation; returns what was printed about each.
    fn operations(&self, failures: &mut Vec<String>) -> Result<String> {
        let client = own::tested_example("client")?;
        let own = std::env::var("PATH").unwrap_or_default();
        let outcome = call(
            cmd(&client.to_string_lossy(), [self.name])
                .env("PATH", format!("{}:{own}", self.path))
                .env_remove("AWS_CA_BUNDLE")
                .envs(self.env.iter().map(|(name, value)| (name, value))),
        )?;
        let failed = |line: &&str| {
            let words = line.split_once('\t').map_or(*line, |(_, words)| words);
            words != "ok" && !self.excused.is_some_and(|excuse| words.contains(excuse))
        };
        // 1 says that an operation failed.
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

    /// A short run of the whole program that reads and verifies.
    fn measured(&self) -> Result {
        let dir = TempDir::new("engine-run")?;
        let engine = format!("cli:{}", self.name);
        let out = dir.file("run");
        let line = [
            "run",
            "get",
            "--engine",
            &engine,
            "--target",
            self.target,
            "--create-bucket",
            "--objects",
            "3",
            "--size",
            "20KiB",
            "--workers",
            "2",
            "--ops",
            "6",
            "--verify",
            "--no-calibration",
            "--out",
            &out,
            "--output",
            "json",
        ];
        let env = self.env.iter().map(|(name, value)| (name, value));
        let outcome = call(
            bucketload(&line)?
                .args(&self.flags)
                .envs(env)
                .env("PATH", &self.path),
        )?;
        outcome.expect_code(0)?;
        let result = outcome.json()?;
        let totals = &run_phase(&result)?["totals"];
        match (totals["ok"] == 6, totals["failed"] == 0) {
            (true, true) => Ok(()),
            _ => Err(format!("{totals}")),
        }
    }
}

/// A row per operation, a column per client.
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
