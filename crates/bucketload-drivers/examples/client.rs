//! Every operation of a command-line client, against a real server.
//!
//! ```text
//! AWS_ENDPOINT_URL=http://127.0.0.1:9000 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… \
//!     cargo run -p bucketload-drivers --example client -- s3cmd
//! ```
//!
//! Prints a line per operation: its name, a tab, and `ok` or what was wrong. Exit code 0: all worked.

use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Instant;

use bucketload_core::driver::{Admin, Completion, Driver, Session, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_core::record::Probe;
use bucketload_drivers::azblob::{AzureConfig, AzureDriver, AzureOverrides};
use bucketload_drivers::engines::EngineDriver;
use bucketload_drivers::engines::cli::{CliEngine, Tool};
use bucketload_drivers::gcs::{GcsConfig, GcsDriver, GcsOverrides};
use bucketload_drivers::s3::{S3Config, S3Driver, S3Overrides};
use bucketload_drivers::swift::{SwiftConfig, SwiftDriver, SwiftOverrides};

/// Sizes of the objects: nothing, more than a page, more than a stamp's interval.
const SIZES: [u64; 3] = [0, 4097, 3_000_000];

fn clock() -> u64 {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    1 + EPOCH.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        eprintln!("usage: client {}", Tool::ALL.map(Tool::program).join("|"));
        return ExitCode::from(2);
    };
    let outcome = match name.parse() {
        Ok(Tool::Swift) => swift().map(|driver| act(&driver, &name)),
        Ok(Tool::Az) => azure().map(|driver| act(&driver, &name)),
        Ok(Tool::Gsutil) => gcs().map(|driver| act(&driver, &name)),
        Ok(tool) => s3(tool).map(|driver| act(&driver, &name)),
        Err(error) => Err(error),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::from(2)
    })
}

fn act<D: Driver>(driver: &D, name: &str) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime.map(|runtime| runtime.block_on(table(driver, name))) {
        Ok(Ok(failed)) => ExitCode::from(u8::from(failed > 0)),
        Ok(Err(error)) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
        Err(error) => {
            eprintln!("no runtime: {error}");
            ExitCode::from(3)
        }
    }
}

/// The client of Swift, told by `ST_AUTH` and its kin.
fn swift() -> Result<EngineDriver<CliEngine>, String> {
    let env = |name: &str| std::env::var(name).ok();
    let config = SwiftConfig::discover(&SwiftOverrides::default(), &env, None);
    let config = config.map_err(|e| e.to_string())?;
    let engine = CliEngine::swift(&config, 0).map_err(|e| e.to_string())?;
    let native = SwiftDriver::sign_in(config).map_err(|e| e.to_string())?;
    Ok(EngineDriver::new(native, engine))
}

/// The client of Azure, told by `AZURE_STORAGE_CONNECTION_STRING` and its kin.
fn azure() -> Result<EngineDriver<CliEngine>, String> {
    let env = |name: &str| std::env::var(name).ok();
    let config = AzureConfig::discover(&AzureOverrides::default(), &env);
    let config = config.map_err(|e| e.to_string())?;
    let engine = CliEngine::azure(&config, 0).map_err(|e| e.to_string())?;
    let native = AzureDriver::new(config).map_err(|e| e.to_string())?;
    Ok(EngineDriver::new(native, engine))
}

/// The client of Google Cloud Storage, told by `STORAGE_EMULATOR_HOST` and its kin; `GCS_CA_BUNDLE` names the
/// certificate to trust.
fn gcs() -> Result<EngineDriver<CliEngine>, String> {
    let env = |name: &str| std::env::var(name).ok();
    let mut overrides = GcsOverrides::default();
    overrides.tls.ca_bundle = env("GCS_CA_BUNDLE").map(Into::into);
    let config = GcsConfig::discover(&overrides, &env, None);
    let config = config.map_err(|e| e.to_string())?;
    let engine = CliEngine::gcs(&config, 0).map_err(|e| e.to_string())?;
    let native = GcsDriver::new(config).map_err(|e| e.to_string())?;
    Ok(EngineDriver::new(native, engine))
}

/// A client of S3, told by the AWS environment.
fn s3(tool: Tool) -> Result<EngineDriver<CliEngine>, String> {
    let env = |name: &str| std::env::var(name).ok();
    let config = S3Config::discover(&S3Overrides::default(), &env, None);
    let config = config.map_err(|e| e.to_string())?;
    let engine = CliEngine::new(tool, &config, 0).map_err(|e| e.to_string())?;
    let native = S3Driver::new(config).map_err(|e| e.to_string())?;
    Ok(EngineDriver::new(native, engine))
}

/// Notes how an operation ended.
fn note<T>(failed: &mut u32, name: &str, result: Result<T, String>) {
    match result {
        Ok(_) => println!("{name}\tok"),
        Err(text) => {
            *failed += 1;
            println!("{name}\t{}", text.replace(['\t', '\n'], " "));
        }
    }
}

/// A result that must be a success for which `holds` is true.
fn worked(
    result: Result<Completion, OpError>,
    holds: impl Fn(&Completion) -> bool,
) -> Result<(), String> {
    match result {
        Ok(done) if holds(&done) => Ok(()),
        Ok(done) => Err(format!("{done:?}")),
        Err(error) => Err(error.to_string()),
    }
}

/// A result that must be a failure of `kind`.
fn failed_as(result: Result<Completion, OpError>, kind: ErrorKind) -> Result<(), String> {
    match result {
        Err(error) if error.kind == kind => Ok(()),
        Err(error) => Err(format!("not {kind}: {error}")),
        Ok(done) => Err(format!("not {kind}: {done:?}")),
    }
}

async fn table<D: Driver>(driver: &D, name: &str) -> Result<u32, OpError> {
    let (bucket, mut failed) = (format!("client-table-{name}"), 0);
    let arena = Arena::new(PayloadKind::Random, 7);
    let mut probe = Probe::new(clock);
    let worker = WorkerId {
        thread: 0,
        worker: 0,
    };
    let mut session = driver.open(worker, &mut probe).await?;
    macro_rules! perform {
        ($request:expr) => {{
            probe.reset();
            session.execute($request, &mut probe).await
        }};
    }
    let made = perform!(&Request::plain(OpClass::MakeBucket, &bucket, ""));
    note(&mut failed, "make-bucket", worked(made, |_| true));
    // Whatever became of it, the rest needs a bucket.
    session.ensure_bucket(&bucket).await?;
    let keys = SIZES.map(|size| format!("some folder/object {size}+%"));
    let mut put = Ok(());
    let mut head = Ok(());
    let mut get = Ok(());
    for (key, size) in keys.iter().zip(SIZES) {
        let content = Some(arena.content(0, size, 0, size));
        let mut one = Request::plain(OpClass::Put, &bucket, key);
        one.content = content;
        put = put.and(worked(perform!(&one), |done| done.bytes == size));
        let one = Request::plain(OpClass::Head, &bucket, key);
        head = head.and(worked(perform!(&one), |done| done.object_size == size));
        let mut one = Request::plain(OpClass::Get, &bucket, key);
        (one.content, one.verify) = (content, true);
        get = get.and(worked(perform!(&one), |done| done.bytes == size));
    }
    note(&mut failed, "put", put);
    note(&mut failed, "head", head);
    note(&mut failed, "get", get);
    let mut other = Request::plain(OpClass::Get, &bucket, &keys[1]);
    (other.content, other.verify) = (Some(arena.content(0, SIZES[1], 1, SIZES[1])), true);
    let got = failed_as(perform!(&other), ErrorKind::Corrupt);
    note(&mut failed, "get of wrong content", got);
    let absent = Request::plain(OpClass::Get, &bucket, "some folder/absent");
    let got = failed_as(perform!(&absent), ErrorKind::NotFound);
    note(&mut failed, "get of nothing", got);
    let all = Request::plain(OpClass::List, &bucket, "some folder/");
    let listed = worked(perform!(&all), |done| done.items == keys.len() as u64);
    note(&mut failed, "list", listed);
    let buckets = perform!(&Request::plain(OpClass::ListBuckets, "", ""));
    note(
        &mut failed,
        "list-buckets",
        worked(buckets, |done| done.items > 0),
    );
    let classes = driver.capabilities().classes;
    let deletes_buckets = classes.contains(&OpClass::DeleteBucket);
    if deletes_buckets {
        let full = failed_as(
            perform!(&Request::plain(OpClass::DeleteBucket, &bucket, "")),
            ErrorKind::Conflict,
        );
        note(&mut failed, "delete-bucket of a full one", full);
    }
    let mut delete = Ok(());
    for key in &keys {
        let one = Request::plain(OpClass::Delete, &bucket, key);
        delete = delete.and(worked(perform!(&one), |_| true));
    }
    let left = session.list_keys(&bucket, "", None).await?.keys;
    if delete.is_ok() && !left.is_empty() {
        delete = Err(format!("left: {left:?}"));
    }
    note(&mut failed, "delete", delete);
    session.delete_keys(&bucket, &left).await?;
    if deletes_buckets {
        let removed = perform!(&Request::plain(OpClass::DeleteBucket, &bucket, ""));
        note(&mut failed, "delete-bucket", worked(removed, |_| true));
    }
    if session.head_bucket(&bucket).await.is_ok() {
        session.delete_bucket(&bucket).await?;
    }
    Ok(failed)
}
