//! Checks a driver against a real server.
//!
//! ```text
//! AWS_ENDPOINT_URL=http://127.0.0.1:9000 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… \
//!     cargo run -p bucketload-drivers --features conformance --example conformance -- suite s3 minio
//! ```
//!
//! Arguments: verb, API, and the server's name.
//!
//! - `suite` runs the shared suite with the server's documented differences. For S3, a payload mode and a checksum
//!   algorithm may follow.
//! - `differential` compares a thousand random operations with a model.
//! - `plant` and `check` take a bucket and a prefix instead of a name. `plant` writes objects that belong to no run;
//!   `check` fails unless exactly these objects are left.
//!
//! Endpoint and credentials come from the API's usual environment. Exit code 0 means success.

use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Instant;

use bucketload_core::driver::{Admin, Driver, WorkerId};
use bucketload_core::error::OpError;
use bucketload_core::record::Probe;
use bucketload_drivers::azblob::{AzureConfig, AzureDriver, AzureOverrides};
use bucketload_drivers::conformance::{Differential, Quirks, Suite, Support};
use bucketload_drivers::gcs::{GcsConfig, GcsDriver, GcsOverrides};
use bucketload_drivers::hadoop::HadoopOverrides;
#[cfg(feature = "hdfs")]
use bucketload_drivers::hdfs::{HdfsConfig, HdfsDriver};
use bucketload_drivers::s3::{S3Config, S3Driver, S3Overrides};
use bucketload_drivers::seaweedfs::{SeaweedConfig, SeaweedDriver, SeaweedOverrides};
use bucketload_drivers::swift::{SwiftConfig, SwiftDriver, SwiftOverrides};
use bucketload_drivers::webhdfs::{WebHdfsConfig, WebHdfsDriver};
use bucketload_local::libs3::{Libs3Config, Libs3Driver};
use bucketload_local::posix::{PosixConfig, PosixDriver};

fn clock() -> u64 {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    1 + EPOCH.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [verb, api, rest @ ..] = args.as_slice() else {
        return refuse("usage: conformance suite|differential|plant|check API …");
    };
    let outcome = match api.as_str() {
        "s3" => s3(if verb == "suite" { rest } else { &[] }).map(|driver| act(verb, &driver, rest)),
        "libs3" => libs3().map(|driver| act(verb, &driver, rest)),
        "posix" => posix().map(|driver| act(verb, &driver, rest)),
        "seaweedfs" => seaweedfs().map(|driver| act(verb, &driver, rest)),
        "gs" => gcs().map(|driver| act(verb, &driver, rest)),
        "az" => azblob().map(|driver| act(verb, &driver, rest)),
        "swift" => swift().map(|driver| act(verb, &driver, rest)),
        "webhdfs" => webhdfs().map(|driver| act(verb, &driver, rest)),
        #[cfg(feature = "hdfs")]
        "hdfs" => hdfs().map(|driver| act(verb, &driver, rest)),
        other => Err(format!("there is no driver for {other:?}")),
    };
    outcome.unwrap_or_else(|error| refuse(&error))
}

fn refuse(reason: &str) -> ExitCode {
    eprintln!("{reason}");
    ExitCode::from(2)
}

/// A driver from the AWS environment. `args`: the server's name, payload mode, checksum algorithm.
fn s3(args: &[String]) -> Result<S3Driver, String> {
    let overrides = S3Overrides {
        payload: args.get(1).map(|mode| mode.parse()).transpose()?,
        checksum: args.get(2).map(|name| name.parse()).transpose()?,
        ..S3Overrides::default()
    };
    let env = |name: &str| std::env::var(name).ok();
    let home = env("HOME").map(std::path::PathBuf::from);
    let config = S3Config::discover(&overrides, &env, home.as_deref());
    config.and_then(S3Driver::new).map_err(|e| e.to_string())
}

/// A driver of the library in LIBS3_LIBRARY, which reads its own variables.
fn libs3() -> Result<Libs3Driver, String> {
    let library = std::env::var_os("LIBS3_LIBRARY").ok_or("LIBS3_LIBRARY names no library")?;
    Libs3Driver::new(Libs3Config::new(library))
}

/// A driver of the directory in POSIX_ROOT, with the engine in POSIX_IO if set.
fn posix() -> Result<PosixDriver, String> {
    let root = std::env::var("POSIX_ROOT").map_err(|_| "POSIX_ROOT names no directory")?;
    let mut config = PosixConfig::new(root);
    config.io = std::env::var("POSIX_IO")
        .ok()
        .map(|io| io.parse())
        .transpose()?;
    PosixDriver::new(config)
}

/// A driver from the environment of Google's tools.
fn gcs() -> Result<GcsDriver, String> {
    let env = |name: &str| std::env::var(name).ok();
    let home = env("HOME").map(std::path::PathBuf::from);
    let config = GcsConfig::discover(&GcsOverrides::default(), &env, home.as_deref());
    config.and_then(GcsDriver::new).map_err(|e| e.to_string())
}

/// A driver from the environment of the Azure tools.
fn azblob() -> Result<AzureDriver, String> {
    let env = |name: &str| std::env::var(name).ok();
    let config = AzureConfig::discover(&AzureOverrides::default(), &env);
    config.and_then(AzureDriver::new).map_err(|e| e.to_string())
}

/// A driver from the environment of the OpenStack tools.
fn swift() -> Result<SwiftDriver, String> {
    let env = |name: &str| std::env::var(name).ok();
    let home = env("HOME").map(std::path::PathBuf::from);
    let config = SwiftConfig::discover(&SwiftOverrides::default(), &env, home.as_deref());
    SwiftDriver::sign_in(config.map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

/// A driver from Hadoop's environment.
fn webhdfs() -> Result<WebHdfsDriver, String> {
    let env = |name: &str| std::env::var(name).ok();
    let config = WebHdfsConfig::discover(&HadoopOverrides::default(), &env);
    config
        .and_then(WebHdfsDriver::new)
        .map_err(|e| e.to_string())
}

/// A driver from Hadoop's environment.
#[cfg(feature = "hdfs")]
fn hdfs() -> Result<HdfsDriver, String> {
    let env = |name: &str| std::env::var(name).ok();
    let config = HdfsConfig::discover(&HadoopOverrides::default(), &env);
    config.and_then(HdfsDriver::new).map_err(|e| e.to_string())
}

/// A driver for the filer at `SEAWEEDFS_FILER_URL`.
fn seaweedfs() -> Result<SeaweedDriver, String> {
    let env = |name: &str| std::env::var(name).ok();
    let config = SeaweedConfig::new(&SeaweedOverrides::default(), &env);
    config
        .and_then(SeaweedDriver::new)
        .map_err(|e| e.to_string())
}

fn act<D: Driver>(verb: &str, driver: &D, args: &[String]) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&format!("no runtime: {error}")),
    };
    let worked = match (verb, args) {
        ("suite", [name, ..]) => match Quirks::of(name) {
            Some(quirks) => runtime.block_on(suite(driver, name, quirks)),
            None => return refuse(&format!("no server is known as `{name}`")),
        },
        ("differential", [name, ..]) => match Quirks::of(name) {
            Some(quirks) => runtime.block_on(differential(driver, name, quirks)),
            None => return refuse(&format!("no server is known as `{name}`")),
        },
        ("plant", [bucket, prefix]) => runtime.block_on(plant(driver, bucket, prefix)),
        ("check", [bucket, prefix]) => runtime.block_on(check(driver, bucket, prefix)),
        _ => {
            return refuse(
                "usage: suite|differential API SERVER, or plant|check API BUCKET PREFIX",
            );
        }
    };
    match worked {
        Ok(sound) => ExitCode::from(u8::from(!sound)),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    }
}

async fn suite<D: Driver>(driver: &D, name: &str, quirks: Quirks) -> Result<bool, OpError> {
    let suite = Suite {
        bucket: format!("bucketload-suite-{}", std::process::id()),
        quirks,
        clock,
    };
    let survey = suite.survey(driver).await?;
    for (class, support) in survey.classes {
        let word = match support {
            Support::Works => "works",
            Support::Refused => "refused",
            Support::NotOffered => "-",
        };
        println!("class   {class} {word}");
    }
    let results = survey.checks;
    for result in &results {
        match &result.failure {
            None => println!("ok      {}", result.name),
            Some(text) => println!("FAILED  {}: {text}", result.name),
        }
    }
    let failed = results.iter().filter(|r| r.failure.is_some()).count();
    println!("{name}: {} passed, {failed} failed", results.len() - failed);
    Ok(failed == 0)
}

/// A thousand random operations, compared with the model.
async fn differential<D: Driver>(driver: &D, name: &str, quirks: Quirks) -> Result<bool, OpError> {
    let test = Differential {
        bucket: format!("bucketload-differential-{}", std::process::id()),
        seed: 4,
        operations: 1000,
        quirks,
        clock,
    };
    let verdict = test.run(driver).await?;
    for difference in &verdict.differences {
        println!("DIFFERS {difference}");
    }
    let performed: u32 = verdict.performed.values().sum();
    println!(
        "{name}: {performed} operations, {} differ",
        verdict.different
    );
    Ok(verdict.different == 0)
}

/// Keys of objects that belong to no run, although they look like a run's or are close to them.
fn foreign(prefix: &str) -> Vec<String> {
    let mut keys: Vec<String> = (0..40).map(|i| format!("foreign/{i:03}")).collect();
    keys.push(format!("{prefix}/precious"));
    keys.push(format!("{prefix}/bucketload-0/data"));
    keys.push(format!("{prefix}-neighbour"));
    keys.push("bucketload-1/x".to_owned());
    keys
}

async fn session<D: Driver>(driver: &D) -> Result<D::Session, OpError> {
    driver
        .open(WorkerId::default(), &mut Probe::new(clock))
        .await
}

async fn plant<D: Driver>(driver: &D, bucket: &str, prefix: &str) -> Result<bool, OpError> {
    let mut session = session(driver).await?;
    session.ensure_bucket(bucket).await?;
    for key in foreign(prefix) {
        session.put_small(bucket, &key, key.as_bytes()).await?;
    }
    Ok(true)
}

async fn check<D: Driver>(driver: &D, bucket: &str, prefix: &str) -> Result<bool, OpError> {
    let mut session = session(driver).await?;
    let wanted = foreign(prefix);
    let (mut found, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = session.list_keys(bucket, "", after.as_deref()).await?;
        found.extend(page.keys);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let lost: Vec<_> = wanted.iter().filter(|key| !found.contains(key)).collect();
    let litter: Vec<_> = found.iter().filter(|key| !wanted.contains(key)).collect();
    let mut sound = lost.is_empty() && litter.is_empty();
    if !sound {
        println!("lost {lost:?}, left behind {litter:?}");
    }
    for key in wanted.iter().filter(|key| found.contains(key)) {
        if session.get_small(bucket, key).await? != key.as_bytes() {
            println!("{key} is not what it was");
            sound = false;
        }
    }
    if sound {
        println!(
            "all {} foreign objects are there, and nothing else",
            wanted.len()
        );
    }
    Ok(sound)
}
