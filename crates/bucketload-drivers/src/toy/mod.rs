//! The driver of a toy API: the worked example of the manual's chapter "Write a driver". It is compiled for tests and
//! examples only.
//!
//! ```text
//! PUT, GET, HEAD, DELETE  /BUCKET/KEY                           an object; GET understands Range
//! PUT, DELETE             /BUCKET                               a bucket
//! GET                     /BUCKET?prefix=&after=&count=&delimiter=   a page of names, a line each
//! ```
//!
//! A line of a page is `key NAME`, `group NAME` or, at the end of a page that is not the last, `next NAME`; names are
//! percent-encoded. A refusal is a status and a line of text.
//!
//! `descriptor` says what the driver is and how it is opened, `driver` holds what all sessions share, `session` performs
//! operations, `admin` the untimed calls before and after a run.

mod admin;
mod descriptor;
mod driver;
mod session;

pub use descriptor::DESCRIPTOR;
pub use driver::{ToyConfig, ToyDriver};
pub use session::ToySession;
