//! Runs the driver suite against a real server.
//!
//! ```text
//! AWS_ENDPOINT_URL=http://127.0.0.1:9000 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… \
//!     cargo run -p bucketload-drivers --features conformance --example conformance -- minio
//! ```
//!
//! The argument names the server, for its documented differences; without one it must behave like
//! Amazon S3. Exit code 0: every check passed.

use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Instant;

use bucketload_drivers::conformance::{Quirks, Suite};
use bucketload_drivers::s3::{S3Config, S3Driver, S3Overrides};

fn clock() -> u64 {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    1 + EPOCH.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_else(|| "aws".to_owned());
    let Some(quirks) = Quirks::of(&name) else {
        eprintln!("no server is known as `{name}`");
        return ExitCode::from(2);
    };
    let env = |name: &str| std::env::var(name).ok();
    let home = env("HOME").map(std::path::PathBuf::from);
    let overrides = S3Overrides::default();
    let config = S3Config::discover(&overrides, &env, home.as_deref());
    let driver = match config.and_then(S3Driver::new) {
        Ok(driver) => driver,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let suite = Suite {
        bucket: format!("bucketload-suite-{}", std::process::id()),
        quirks,
        clock,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let results = match runtime.map(|runtime| runtime.block_on(suite.run(&driver))) {
        Ok(Ok(results)) => results,
        Ok(Err(error)) => {
            eprintln!("{error}");
            return ExitCode::from(3);
        }
        Err(error) => {
            eprintln!("no runtime: {error}");
            return ExitCode::from(4);
        }
    };
    for result in &results {
        match &result.failure {
            None => println!("ok      {}", result.name),
            Some(text) => println!("FAILED  {}: {text}", result.name),
        }
    }
    let failed = results.iter().filter(|r| r.failure.is_some()).count();
    println!("{name}: {} passed, {failed} failed", results.len() - failed);
    ExitCode::from(u8::from(failed > 0))
}
