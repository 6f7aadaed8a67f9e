//! Drivers that reach their target without a network connection:
//!
//! - [`posix`]: file systems
//! - [`libs3`]: any library with the libs3 C interface
//! - [`null`]: no target at all, to show the client's own cost
//!
//! A driver's `DESCRIPTOR` defines its URLs, flags and settings. Drivers for HTTP services are in another crate, so a
//! change to one side does not recompile the other.

pub mod libs3;
pub mod null;
pub mod posix;
