//! S3 as a protocol: what clients, servers and the library with the interface of libs3 have to write and read alike.
//!
//! Signature Version 4 ([`sigv4`], and [`sign`] for who signs many requests), XML in and out ([`xml`]), dates
//! ([`date`]), percent-encoding and digits ([`encode`]). Functions of their arguments: no clock, no I/O, no runtime.

pub mod canonical;
pub mod date;
pub mod encode;
pub mod sha256;
pub mod sign;
pub mod sigv4;
pub mod xml;
