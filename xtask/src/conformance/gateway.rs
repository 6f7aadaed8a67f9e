//! The gateway and the libs3 driver: the suite over libs3-bucketload in the process and over the gateway, a token
//! for those who come over the network, and every way to the objects of a directory beside versitygw.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::matrix;
use crate::bench::gateway::{Memory, compare, figure, library};
use crate::own::program;
use crate::sh::{Result, cargo, cmd, output, root, run, step};

/// Runs everything.
pub(super) fn all() -> Result {
    let place = Memory::new("gateway")?;
    let library = library()?;
    let mut failures = Vec::new();
    let objects = place.0.join("embedded").to_string_lossy().into_owned();
    failures.extend(
        step("gateway: suite over libs3 in the process", || {
            suite("libs3 embedded", &library, ("BUCKETLOAD_S3_ROOT", &objects))
        })
        .err(),
    );
    for listen in [
        "127.0.0.1:0".to_owned(),
        format!("unix:{}", place.0.join("socket").display()),
    ] {
        failures.extend(
            step(&format!("gateway: suite over libs3 at {listen}"), || {
                let gateway =
                    Gateway::start(&place.0.join("remote"), &["--listen", &listen], None)?;
                suite(
                    "libs3 remote",
                    &library,
                    ("BUCKETLOAD_S3_REMOTE", &gateway.address),
                )
            })
            .err(),
        );
    }
    failures.extend(
        step("gateway: a token off loopback", || {
            token(&place.0, &library)
        })
        .err(),
    );
    failures.extend(step("gateway: every way beside versitygw", || ways(&place.0)).err());
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n")),
    }
}

/// `bucketload gateway` as a child process; ended when dropped.
struct Gateway {
    child: Child,
    address: String,
}

impl Gateway {
    /// Starts one, on the host `host` of `netns.sh` where one is named.
    fn start(objects: &Path, flags: &[&str], host: Option<&str>) -> Result<Self> {
        let program = program()?;
        let mut command = match host {
            None => Command::new(program),
            Some(host) => {
                let mut command = netns(&["exec", host]);
                command.arg(program);
                command
            }
        };
        command.args([
            "gateway",
            "--announce",
            "--exit-with-stdin",
            "--fast-etags",
            "--root",
        ]);
        command
            .arg(objects)
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("gateway: {e}"))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut line)
                .map_err(|e| e.to_string())?;
        }
        let announced: Value = serde_json::from_str(&line).unwrap_or_default();
        let address = announced["listening"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let gateway = Self { child, address };
        match gateway.address.is_empty() {
            true => Err("the gateway ended before it listened".to_owned()),
            false => Ok(gateway),
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It ends when its input does.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The suite of drivers and its random operations, over a library that finds its objects by a variable.
fn suite(name: &str, library: &Path, variable: (&str, &str)) -> Result {
    for verb in ["suite", "differential"] {
        let mut command = cargo([
            "run",
            "--quiet",
            "--locked",
            "-p",
            "bucketload-drivers",
            "--features",
            "conformance",
            "--example",
            "conformance",
            "--",
            verb,
            "libs3",
            "libs3",
        ]);
        command
            .env("LIBS3_LIBRARY", library)
            .env(variable.0, variable.1);
        let printed = output(&mut command);
        if verb == "suite"
            && let Ok(printed) = &printed
        {
            matrix::add("libs3", name, printed);
        }
        print!("{}", printed?);
    }
    Ok(())
}

fn netns(args: &[&str]) -> Command {
    cmd(&root().join("servers/netns.sh").to_string_lossy(), args)
}

/// Hosts of their own; taken down when dropped.
struct Hosts;

impl Hosts {
    fn start() -> Result<Self> {
        run(&mut netns(&["install"]))?;
        run(&mut netns(&["start"]))?;
        Ok(Self)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if let Err(error) = run(&mut netns(&["stop"])) {
            eprintln!("xtask: netns: {error}");
        }
    }
}

/// A gateway on one host, a client on another.
fn token(place: &Path, library: &Path) -> Result {
    let refused = Command::new(program()?)
        .args(["gateway", "--listen", "0.0.0.0:0", "--root"])
        .arg(place.join("refused"))
        .output()
        .map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&refused.stderr);
    if refused.status.code() != Some(2) || !said.contains("--token-file") {
        return Err(format!("without a token: {} {said}", refused.status));
    }
    let (right, wrong) = (place.join("token"), place.join("wrong"));
    for (file, text) in [
        (&right, "0123456789abcdef0123\n"),
        (&wrong, "0123456789abcdef0124\n"),
    ] {
        std::fs::write(file, text).map_err(|e| e.to_string())?;
    }
    let _hosts = Hosts::start()?;
    let file = right.to_string_lossy().into_owned();
    let flags = ["--listen", "10.77.0.1:9020", "--token-file", &file];
    let gateway = Gateway::start(&place.join("hosts"), &flags, None)?;
    for (file, expected, word) in [
        (None, 3, "demands a token"),
        (Some(&wrong), 3, "is not its token"),
        (Some(&right), 0, ""),
    ] {
        let mut command = netns(&["exec", "h1"]);
        command.arg(program()?);
        let out = place.join(format!("token-{expected}-{}", file.is_some()));
        command.args([
            "run",
            "s3-hpc",
            "--target",
            "libs3://bench",
            "--create-bucket",
            "--objects",
            "20",
        ]);
        command
            .args([
                "--size",
                "4KiB",
                "--no-calibration",
                "--verify",
                "--threads",
                "1",
                "--out",
            ])
            .arg(out);
        command.arg("--libs3-library").arg(library);
        command.env("BUCKETLOAD_S3_REMOTE", &gateway.address);
        if let Some(file) = file {
            command.env("BUCKETLOAD_S3_REMOTE_TOKEN_FILE", file);
        }
        let out = command.output().map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned()
            + &String::from_utf8_lossy(&out.stdout);
        let code = out.status.code();
        // A library may notice at initialisation (2) or at the first request (3).
        let right_code = if expected == 0 {
            code == Some(0)
        } else {
            matches!(code, Some(2 | 3))
        };
        if !right_code {
            return Err(format!(
                "token {file:?}: exit code {code:?} instead of {expected} ({word})\n{said}"
            ));
        }
    }
    Ok(())
}

/// Every way works: no operation fails, with several processes too.
fn ways(place: &Path) -> Result {
    let flags = [
        "--sizes",
        "1KiB,1MiB",
        "--objects",
        "100",
        "--max-bytes",
        "64MiB",
        "--processes",
        "1,2",
        "--repetitions",
        "1",
        "--verify",
    ];
    let result = compare(&place.join("ways"), &flags)?;
    let mut wrong = Vec::new();
    for row in [
        "posix",
        "embedded",
        "remote",
        "remote-unix",
        "http",
        "versitygw",
    ] {
        for size in [1024, 1 << 20] {
            for name in ["write", "read", "stat", "list", "delete"] {
                match figure(&result, row, size, name) {
                    Some(figure) if figure["failed"] == 0 => {}
                    other => wrong.push(format!("{row} {size} {name}: {other:?}")),
                }
            }
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}
