//! Clients other than our own as engines of our driver: the libraries through the shared suite, the
//! command-line clients operation by operation, all against the embedded server; Swift's own client
//! against OpenStack Swift.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::own::{Serve, TempDir, bucketload, call};
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
        let path = format!("{}:/usr/bin:/bin", folder(tool));
        columns.push((
            name,
            operations(name, &path, &server.aws_env(), &mut failures)?,
        ));
        let measured = step(&format!("a run with cli:{name}"), || {
            measured(name, &path, &server)
        });
        failures.extend(measured.err());
    }
    let swift = Server::start("swift")?;
    let path = format!("{}:/usr/bin:/bin", folder(tool(&tools, "SWIFT")?));
    let env: Vec<_> = swift.env.clone().into_iter().collect();
    columns.push(("swift", operations("swift", &path, &env, &mut failures)?));
    println!("{}", table(&columns));
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n")),
    }
}

fn tool<'a>(tools: &'a BTreeMap<String, String>, key: &str) -> Result<&'a str> {
    let tool = tools.get(key).map(String::as_str);
    tool.ok_or_else(|| format!("clients.sh names no {key}"))
}

fn folder(program: &str) -> String {
    let parent = std::path::Path::new(program).parent();
    parent.unwrap_or("/".as_ref()).display().to_string()
}

/// Performs every operation of a client; returns what it printed about each.
fn operations(
    name: &str,
    path: &str,
    env: &[(String, String)],
    failures: &mut Vec<String>,
) -> Result<String> {
    let line = [
        "run",
        "--quiet",
        "--locked",
        "-p",
        "bucketload-drivers",
        "--example",
        "client",
        "--",
        name,
    ];
    let own = std::env::var("PATH").unwrap_or_default();
    let outcome = call(
        cargo(line)
            .env("PATH", format!("{path}:{own}"))
            .env_remove("AWS_CA_BUNDLE")
            .envs(env.iter().map(|(name, value)| (name, value))),
    )?;
    if outcome.code != 0 {
        failures.push(format!(
            "cli:{name}: exit code {}\n{}{}",
            outcome.code, outcome.stdout, outcome.stderr
        ));
    }
    Ok(outcome.stdout)
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
