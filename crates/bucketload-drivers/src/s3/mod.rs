//! The native S3 driver.
//!
//! ```text
//! discover ── config ── driver ── session ── ops_* ── prepare ── crate::http ── wire
//!   profile    credentials        admin               canonical, sign, template
//!              keeping                                checksum, chunked
//! ```
//!
//! A session turns an operation of the workload into one or more HTTP requests (`ops_*`). A request is hashed, rendered
//! and signed before the timed start (`prepare`), then exchanged on the session's connection. `error_map` classifies
//! failures.

mod admin;
mod admin_list;
mod admin_versions;
mod checksum;
mod chunked;
mod config;
mod credentials;
mod descriptor;
mod discover;
mod dispatch;
mod doctor;
mod driver;
pub(crate) mod error_map;
mod keeping;
mod lookup;
mod ops_append;
mod ops_bucket;
mod ops_list;
mod ops_list_marked;
mod ops_lock;
mod ops_multipart;
mod ops_object;
mod ops_parts;
mod ops_versions;
mod prepare;
mod profile;
mod session;
mod settings;
mod template;

pub use crate::http::{ConfigError, Endpoint, Origin, Secret, Source, TlsConfig};
pub use config::{Addressing, AppendMode, ChecksumAlgorithm, PayloadMode, S3Config};
pub use credentials::Credentials;
pub use descriptor::DESCRIPTOR;
pub use discover::{S3Dialect, S3Overrides};
pub use driver::S3Driver;
pub use keeping::{CustomerKey, Encryption, Keeping};
pub use session::S3Session;
