//! The driver of a toy API: the worked example of the manual's chapter "Write a driver". Compiled only for tests and
//! examples.
//!
//! ```text
//! PUT, GET, HEAD, DELETE  /BUCKET/KEY                           an object; GET understands Range
//! PUT, DELETE             /BUCKET                               a bucket
//! GET                     /BUCKET?prefix=&after=&count=&delimiter=   a page of names, one per line
//! ```
//!
//! A line of a page is `key NAME` or `group NAME`. A page that is not the last ends with `next NAME`. Names are
//! percent-encoded. A refusal is a status and a line of text.
//!
//! `descriptor` describes the driver and opens it, `driver` holds the state that all sessions share, `session` performs
//! operations, and `admin` performs the untimed calls before and after a run.

mod admin;
mod descriptor;
mod driver;
mod session;

pub use descriptor::DESCRIPTOR;
pub use driver::{ToyConfig, ToyDriver};
pub use session::ToySession;
