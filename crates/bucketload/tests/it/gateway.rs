//! `bucketload gateway` from the user's view.
#![allow(missing_docs)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bucketload_gateway::{AccessToken, Client, Options};
use bucketload_store::{Commit, PosixOptions, PosixStore, Store};

fn command(root: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bucketload"));
    command
        .args(["gateway", "--announce", "--root"])
        .arg(root)
        .args(flags);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a gateway and reads its address.
fn start(root: &Path, flags: &[&str]) -> (Child, String) {
    let mut child = command(root, flags).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let announced: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(announced["pid"], child.id());
    (child, announced["listening"].as_str().unwrap().to_owned())
}

fn end(mut child: Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, signal).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn it_serves_a_directory_and_ends_cleanly() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("objects");
    let socket = format!("unix:{}", directory.path().join("socket").display());
    for (listen, signal) in [
        ("127.0.0.1:0", rustix::process::Signal::INT),
        (&*socket, rustix::process::Signal::TERM),
    ] {
        let (child, address) = start(&root, &["--listen", listen]);
        let client = Client::connect(Options::new(address.parse().unwrap())).unwrap();
        if client.list_buckets().unwrap().is_empty() {
            client.create_bucket("bucket").unwrap();
        }
        client
            .put("bucket", "key", b"content", Commit::default())
            .unwrap();
        // An idle connection does not prevent its end.
        end(child, signal);
    }
    assert!(!directory.path().join("socket").exists());
    let store = PosixStore::open(PosixOptions::new(&root)).unwrap();
    assert_eq!(store.head("bucket", "key").unwrap().size, 7);
}

#[test]
fn it_requires_a_token_on_other_addresses_than_loopback() {
    let directory = tempfile::tempdir().unwrap();
    let refused = command(directory.path(), &["--listen", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("--token-file"), "{said}");
    let file = directory.path().join("token");
    std::fs::write(&file, "0123456789abcdef-token\n").unwrap();
    let flags = [
        "--listen",
        "0.0.0.0:0",
        "--token-file",
        file.to_str().unwrap(),
    ];
    let (child, address) = start(directory.path(), &flags);
    let port = address.rsplit_once(':').unwrap().1.to_owned();
    let options = |token| Options {
        token,
        ..Options::new(format!("127.0.0.1:{port}").parse().unwrap())
    };
    assert!(Client::connect(options(None)).is_err());
    Client::connect(options(Some(AccessToken::read("", &file).unwrap()))).unwrap();
    end(child, rustix::process::Signal::TERM);
}
