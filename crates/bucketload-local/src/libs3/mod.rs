//! The driver of the libs3 C interface: it loads any library that exports the interface and calls it in this process.
//!
//! ```text
//! config ── driver ── session ── object, list, multipart, admin
//!              │         │
//!           library    call: the state that a call shares with its callbacks
//!              │
//!           libs3_abi: structures and functions of version 4
//! ```
//!
//! A call blocks its load thread, as it blocks applications that use the library, so at most one operation per load
//! thread is in flight. The declarations follow the interface's description (`libs3_abi`); no code of the original
//! library is used.

mod admin;
mod call;
mod config;
mod descriptor;
mod driver;
mod library;
mod list;
mod multipart;
mod object;
mod session;
mod status;

pub use config::{Libs3Config, Style};
pub use descriptor::DESCRIPTOR;
pub use driver::Libs3Driver;
pub use session::Libs3Session;

/// Loads a library and checks its version, without initialising it.
///
/// # Errors
/// When it cannot be loaded, or is not a libs3 library of version 4.
pub fn check(library: &std::ffi::OsStr) -> Result<(), String> {
    library::Library::load(library).map(drop)
}
