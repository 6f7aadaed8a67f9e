//! The native Google Cloud Storage driver: the JSON API. (The XML API is S3's; HMAC keys go to the S3
//! driver.)
//!
//! ```text
//! discover ── config ── driver ── session ── ops_* ── http core
//!   auth/account         auth/keeper  admin    json, error_map
//!                        auth/grant, auth/jwt
//! ```
//!
//! A session turns a request of the workload into one or more calls (`ops_*`). Tokens are obtained and
//! renewed by a thread of their own (`auth/keeper`), never by an operation. Failures become meanings in
//! `error_map`.

mod admin;
mod auth;
mod config;
mod descriptor;
mod discover;
mod driver;
mod error_map;
mod ops_batch;
mod ops_bucket;
mod ops_list;
mod ops_object;
mod ops_upload;
mod session;

pub use auth::{Account, ServiceKey, UserGrant};
pub use config::{GcsConfig, LargeObject};
pub use descriptor::DESCRIPTOR;
pub use discover::GcsOverrides;
pub use driver::GcsDriver;
pub use session::GcsSession;
