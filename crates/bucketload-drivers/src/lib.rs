//! Adapters from Bucketload operations to storage APIs.

pub mod null;
pub mod s3;
