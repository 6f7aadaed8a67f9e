//! Drivers that reach their target without a connection of their own:
//!
//! - [`posix`]: file systems
//! - [`libs3`]: any library with the libs3 C interface
//! - [`null`]: nothing at all, to show what the client itself costs
//!
//! A driver's `DESCRIPTOR` says how its URLs, flags and settings become a driver. Drivers of services over HTTP are
//! another crate, so that a change of one side does not compile the other.

pub mod libs3;
pub mod null;
pub mod posix;
