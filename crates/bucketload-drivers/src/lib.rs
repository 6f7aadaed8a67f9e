//! Adapters from Bucketload operations to storage APIs.

pub mod s3;
