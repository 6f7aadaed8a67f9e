//! The C interface of libs3 (version 4.1, or 2.0 with the feature `abi2`) over Bucketload's store.
//!
//! An application that was built against libs3 and finds this library first works on the objects of
//! a directory, in its own process, instead of sending HTTP requests. [`abi`] is the
//! interface (declared by `libs3_abi`), [`exports`] defines its functions; each checks its arguments (`arguments`), and hands
//! a closure to `context`, which performs it at once or when the request context is driven, and
//! makes the callback that completes it exactly once (`reply`). The closures (`calls`) work on a
//! `backend` that `library` finds for the host name and the environment.
//!
//! Nothing here starts a thread, writes to standard output, ends the process or unwinds into C.

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
mod context;
pub mod exports;
mod library;
mod names;
mod presign;
mod reply;
mod status;
mod xml;

pub use abi::S3RequestContext;
