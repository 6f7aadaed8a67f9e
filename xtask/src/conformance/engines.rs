//! Clients other than our own as engines of our driver: the libraries through the shared suite, the
//! command-line clients operation by operation, all against the embedded server.

use std::fmt::Write as _;

use crate::own::{Serve, TempDir, bucketload, call};
use crate::server::parse_env;
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
        let tool = tools
            .get(key)
            .ok_or_else(|| format!("clients.sh names no {key}"))?;
        let dir = std::path::Path::new(tool).parent().unwrap_or("/".as_ref());
        let path = format!("{}:/usr/bin:/bin", dir.display());
        let outcome = call(
            cargo([
                "run",
                "--quiet",
                "--locked",
                "-p",
                "bucketload-drivers",
                "--example",
                "client",
                "--",
                name,
            ])
            .env(
                "PATH",
                format!("{path}:{}", std::env::var("PATH").unwrap_or_default()),
            )
            .env_remove("AWS_CA_BUNDLE")
            .envs(server.aws_env()),
        )?;
        if outcome.code != 0 {
            failures.push(format!(
                "cli:{name}: exit code {}\n{}{}",
                outcome.code, outcome.stdout, outcome.stderr
            ));
        }
        columns.push((name, outcome.stdout));
        let measured = step(&format!("a run with cli:{name}"), || {
            measured(name, &path, &server)
        });
        failures.extend(measured.err());
    }
    println!("{}", table(&columns));
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n")),
    }
}

/// A short run of the whole program that reads and verifies.
fn measured(name: &str, path: &str, server: &Serve) -> Result {
    let dir = TempDir::new("engine-run")?;
    let engine = format!("cli:{name}");
    let line = [
        "run",
        "get",
        "--engine",
        &engine,
        "--target",
        "s3://engine-runs/x",
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
        &dir.file("run"),
        "--output",
        "json",
    ];
    let outcome = call(bucketload(&line)?.envs(server.aws_env()).env("PATH", path))?;
    outcome.expect_code(0)?;
    let result = outcome.json()?;
    let totals = &result["phases"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|phase| phase["kind"] == "run")
        .ok_or("no measured phase")?["totals"];
    match (totals["ok"] == 6, totals["failed"] == 0) {
        (true, true) => Ok(()),
        _ => Err(format!("{totals}")),
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
                Some(_) => "FAILED",
                None => "-",
            };
            let _ = write!(out, " {word} |");
        }
    }
    out
}
