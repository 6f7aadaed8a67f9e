//! Adapters from Bucketload operations to storage APIs.
//!
//! Each driver is a module with a type that implements [`bucketload_core::driver::Driver`]:
//! [`s3`] speaks to S3 services over the wire client, [`gcs`] to Google Cloud Storage, [`seaweedfs`] to SeaweedFS, [`null`] does nothing and shows what the
//! client itself costs. With the feature `conformance`, the `conformance` module checks any
//! driver against any server.

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod gcs;
pub mod http;
mod json;
pub mod null;
pub mod s3;
pub mod seaweedfs;
