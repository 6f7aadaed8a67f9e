//! A fake SeaweedFS for conformance runs where no real one is available: `fake-seaweedfs FILER_PORT
//! MASTER_PORT` serves both interfaces on loopback, with objects in memory, until it is stopped.

use std::net::TcpListener;
use std::process::ExitCode;

use bucketload_testkit::seaweedfs::FakeSeaweed;

fn main() -> ExitCode {
    let ports: Vec<u16> = std::env::args()
        .skip(1)
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let [filer, master] = ports[..] else {
        eprintln!("usage: fake-seaweedfs FILER_PORT MASTER_PORT");
        return ExitCode::from(2);
    };
    let bind = |port| TcpListener::bind(("127.0.0.1", port));
    match (bind(filer), bind(master)) {
        (Ok(filer), Ok(master)) => {
            let fake = FakeSeaweed::start_at(filer, master);
            println!("filer {} master {}", fake.filer, fake.master);
            loop {
                std::thread::park();
            }
        }
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("a port cannot be used: {error}");
            ExitCode::from(3)
        }
    }
}
