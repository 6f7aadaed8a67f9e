//! The interface, in the version that this library implements.

pub use libs3_abi::*;

/// The structure of version 2.
#[cfg(feature = "abi2")]
pub type S3BucketContext = libs3_abi::S3BucketContext<()>;
/// The structure of version 2.
#[cfg(feature = "abi2")]
pub type S3PutProperties = libs3_abi::S3PutProperties<()>;
