//! The driver of file systems: a bucket is a directory below the target's root, an object is a file.
//!
//! ```text
//! config ── driver ── session ── get, put, control, admin
//!                        │  path: keys to paths    errors: errno to meanings
//!                      work: what one step of an operation needs and brings back
//!                        │
//!              engine ───┼── sync    calls made on the load thread
//!                        ├── pool    a thread that may block, one hand-over per step
//!                        └── ring    io_uring, for the data of files; fixed: memory it knows
//!                              └── blocking: the calls themselves, walk: listings
//! ```
//!
//! A step is as much of an operation as can be done without looking at the bytes: for a small
//! object all of it. Its `work::Work` owns every byte that the kernel or another thread may still
//! touch (a `buffer`, cut from a `region` of huge pages) when the operation has been abandoned
//! (timeout, end of the run), so that nothing is waited for. Only the synchronous engine, which cannot
//! be abandoned, writes straight from the arena.

mod admin;
mod blocking;
mod buffer;
mod config;
mod control;
mod descriptor;
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
