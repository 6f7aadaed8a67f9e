//! The native driver for Azure Blob Storage.
//!
//! ```text
//! discover ── config ── driver ── session ── ops_* ── head ── http::connection
//!   connection_string            admin        xml     sign
//!                                batch                checksum
//! ```
//!
//! A session turns each request of the workload into one or more calls (`ops_*`). It renders and
//! signs a call's head (`head`, `sign`) before the timed start. `error_map` interprets failures.
//! Azure's containers are the program's buckets, and its blobs are the program's objects.

mod admin;
mod batch;
mod checksum;
mod config;
mod connection_string;
mod descriptor;
mod discover;
mod driver;
mod error_map;
mod head;
mod ops_append;
mod ops_blocks;
mod ops_container;
mod ops_list;
mod ops_object;
mod ops_tags;
mod session;
mod sign;

pub use config::{API_VERSION, Auth, AzureConfig, ContentChecksum};
pub use descriptor::DESCRIPTOR;
pub use discover::AzureOverrides;
pub use driver::AzureDriver;
pub use session::AzureSession;
