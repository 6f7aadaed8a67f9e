//! Adapters from Bucketload operations to storage APIs.
//!
//! Each driver is a module with a type that implements [`bucketload_core::driver::Driver`]:
//!
//! - [`azblob`]: Azure Blob Storage
//! - [`gcs`]: Google Cloud Storage
//! - [`s3`]: Amazon S3 and its kind
//! - [`seaweedfs`]: SeaweedFS's own interfaces
//! - [`swift`]: OpenStack Swift
//! - [`webhdfs`]: HDFS by REST; by RPC with the feature `hdfs`. Both share [`hadoop`]
//!
//! A driver's `DESCRIPTOR` says how its URLs, flags and settings become a driver.
//!
//! What HTTP services have in common stands in [`http`]; [`engines`] replaces the native client of a
//! driver by a library or a command-line program; [`placement`] computes where stores keep objects.
//! With the feature `conformance`, the `conformance` module checks any driver against any server.

pub mod azblob;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod engines;
pub mod gcs;
pub mod hadoop;
#[cfg(feature = "hdfs")]
pub mod hdfs;
pub mod http;
mod json;
mod json_size;
pub mod placement;
pub mod s3;
pub mod seaweedfs;
pub mod swift;
#[cfg(feature = "conformance")]
pub mod toy;
pub mod webhdfs;
