//! From flags to the configuration of the driver of file systems.

use std::path::Path;
use std::sync::Arc;

use bucketload_drivers::posix::{PosixConfig, PosixDriver};

use super::{Service, engines, flags};
use crate::cli::target::TargetArgs;
use crate::connection::AnyDriver;
use crate::exit::Failure;

/// The driver of the directory `root`.
///
/// # Errors
/// When flags are of another API or contradict each other.
pub(crate) fn service(root: &Path, args: &TargetArgs) -> Result<Service, Failure> {
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
    let driver = PosixDriver::new(config)
        .map_err(|e| Failure::usage(format!("file://{}: {e}", root.display())))?;
    Ok(Service {
        driver: AnyDriver::Posix(Arc::new(driver)),
        endpoints: Vec::new(),
    })
}
