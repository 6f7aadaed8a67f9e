//! Client engines other than the native one. They measure what users of these clients experience,
//! where the native client measures what the store can do.
//!
//! ```text
//! EngineDriver ── Engine (one per run) ── Client (one per worker): the timed operations
//!       └──────── the native driver: untimed calls (preflight, marks, clean-up)
//! ```
//!
//! An [`Engine`] is a library linked in by a cargo feature (`aws_sdk`, `object_store`, `opendal`) or
//! a command-line program ([`cli`]). Preflight, ownership marks and clean-up always go through the
//! native driver of the target, so a run deletes by the same rules whatever client it measures.
//!
//! The HTTP layer of a library is wrapped (`shared_probe`), so each request is counted and timed,
//! including repeated ones. Of a program only the start and the end are visible. The result header
//! contains these facts, the version, and the settings of retries and checksums. `payload` provides
//! content without copying it; `failure` interprets errors.

#[cfg(feature = "http-engines")]
use crate::s3::{ConfigError, S3Config};

#[cfg(feature = "engine-aws-sdk")]
pub mod aws_sdk;
mod choose;
pub mod cli;
mod driver;
pub(crate) mod failure;
#[cfg(feature = "engine-object-store")]
pub mod object_store;
#[cfg(feature = "engine-opendal")]
pub mod opendal;
#[cfg(feature = "http-engines")]
pub(crate) mod payload;
#[cfg(feature = "http-engines")]
pub(crate) mod per_thread;
#[cfg(feature = "http-engines")]
pub(crate) mod reading;
#[cfg(feature = "http-engines")]
pub(crate) mod shared_probe;

/// Refuses the first setting of `config` that the engine does not support: a client certificate, source
/// addresses, or one of `unsupported`, each with the problem to report.
#[cfg(feature = "http-engines")]
pub(crate) fn check_settings(
    engine: &str,
    config: &S3Config,
    unsupported: &[(bool, &str)],
) -> Result<(), ConfigError> {
    let common = [
        (
            config.tls.client.is_some(),
            "it has no client certificates (--client-cert)",
        ),
        (
            !config.source_addresses.is_empty(),
            "it has no source addresses (--source-address)",
        ),
    ];
    let mut refused = unsupported.iter().chain(&common).filter(|(set, _)| *set);
    match refused.next() {
        None => Ok(()),
        Some((_, problem)) => Err(ConfigError::new(
            format!("engine {engine}"),
            *problem,
            "omit the flag, or use --engine native",
        )),
    }
}

pub use choose::{ABSENT, FLAGS};
pub(crate) use choose::{in_front_of, is_native, of_cloud, of_s3};
pub use driver::{Client, Engine, EngineDriver, EngineFacts, EngineSession};
