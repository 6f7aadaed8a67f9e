//! The native driver for Azure Blob Storage.
//!
//! ```text
//! discover ── config ── driver ── session ── ops_* ── head ── http::connection
//!   connection_string            admin        xml     sign
//!                                batch                checksum
//! ```
//!
//! A session turns a request of the workload into one or more calls (`ops_*`). A call's head is
//! rendered and signed (`head`, `sign`) before the timed start. Failures become meanings in
//! `error_map`. Containers are what the rest of the program calls buckets, blobs are its objects.

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
