//! The C interface of libs3 (version 4.1, or 2.0 with the feature `abi2`) over Bucketload's store.
//!
//! If an application built against libs3 loads this library instead, it works on the objects of a
//! directory in its own process rather than sending HTTP requests. [`abi`] is the interface (declared
//! by `libs3_abi`), and [`exports`] defines its functions. Each function checks its arguments
//! (`arguments`) and passes a closure to `context`, which runs it at once or when the request context is
//! driven, and calls the completion callback exactly once (`reply`). The closures (`calls`) work on a
//! `backend`, which `library` finds by the host name and the environment.
//!
//! The library never starts a thread, writes to standard output, exits the process or unwinds into C. To standard
//! error it writes single lines about failures (`complaints`).

#![cfg_attr(
    feature = "abi2",
    allow(
        dead_code,
        reason = "version 2 has no multipart uploads and no lifecycle"
    )
)]

pub mod abi;
mod acl;
mod arguments;
mod backend;
mod calls;
mod clock;
mod complaints;
mod context;
pub mod exports;
mod library;
mod names;
mod presign;
mod reply;
mod status;
mod xml;

pub use abi::S3RequestContext;
