//! Measures small calls over the gateway: the caller's time per call, and the CPU time of both sides.
//!
//! `cargo run --release -p bucketload-gateway --example gateway_costs [DIRECTORY] [BATCHES]`: the directory
//! (default `/dev/shm`) selects the file system. Client and gateway are separate processes, as in practice. A batch is
//! 200 calls in sequence. The 10th percentile and the median of the batches are printed, because other processes make
//! single batches slower, never faster.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use bucketload_gateway::{Address, Client, Options, Server, ServerOptions};
use bucketload_store::{Commit, Condition, EtagMode, PosixOptions, PosixStore, ReadConditions};

const BATCH: usize = 200;
const SIZE: usize = 4096;

/// CPU time of the process `pid` (0 for this one), ns.
fn cpu_ns(pid: i32) -> f64 {
    let mut clock = libc::CLOCK_PROCESS_CPUTIME_ID;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both pointers are to values that outlive the calls.
    let result = unsafe {
        if pid != 0 {
            libc::clock_getcpuclockid(pid, &raw mut clock);
        }
        libc::clock_gettime(clock, &raw mut time)
    };
    assert_eq!(result, 0, "no clock of process {pid}");
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Serves until standard input ends.
fn serve(root: &str, address: &str) {
    let mut options = PosixOptions::new(root);
    options.etag = EtagMode::Opaque;
    let store = PosixStore::open(options).expect("a store");
    let address: Address = address.parse().expect("an address");
    let server = Server::start(ServerOptions::new(address), Arc::new(store)).expect("a gateway");
    println!("{}", server.address());
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}

/// Runs batches of `call` and prints the time of one call.
fn measure(name: &str, batches: usize, pid: i32, mut call: impl FnMut(usize)) {
    let (mut time, mut cpu): (Vec<f64>, Vec<f64>) = (0..batches)
        .map(|batch| {
            let (before, start) = (cpu_ns(0) + cpu_ns(pid), Instant::now());
            (0..BATCH).for_each(|i| call((batch * BATCH + i) % 5000));
            let time = start.elapsed().as_nanos() as f64;
            (
                time / BATCH as f64,
                (cpu_ns(0) + cpu_ns(pid) - before) / BATCH as f64,
            )
        })
        .unzip();
    time.sort_by(f64::total_cmp);
    cpu.sort_by(f64::total_cmp);
    let (tenth, half) = (batches / 10, batches / 2);
    println!(
        "{name:<16} time {:>7.0} {:>7.0} ns   CPU {:>7.0} {:>7.0} ns",
        time[tenth], time[half], cpu[tenth], cpu[half]
    );
}

fn run(place: &str, address: &str, batches: usize) {
    let root = format!("{place}/gateway-costs-{}", std::process::id());
    let address = address.replace("ROOT", &root);
    let mut server = Command::new(std::env::current_exe().expect("a path"))
        .args(["serve", &root, &address])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a gateway");
    let mut line = String::new();
    let stdout = server.stdout.take().expect("its output");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("an address");
    let pid = i32::try_from(server.id()).expect("a process");
    let client = Client::connect(Options::new(line.trim().parse().expect("an address")));
    let client = client.expect("a connection");
    client.create_bucket("bench").expect("a bucket");
    let keys: Vec<String> = (0..5000).map(|i| format!("object-{i:06}")).collect();
    let data = vec![7; SIZE];
    println!("{}", line.trim());
    for name in ["write, new", "write, replacing"] {
        measure(name, batches.min(25), pid, |i| {
            let mut body = &data[..];
            let commit = Commit::default();
            client
                .put_from("bench", &keys[i], SIZE as u64, &mut body, None, commit)
                .expect("a write");
        });
    }
    let mut buffer = vec![0; SIZE];
    measure("read", batches, pid, |i| {
        let always = ReadConditions::default();
        let mut got = client.get("bench", &keys[i], None, always).expect("a read");
        while got.receive(&mut buffer).expect("bytes") > 0 {}
    });
    measure("stat", batches, pid, |i| {
        client.head("bench", &keys[i]).expect("a stat");
    });
    measure("delete", 25, pid, |i| {
        client
            .delete("bench", &keys[i], Condition::None)
            .expect("a delete");
    });
    drop(client);
    drop(server.stdin.take());
    server.wait().expect("its end");
    std::fs::remove_dir_all(&root).expect("its directory");
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, word, root, address] = &args[..]
        && word == "serve"
    {
        std::fs::create_dir_all(root).expect("a directory");
        return serve(root, address);
    }
    let place = args.get(1).map_or("/dev/shm", String::as_str);
    let batches = args
        .get(2)
        .map_or(25, |text| text.parse().expect("a number"));
    run(place, "127.0.0.1:0", batches);
    run(place, "unix:ROOT/socket", batches);
}
