//! What a native driver costs per request, beside the S3 driver.
//!
//! ```text
//! cargo run --release -p bucketload-drivers --example gets -- [REPETITIONS]
//! ```
//!
//! Reads objects of 4 KiB on 64 connections from a thread that answers every request alike, so that
//! nothing but the driver differs. One repetition measures every API once, in turn; the figure is the
//! CPU time of the client's thread, as a ratio to the S3 driver's in the same repetition. A GET by WebHDFS
//! is two requests, of which the first is answered with the address of the second: its figure is that of
//! one request. Prints a line per API: name, median, smallest and largest ratio, median cost in
//! nanoseconds; tabs between them.

use std::io;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Instant;

use bucketload_core::driver::{Driver, Session, WorkerId};
use bucketload_core::error::OpError;
use bucketload_core::op::{Op, OpClass, Request};
use bucketload_core::record::Probe;
use bucketload_drivers::azblob::{AzureConfig, AzureDriver, AzureOverrides};
use bucketload_drivers::gcs::{GcsConfig, GcsDriver, GcsOverrides};
use bucketload_drivers::s3::{S3Config, S3Driver, S3Overrides};
use bucketload_drivers::seaweedfs::{Mode, SeaweedConfig, SeaweedDriver, SeaweedOverrides};
use bucketload_drivers::swift::{SwiftConfig, SwiftDriver, SwiftOverrides};
use bucketload_drivers::webhdfs::{WebHdfsConfig, WebHdfsDriver};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Connections, each with one request in flight.
const WORKERS: u32 = 64;
/// Requests of each worker in one measurement.
const REQUESTS: u32 = 1500;
/// Bytes of an object.
const SIZE: usize = 4096;
/// Core of the client; the answers come from the next one.
const CLIENT_CORE: usize = 0;

type Failure = Box<dyn std::error::Error>;

fn clock() -> u64 {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    1 + EPOCH.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

fn main() -> Result<(), Failure> {
    let repetitions: usize = std::env::args().nth(1).map_or(Ok(7), |text| text.parse())?;
    let address = answer_everything()?;
    pin(CLIENT_CORE);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let names = ["s3", "swift", "azblob", "gcs", "seaweedfs", "webhdfs"];
    let mut costs: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    for repetition in 0..=repetitions {
        for turn in 0..names.len() {
            let api = (turn + repetition) % names.len();
            let cost = runtime.block_on(measure(names[api], &address))?;
            // The first round only warms up.
            if repetition > 0 {
                costs[api].push(cost);
            }
        }
    }
    for (name, own) in names.iter().zip(&costs) {
        let mut ratios: Vec<f64> = own.iter().zip(&costs[0]).map(|(a, b)| a / b).collect();
        let mut own = own.clone();
        ratios.sort_by(f64::total_cmp);
        own.sort_by(f64::total_cmp);
        let middle = ratios.len() / 2;
        println!(
            "{name}\t{:.3}\t{:.3}\t{:.3}\t{:.0}",
            ratios[middle],
            ratios[0],
            ratios[ratios.len() - 1],
            own[middle]
        );
    }
    Ok(())
}

/// CPU time per request of the driver of `api`, in nanoseconds.
async fn measure(api: &str, address: &str) -> Result<f64, Failure> {
    let url = format!("http://{address}");
    let storage = format!("{url}/v1/AUTH_bench");
    let env = |name: &str| {
        let value = match name {
            "AWS_ACCESS_KEY_ID" | "AZURE_STORAGE_ACCOUNT" => "bench",
            "AWS_SECRET_ACCESS_KEY" | "OS_AUTH_TOKEN" => "secret",
            "AZURE_STORAGE_KEY" => "c2VjcmV0",
            "AWS_REGION" => "us-east-1",
            "AWS_ENDPOINT_URL" | "STORAGE_EMULATOR_HOST" => &url,
            "OS_STORAGE_URL" => &storage,
            _ => return None,
        };
        Some(value.to_owned())
    };
    match api {
        "s3" => {
            let config = S3Config::discover(&S3Overrides::default(), &env, None)?;
            gets(&S3Driver::new(config)?).await
        }
        "swift" => {
            let config = SwiftConfig::discover(&SwiftOverrides::default(), &env, None)?;
            gets(&SwiftDriver::sign_in(config)?).await
        }
        "azblob" => {
            let overrides = AzureOverrides {
                endpoint_url: Some(format!("{url}/bench")),
                ..AzureOverrides::default()
            };
            gets(&AzureDriver::new(AzureConfig::discover(&overrides, &env)?)?).await
        }
        "seaweedfs" => {
            let overrides = SeaweedOverrides {
                endpoint_url: Some(url.clone()),
                mode: Some(Mode::Filer),
                ..SeaweedOverrides::default()
            };
            let config = SeaweedConfig::new(&overrides, &env)?;
            gets(&SeaweedDriver::new(config)?).await
        }
        "webhdfs" => {
            let driver = WebHdfsDriver::new(WebHdfsConfig::new(&url)?)?;
            // Two requests.
            Ok(gets(&driver).await? / 2.0)
        }
        _ => {
            let config = GcsConfig::discover(&GcsOverrides::default(), &env, None)?;
            gets(&GcsDriver::new(config)?).await
        }
    }
}

async fn gets<D: Driver>(driver: &D) -> Result<f64, Failure> {
    let mut sessions = Vec::new();
    for worker in 0..WORKERS {
        let id = WorkerId { thread: 0, worker };
        sessions.push(driver.open(id, &mut Probe::new(clock)).await?);
    }
    let local = tokio::task::LocalSet::new();
    let before = thread_cpu_ns();
    let mut tasks = Vec::new();
    for session in sessions {
        tasks.push(local.spawn_local(work(session)));
    }
    local
        .run_until(async {
            for task in tasks {
                task.await??;
            }
            Ok::<_, Failure>(())
        })
        .await?;
    let spent = thread_cpu_ns() - before;
    Ok(spent as f64 / f64::from(WORKERS * REQUESTS))
}

async fn work<S: Session>(mut session: S) -> Result<(), OpError> {
    let mut probe = Probe::new(clock);
    let mut key = String::new();
    for seq in 0..REQUESTS {
        use std::fmt::Write as _;
        key.clear();
        let _ = write!(key, "bucketload-bench/data/{seq:013}");
        probe.reset();
        let request = Request {
            op: Op {
                seq: u64::from(seq),
                class: OpClass::Get,
                entry: 0,
                keyset: 0,
                key: 0,
                source_key: 0,
                source_keyset: 0,
                version: 0,
                size: SIZE as u64,
                range: None,
                count: 0,
                pages: 0,
            },
            bucket: "bench",
            key: &key,
            source: "",
            delimiter: "",
            keys: None,
            content: None,
            verify: false,
            watch: None,
        };
        session.execute(&request, &mut probe).await?;
    }
    Ok(())
}

/// Starts a thread that answers every request with the same 4 KiB; returns its address.
fn answer_everything() -> Result<String, Failure> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || -> io::Result<()> {
        pin(CLIENT_CORE + 1);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let local = tokio::task::LocalSet::new();
        runtime.block_on(local.run_until(async {
            let listener = TcpListener::from_std(listener)?;
            let mut text = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\nETag: \"0\"\r\n\
                 Content-Type: application/octet-stream\r\n\r\n"
            )
            .into_bytes();
            text.resize(text.len() + SIZE, b'x');
            let object: Rc<[u8]> = text.into();
            let location = format!(
                r#"{{"Location":"http://{}/webhdfs/v1/bench?op=OPEN&namenoderpcaddress=a:1&offset=0"}}"#,
                listener.local_addr()?
            );
            let location: Rc<[u8]> = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nContent-Type: application/json\r\n\r\n\
                 {location}",
                location.len()
            )
            .into_bytes()
            .into();
            loop {
                let (stream, _) = listener.accept().await?;
                let answers = [Rc::clone(&object), Rc::clone(&location)];
                tokio::task::spawn_local(answer(stream, answers));
            }
        }))
    });
    Ok(address)
}

/// Answers with the object, or with its place where that is asked for. A client asks one of them on a
/// connection, so that the first request tells.
async fn answer(mut stream: TcpStream, [object, location]: [Rc<[u8]>; 2]) -> io::Result<()> {
    const FIRST_STEP: &[u8] = b"noredirect=true";
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 16 << 10];
    let mut held = 0;
    let mut chosen: Option<&Rc<[u8]>> = None;
    loop {
        match stream.read(&mut buffer[held..]).await? {
            0 => return Ok(()),
            n => held += n,
        }
        if buffer[..held].ends_with(b"\r\n\r\n") {
            let text = *chosen.get_or_insert_with(|| {
                let mut parts = buffer[..held].windows(FIRST_STEP.len());
                match parts.any(|part| part == FIRST_STEP) {
                    true => &location,
                    false => &object,
                }
            });
            stream.write_all(text).await?;
            held = 0;
        }
    }
}

/// Keeps the calling thread on `core`, as far as the machine has it.
fn pin(core: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    // Without the core the figures only scatter more.
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// CPU time of the calling thread.
fn thread_cpu_ns() -> u64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    spent.tv_sec.cast_unsigned() * 1_000_000_000 + spent.tv_nsec.cast_unsigned()
}
