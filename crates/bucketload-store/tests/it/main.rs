//! The stores and the server over them.

mod accounting;
mod appends;
mod common;
mod concurrency;
mod crash;
mod directory;
mod large;
mod model;
mod server;
mod versions;
