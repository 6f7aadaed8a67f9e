//! The native Google Cloud Storage driver, for the JSON API. (The S3 driver speaks the XML API, with HMAC
//! keys.)
//!
//! ```text
//! discover ── config ── driver ── session ── ops_* ── http core
//!   auth/account         auth/refresher  admin    json, error_map
//!                        auth/grant, auth/jwt
//! ```
//!
//! A session turns each request of the workload into one or more calls (`ops_*`). A dedicated thread
//! obtains and renews tokens (`auth/refresher`), never an operation. `error_map` interprets failures.

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
