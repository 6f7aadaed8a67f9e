//! S3 as a protocol: the formats that clients, servers and the libs3-compatible library all write and read.
//!
//! Signature Version 4 ([`sigv4`], and [`sign`] for signing many requests), reading and writing XML ([`xml`]), dates
//! ([`date`]), percent-encoding and digits ([`encode`]). All functions are pure: no clock, no I/O, no runtime.

pub mod canonical;
pub mod date;
pub mod encode;
pub mod sha256;
pub mod sign;
pub mod sigv4;
pub mod xml;
