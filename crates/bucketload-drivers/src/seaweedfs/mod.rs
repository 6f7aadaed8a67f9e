//! The native SeaweedFS driver: its own HTTP interfaces. (Its S3 gateway is for the S3 driver.)
//!
//! ```text
//! config ── driver ── session ─┬─ filer, walk      paths on a filer
//!                      admin   └─ master           file ids: master and volume servers
//!                                 fid, table, servers
//! ```
//!
//! With a filer an object is a path, and everything about it stands in the store. With a master it is a
//! file id that the client has to remember (`table`), in exchange for one hop less. Failures become
//! meanings in `error_map`; `placement` asks where objects lie.

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
