//! Adapters from Bucketload operations to storage APIs.
//!
//! Each driver is a module with a type that implements [`bucketload_core::driver::Driver`]:
//!
//! - [`azblob`]: Azure Blob Storage
//! - [`gcs`]: Google Cloud Storage
//! - [`s3`]: Amazon S3 and compatible services
//! - [`seaweedfs`]: SeaweedFS's own interfaces
//! - [`swift`]: OpenStack Swift
//! - [`webhdfs`]: HDFS over REST; over RPC with the feature `hdfs`. Both share [`hadoop`]
//!
//! Each driver's `DESCRIPTOR` tells how to build it from URL, flags and settings.
//!
//! [`http`] is the kit that all HTTP drivers share. [`engines`] replaces a driver's native client with a library or a
//! command-line program. [`placement`] finds out which nodes hold an object. With the feature `conformance`, the
//! `conformance` module checks any driver against any server.

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
