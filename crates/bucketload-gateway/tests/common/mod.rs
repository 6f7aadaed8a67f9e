//! What the tests share: gateways over memory and files, on TCP and on Unix sockets.
#![allow(dead_code, unreachable_pub, missing_docs)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bucketload_gateway::{Address, Client, Options, Server, ServerOptions};
use bucketload_store::{MemoryOptions, MemoryStore, PosixOptions, PosixStore, Store};
use tempfile::TempDir;

pub const LOOPBACK: &str = "127.0.0.1:0";

pub struct Gateway {
    pub server: Server,
    pub client: Client,
    pub store: Arc<dyn Store>,
    /// Root of the store, if it stores files.
    pub root: PathBuf,
    _directory: TempDir,
}

pub fn tcp() -> Address {
    LOOPBACK.parse().unwrap()
}

pub fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(MemoryOptions {
        limit_bytes: 256 << 20,
        ..MemoryOptions::default()
    }))
}

fn start(address: Address, store: Arc<dyn Store>, directory: TempDir) -> Gateway {
    let server = Server::start(ServerOptions::new(address), Arc::clone(&store)).unwrap();
    let client = Client::connect(Options::new(server.address().clone())).unwrap();
    Gateway {
        server,
        client,
        store,
        root: directory.path().join("root"),
        _directory: directory,
    }
}

pub fn over_memory() -> Gateway {
    start(tcp(), memory(), TempDir::new().unwrap())
}

pub fn over_files() -> Gateway {
    let directory = TempDir::new().unwrap();
    let store = PosixStore::open(PosixOptions::new(directory.path().join("root"))).unwrap();
    let address = Address::Unix(directory.path().join("socket"));
    start(address, Arc::new(store), directory)
}

/// A store of files that need not see the bytes, on TCP: the server splices them.
pub fn over_unseen_files() -> Gateway {
    let directory = TempDir::new().unwrap();
    let mut options = PosixOptions::new(directory.path().join("root"));
    options.etag = bucketload_store::EtagMode::Opaque;
    start(
        tcp(),
        Arc::new(PosixStore::open(options).unwrap()),
        directory,
    )
}

/// The same store on a Unix socket: clients receive the files of large objects.
pub fn over_own_files() -> Gateway {
    let directory = TempDir::new().unwrap();
    let mut options = PosixOptions::new(directory.path().join("root"));
    options.etag = bucketload_store::EtagMode::Opaque;
    let address = Address::Unix(directory.path().join("socket"));
    start(
        address,
        Arc::new(PosixStore::open(options).unwrap()),
        directory,
    )
}

pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 + i / 251) as u8).collect()
}

/// Waits until `condition` holds; fails after a minute.
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(std::time::Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}
