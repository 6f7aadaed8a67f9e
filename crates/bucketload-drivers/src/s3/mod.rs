//! The native S3 driver.
//!
//! ```text
//! discover ── config ── driver ── session ── ops_* ── prepare ── exchange ── wire
//!   profile    endpoint           admin      xml      canonical, sign, template
//!              credentials                            checksum, chunked, sha256, encode
//! ```
//!
//! A session turns a request of the workload into one or more calls (`ops_*`); a call is prepared
//! (hashed, rendered, signed) before the timed start and exchanged on the session's connection.
//! Failures become meanings in `error_map`.

mod admin;
mod canonical;
mod checksum;
mod chunked;
mod config;
mod connect;
mod credentials;
mod discover;
mod driver;
mod encode;
mod endpoint;
pub(crate) mod error_map;
mod exchange;
mod lookup;
mod ops_bucket;
mod ops_list;
mod ops_multipart;
mod ops_object;
mod parked;
mod pool;
mod prepare;
mod profile;
mod session;
mod settings;
mod sha256;
mod sign;
mod sink;
mod template;
mod xml;

pub use config::{
    Addressing, ChecksumAlgorithm, ConfigError, Origin, PayloadMode, S3Config, Source, TlsConfig,
};
pub use credentials::{Credentials, Secret};
pub use discover::S3Overrides;
pub use driver::S3Driver;
pub use endpoint::Endpoint;
pub use session::S3Session;
