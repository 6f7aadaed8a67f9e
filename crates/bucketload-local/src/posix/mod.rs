//! The driver of file systems: a bucket is a directory below the target's root, an object is a file.
//!
//! ```text
//! config ── driver ── session ── get, put, control, admin
//!                        │  path: keys to paths    errors: errno to error kinds
//!                      work: input and output of one step of an operation
//!                        │
//!              engine ───┼── sync    calls made on the load thread
//!                        ├── pool    threads that may block, one hand-over per step
//!                        └── ring    io_uring, for file data; fixed: registered memory
//!                              └── blocking: the calls themselves; walk: listings, search: unsorted ones
//! ```
//!
//! A step is the part of an operation that needs no look at the bytes; for a small object that is the
//! whole operation. An operation may be abandoned (timeout, end of the run) while the kernel or another
//! thread still uses its memory. Its `work::Work` owns all that memory (a `buffer`, cut from a `region` of
//! huge pages), so the session need not wait. Only the synchronous engine, whose steps cannot be abandoned,
//! writes straight from the arena.

mod admin;
mod blocking;
mod buffer;
mod config;
mod control;
mod descriptor;
mod doctor;
mod driver;
mod engine;
mod errors;
mod fill;
#[cfg(feature = "io-uring")]
mod fixed;
mod get;
mod list;
mod path;
mod pool;
mod put;
mod range;
mod region;
#[cfg(feature = "io-uring")]
mod ring;
mod search;
mod session;
mod shared;
mod sweep;
#[cfg(feature = "io-uring")]
mod uring;
mod walk;
mod work;

pub use config::{Cache, Fsync, Io, Layout, PosixConfig, Write};
pub use descriptor::DESCRIPTOR;
pub use driver::PosixDriver;
pub use session::PosixSession;
