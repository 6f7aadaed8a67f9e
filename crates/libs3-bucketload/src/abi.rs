//! The interface in the version that this library offers.

pub use libs3_abi::*;

/// As version 2 has it.
#[cfg(feature = "abi2")]
pub type S3BucketContext = libs3_abi::S3BucketContext<()>;
/// As version 2 has it.
#[cfg(feature = "abi2")]
pub type S3PutProperties = libs3_abi::S3PutProperties<()>;
