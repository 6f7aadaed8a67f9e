//! From flags to the configuration of the driver of file systems.

use std::path::Path;

use bucketload_drivers::http::{Origin, Source};
use bucketload_drivers::posix::{PosixConfig, PosixDriver};

use super::{Service, engines, flags};
use crate::cli::target::TargetArgs;
use crate::exit::Failure;

/// The configuration for the directory `root`.
fn config(root: &Path, args: &TargetArgs) -> Result<PosixConfig, Failure> {
    flags::refuse_but(&[flags::POSIX], args, "file://")?;
    engines::refuse(args, "file://")?;
    let given = &args.posix;
    let mut config = PosixConfig::new(root);
    config.io = given.posix_io;
    config.direct = given.posix_direct;
    config.fsync = given.posix_fsync.unwrap_or(config.fsync);
    config.write = given.posix_write.unwrap_or(config.write);
    config.cache = given.posix_cache.unwrap_or(config.cache);
    config.layout = given.posix_layout.unwrap_or(config.layout);
    config.block = given.posix_block.unwrap_or(config.block);
    config.slot = given.posix_slot.unwrap_or(config.slot);
    config.threads = given.posix_threads.unwrap_or(config.threads);
    Ok(config)
}

fn driver(root: &Path, args: &TargetArgs) -> Result<PosixDriver, Failure> {
    PosixDriver::new(config(root, args)?)
        .map_err(|e| Failure::usage(format!("file://{}: {e}", root.display())))
}

/// The driver of the directory `root`.
///
/// # Errors
/// When flags are of another API or contradict each other.
pub(crate) fn service(root: &Path, args: &TargetArgs) -> Result<Service, Failure> {
    let driver = driver(root, args)?;
    Ok(Service {
        driver: driver.into(),
        endpoints: Vec::new(),
    })
}

/// The effective settings of the directory `root` and where each comes from.
///
/// # Errors
/// As [`service`].
pub(crate) fn origins(root: &Path, args: &TargetArgs) -> Result<Vec<Origin>, Failure> {
    let driver = driver(root, args)?;
    let config = driver.config();
    let given = args.posix.given();
    let origin = |name: &'static str, flag: &'static str, value: String| Origin {
        name,
        value,
        source: match given.contains(&(flag, true)) {
            true => Source::Flag(flag),
            false => Source::Default,
        },
    };
    Ok(vec![
        origin("engine", "--posix-io", driver.io().to_string()),
        origin("O_DIRECT", "--posix-direct", config.direct.to_string()),
        origin("fsync", "--posix-fsync", config.fsync.to_string()),
        origin("write", "--posix-write", config.write.to_string()),
        origin("page cache", "--posix-cache", config.cache.to_string()),
        origin("layout", "--posix-layout", config.layout.to_string()),
        origin("block", "--posix-block", config.block.to_string()),
        origin("slot", "--posix-slot", config.slot.to_string()),
        origin("threads", "--posix-threads", config.threads.to_string()),
    ])
}
