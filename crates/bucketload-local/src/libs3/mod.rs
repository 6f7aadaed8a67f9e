//! The driver of the libs3 C interface: any library that exports it is loaded and called in this process.
//!
//! ```text
//! config ── driver ── session ── object, list, multipart, admin
//!              │         │
//!           library    call: what the callbacks of one call see and leave behind
//!              │
//!           libs3_abi: structures and functions of version 4
//! ```
//!
//! Calls block the load thread that makes them, as they block the applications that use the library; so there are
//! as many operations in flight as there are load threads. The interface is declared from its description (`libs3_abi`);
//! nothing of the original library is used.

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

/// Loads a library and looks whether it is one of version 4; nothing of it is initialised.
///
/// # Errors
/// What is wrong with it.
pub fn check(library: &std::ffi::OsStr) -> Result<(), String> {
    library::Library::load(library).map(drop)
}
