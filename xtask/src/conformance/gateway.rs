//! The gateway and the libs3 driver: the suite over libs3-bucketload in the process and over the gateway, a token for
//! network clients, and every access path to a directory compared with versitygw.

use std::path::Path;
use std::process::Command;

use super::libs3::Gateway;
use super::netns::Hosts;
use super::servers;
use crate::bench::gateway::{compare, figure, library};
use crate::files::{self, TempDir};
use crate::program::{self, Outcome, call, program, try_bucketload};
use crate::sh::{Result, ensure, none_of, run, steps, words};

/// All parts.
pub(super) fn all() -> Result {
    let place = TempDir::in_memory("gateway")?;
    let library = library()?;
    let objects = place.file("embedded");
    let remote = |listen: &str| {
        let flags = format!("--listen {listen}");
        let gateway = Gateway::start(&place.path().join("remote"), &flags)?;
        let variable = ("BUCKETLOAD_S3_REMOTE", gateway.address.as_str());
        suite("libs3 remote", &library, variable)
    };
    steps(&[
        ("gateway: suite over libs3 in the process", &|| {
            suite("libs3 embedded", &library, ("BUCKETLOAD_S3_ROOT", &objects))
        }),
        ("gateway: suite over libs3 on a port", &|| {
            remote("127.0.0.1:0")
        }),
        ("gateway: suite over libs3 on a socket", &|| {
            remote(&format!("unix:{}", place.file("socket")))
        }),
        ("gateway: a token off loopback", &|| token(&place, &library)),
        ("gateway: every access path and versitygw", &|| ways(&place)),
    ])
}

/// The drivers' suite and random operations, over a library that finds its objects through an environment variable.
fn suite(name: &str, library: &Path, variable: (&str, &str)) -> Result {
    let example = |verb: &str| -> Result<Command> {
        let mut command = program::suite(&format!("{verb} libs3 libs3"))?;
        command
            .env("LIBS3_LIBRARY", library)
            .env(variable.0, variable.1);
        Ok(command)
    };
    servers::suite(example("suite")?, Some(("libs3", name)))?;
    run(&mut example("differential")?)
}

/// Network between the hosts; this machine has its first address.
const SUBNET: &str = "10.79.0";

/// A gateway on one host, a client on another.
fn token(place: &TempDir, library: &Path) -> Result {
    let refused = place.file("refused");
    try_bucketload(&format!("gateway --listen 0.0.0.0:0 --root {refused}"))?
        .complains(2, &["--token-file"])?;
    let (right, wrong) = (place.file("token"), place.file("wrong"));
    files::write(&right, "0123456789abcdef0123\n")?;
    files::write(&wrong, "0123456789abcdef0124\n")?;
    let hosts = Hosts::start(1, SUBNET, "blg")?;
    let flags = format!("--listen {SUBNET}.1:9020 --token-file {right}");
    let gateway = Gateway::start(&place.path().join("hosts"), &flags)?;
    // The library notices that the gateway refuses it at initialisation or at the first request: a usage error or an
    // unusable target.
    for (name, file, codes) in [
        ("none", None, &[2, 3][..]),
        ("wrong", Some(&wrong), &[2, 3]),
        ("token", Some(&right), &[0]),
    ] {
        let mut command = hosts.script("exec h1");
        command
            .arg(program()?)
            .args(words(
                "run s3-hpc --target libs3://bench --create-bucket --objects 20 --size 4KiB --no-calibration \
                 --verify --threads 1 --out",
            ))
            .args([&place.file(&format!("with/{name}")), "--libs3-library"])
            .arg(library)
            .env("BUCKETLOAD_S3_REMOTE", &gateway.address);
        if let Some(file) = file {
            command.env("BUCKETLOAD_S3_REMOTE_TOKEN_FILE", file);
        }
        let Outcome {
            code,
            stderr,
            stdout,
            ..
        } = call(&mut command)?;
        ensure(codes.contains(&code), || {
            format!("token {name:?}: exit code {code} instead of {codes:?}\n{stderr}{stdout}")
        })?;
        let last = stderr.lines().last().unwrap_or_default();
        eprintln!("token {name:?}: {code}, {last}");
    }
    Ok(())
}

/// No operation fails on any access path, with one process or several.
fn ways(place: &TempDir) -> Result {
    let flags = "--sizes 1KiB,1MiB --objects 100 --max-bytes 64MiB --processes 1,2 --repetitions 1 --verify";
    let result = compare(&place.path().join("ways"), flags)?;
    let mut wrong = Vec::new();
    for row in [
        "posix",
        "embedded",
        "remote",
        "remote-unix",
        "http",
        "versitygw",
    ] {
        for (size, clients) in [(1024, 1), (1024, 2), (1 << 20, 1), (1 << 20, 2)] {
            for name in ["write", "read", "stat", "list", "delete"] {
                match figure(&result, row, size, clients, name) {
                    Some(figure) if figure["failed"] == 0 => {}
                    other => wrong.push(format!("{row} {size} x{clients} {name}: {other:?}")),
                }
            }
        }
    }
    none_of(&wrong)
}
