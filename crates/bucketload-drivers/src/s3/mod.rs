//! The native S3 driver.

mod canonical;
mod checksum;
mod chunked;
mod config;
mod credentials;
mod discover;
mod encode;
mod endpoint;
mod error_map;
mod pool;
mod profile;
mod sha256;
mod sign;
mod template;
mod xml;

pub use config::{
    Addressing, ChecksumAlgorithm, ConfigError, Origin, PayloadMode, S3Config, Source, TlsConfig,
};
pub use credentials::{Credentials, Secret};
pub use discover::S3Overrides;
pub use endpoint::{Endpoint, MAX_ENDPOINTS};
