//! Adapters from Bucketload operations to storage APIs.
//!
//! Each driver is a module with a type that implements [`bucketload_core::driver::Driver`]:
//!
//! - [`azblob`]: Azure Blob Storage
//! - [`gcs`]: Google Cloud Storage
//! - [`s3`]: Amazon S3 and its kind
//! - [`seaweedfs`]: SeaweedFS's own interfaces
//! - [`null`]: nothing at all, to show what the client itself costs
//!
//! What HTTP services have in common stands in [`http`]. With the feature `conformance`, the
//! `conformance` module checks any driver against any server.

pub mod azblob;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod gcs;
pub mod http;
mod json;
mod json_size;
pub mod null;
pub mod posix;
pub mod s3;
pub mod seaweedfs;
