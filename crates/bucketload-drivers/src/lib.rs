//! Adapters from Bucketload operations to storage APIs.
//!
//! Each driver is a module with a type that implements [`bucketload_core::driver::Driver`]:
//!
//! - [`azblob`]: Azure Blob Storage
//! - [`gcs`]: Google Cloud Storage
//! - `libs3`: any library with the libs3 C interface (Unix)
//! - [`posix`]: file systems
//! - [`s3`]: Amazon S3 and its kind
//! - [`seaweedfs`]: SeaweedFS's own interfaces
//! - [`swift`]: OpenStack Swift
//! - [`webhdfs`]: HDFS by REST; by RPC with the feature `hdfs`. Both share [`hadoop`]
//! - [`null`]: nothing at all, to show what the client itself costs
//!
//! What HTTP services have in common stands in [`http`]; [`engines`] replaces the native client of a
//! driver by a library or a command-line program; [`placement`] computes where stores keep objects.
//! With the feature `conformance`, the `conformance` module checks any driver against any server.

/// Lets a driver become an [`bucketload_core::driver::AnyDriver`]. The conversion is no generic function and stands with
/// the driver, so all that the driver does is compiled in this crate, once.
macro_rules! any_driver {
    ($driver:ty) => {
        impl From<$driver> for bucketload_core::driver::AnyDriver {
            #[inline(never)]
            fn from(driver: $driver) -> Self {
                Self::new(driver)
            }
        }
    };
}
use any_driver;

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
#[cfg(unix)]
pub mod libs3;
pub mod null;
mod ops;
pub mod placement;
pub mod posix;
pub mod s3;
pub mod seaweedfs;
pub mod swift;
pub mod webhdfs;
