//! A standalone server, for trying out clients by hand:
//!
//! ```text
//! cargo run -p bucketload-store --example serve -- \
//!     127.0.0.1:9000 memory|null|DIRECTORY [threads=N] [anonymous] [fast-etag] [FAULT ...]
//! AWS_ACCESS_KEY_ID=benchaccess AWS_SECRET_ACCESS_KEY=benchsecretkey0001 aws --endpoint-url … s3 ls
//! ```

use std::sync::Arc;

use bucketload_server::{Access, KeyPair, Server, ServerConfig};
use bucketload_store::{
    EtagMode, MemoryOptions, MemoryStore, NullOptions, NullStore, PosixOptions, PosixStore, Store,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let medium = arguments.next().unwrap_or_else(|| "memory".to_owned());
    let mut config = ServerConfig::new(KeyPair {
        access_key: "benchaccess".to_owned(),
        secret_key: "benchsecretkey0001".to_owned(),
    });
    config.address = address.parse()?;
    config.stats_page = true;
    let mut etag = EtagMode::Md5;
    for argument in arguments {
        match argument.split_once('=') {
            Some(("threads", count)) => config.threads = count.parse()?,
            None if argument == "anonymous" => config.access = Access::Anonymous,
            None if argument == "fast-etag" => etag = EtagMode::Opaque,
            _ => config.faults.push(argument.parse()?),
        }
    }
    let store: Arc<dyn Store> = match medium.as_str() {
        "memory" => Arc::new(MemoryStore::new(MemoryOptions {
            etag,
            ..MemoryOptions::default()
        })),
        "null" => Arc::new(NullStore::new(&NullOptions {
            object_bytes: 4096,
            etag,
        })),
        directory => Arc::new(PosixStore::open(PosixOptions {
            etag,
            ..PosixOptions::new(directory)
        })?),
    };
    let server = Server::start(config, store)?;
    println!("{}", server.endpoint_url());
    server.wait();
    Ok(())
}
