//! The gateway and the libs3 driver: the suite over libs3-bucketload in the process and over the gateway, a token
//! for those who come over the network, and every way to the objects of a directory beside versitygw.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::matrix;
use crate::bench::gateway::{Memory, compare, figure, library};
use crate::own::{self, TempDir, program};
use crate::sh::{Result, cmd, need_programs, output, root, step};

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
                let gateway = Gateway::start(&place.0.join("remote"), &["--listen", &listen])?;
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
    fn start(objects: &Path, flags: &[&str]) -> Result<Self> {
        let mut command = Command::new(program()?);
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
        let mut command = own::suite(&[verb, "libs3", "libs3"])?;
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

/// The network between the hosts; this machine is its first address.
const SUBNET: &str = "10.79.0";

/// Hosts of their own; their networks are deleted when dropped.
struct Hosts {
    home: TempDir,
}

impl Hosts {
    fn start() -> Result<Self> {
        need_programs(&[
            ("ip", "iproute2"),
            ("iptables", "iptables"),
            ("nft", "nftables"),
        ])?;
        let hosts = Self {
            home: TempDir::new("gateway-netns")?,
        };
        output(&mut hosts.script(&["start"]))?;
        Ok(hosts)
    }

    fn script(&self, args: &[&str]) -> Command {
        let mut command = cmd(&root().join("servers/netns.sh").to_string_lossy(), args);
        command
            .env("SERVERS_HOME", self.home.path())
            .env("NETNS_HOSTS", "1")
            .env("NETNS_SUBNET", SUBNET)
            .env("NETNS_PREFIX", "blg");
        command
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if let Err(error) = output(&mut self.script(&["stop"])) {
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
    let hosts = Hosts::start()?;
    let listen = format!("{SUBNET}.1:9020");
    let file = right.to_string_lossy().into_owned();
    let flags = ["--listen", &listen, "--token-file", &file];
    let gateway = Gateway::start(&place.join("hosts"), &flags)?;
    // What the library does with a gateway that does not want it, it does at its initialisation or at the first
    // request: a usage error or an unusable target.
    for (file, codes) in [
        (None, &[2, 3][..]),
        (Some(&wrong), &[2, 3]),
        (Some(&right), &[0]),
    ] {
        let name = file
            .and_then(|file| file.file_name())
            .unwrap_or("none".as_ref());
        let mut command = hosts.script(&["exec", "h1"]);
        command.arg(program()?);
        command.args([
            "run",
            "s3-hpc",
            "--target",
            "libs3://bench",
            "--create-bucket",
            "--objects",
            "20",
        ]);
        command.args([
            "--size",
            "4KiB",
            "--no-calibration",
            "--verify",
            "--threads",
            "1",
            "--out",
        ]);
        command
            .arg(place.join("with").join(name))
            .arg("--libs3-library")
            .arg(library);
        command.env("BUCKETLOAD_S3_REMOTE", &gateway.address);
        if let Some(file) = file {
            command.env("BUCKETLOAD_S3_REMOTE_TOKEN_FILE", file);
        }
        let out = command.output().map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&out.stderr);
        let code = out.status.code().unwrap_or(-1);
        if !codes.contains(&code) {
            let printed = String::from_utf8_lossy(&out.stdout);
            return Err(format!(
                "token {name:?}: exit code {code} instead of {codes:?}\n{said}{printed}"
            ));
        }
        eprintln!(
            "token {name:?}: {code}, {}",
            said.lines().last().unwrap_or_default()
        );
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
            for (clients, name) in ["write", "read", "stat", "list", "delete"]
                .into_iter()
                .flat_map(|name| [(1, name), (2, name)])
            {
                match figure(&result, row, size, clients, name) {
                    Some(figure) if figure["failed"] == 0 => {}
                    other => wrong.push(format!("{row} {size} x{clients} {name}: {other:?}")),
                }
            }
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}
