//! The native SeaweedFS driver, for SeaweedFS's own HTTP interfaces. (The S3 driver speaks to its S3
//! gateway.)
//!
//! ```text
//! config ── driver ── session ─┬─ filer, walk      paths on a filer
//!                      admin   └─ master           file IDs: master and volume servers
//!                                 fid, table, servers
//! ```
//!
//! With a filer an object is a path, and the store keeps everything about it. With a master an object is
//! a file ID that the client has to remember (`table`), which saves one hop. `error_map` interprets
//! failures; `placement` asks for the locations of objects.

mod admin;
mod config;
mod descriptor;
mod driver;
mod error_map;
mod fid;
mod filer;
mod master;
mod placement;
mod servers;
mod session;
mod table;
mod walk;

pub use config::{DEFAULT_OBJECTS, Mode, SeaweedConfig, SeaweedOverrides};
pub use descriptor::DESCRIPTOR;
pub use driver::SeaweedDriver;
pub use session::SeaweedSession;
