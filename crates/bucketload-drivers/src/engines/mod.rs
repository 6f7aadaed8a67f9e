//! Client engines other than our own: what users of these clients feel, beside what the store can
//! do.
//!
//! ```text
//! EngineDriver ── Engine (one per run) ── Client (one per worker): the timed operations
//!       └──────── the native driver: untimed calls (preflight, marks, clean-up)
//! ```
//!
//! An [`Engine`] is a library linked in by a cargo feature (`aws_sdk`, `object_store`, `opendal`) or
//! a command-line program ([`cli`]). Preflight, ownership marks and clean-up always go through the
//! native driver of the target, so that a run deletes by the same rules whatever client it measures.
//!
//! Libraries get their HTTP layer wrapped (`marks`), so that each request they send is counted and
//! timed, repeated ones included; of a program only its start and its end are seen. Both facts, the
//! version and the settings of retries and checksums stand in the result header. `payload` gives out
//! content without copying it, `failure` says what an error means.

#[cfg(feature = "engine-aws-sdk")]
pub mod aws_sdk;
mod choose;
pub mod cli;
mod driver;
pub(crate) mod failure;
#[cfg(feature = "http-engines")]
pub(crate) mod marks;
#[cfg(feature = "engine-object-store")]
pub mod object_store;
#[cfg(feature = "http-engines")]
pub(crate) mod of_thread;
#[cfg(feature = "engine-opendal")]
pub mod opendal;
#[cfg(feature = "http-engines")]
pub(crate) mod payload;
#[cfg(feature = "http-engines")]
pub(crate) mod reading;

pub use choose::{ABSENT, FLAGS};
pub(crate) use choose::{in_front_of, is_native, of_cloud, of_s3};
pub use driver::{Client, Engine, EngineDriver, EngineFacts, EngineSession};
