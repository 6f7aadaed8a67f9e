//! How drivers are registered.
//!
//! Each driver has one [`Descriptor`]. It names the schemes of the driver's URLs, the flags that it reads, how to open
//! it, and where its settings come from. The [`Registry`] lists all descriptors. The command line is built from the
//! registry, so adding a driver changes nothing outside its folder but the `mod` of its crate and the registry's list.
//!
//! ```text
//! command line ── Settings ──▶ OpenRequest ──▶ Descriptor::open ──▶ Service { driver, endpoints }
//!      ▲                                            │
//!      └────────── Descriptor::flags                └▶ Descriptor::origins (`config show`)
//! ```

mod descriptor;
mod dialect;
pub mod doctor;
mod flag;
pub mod flags;
mod locate;
mod origin;
mod semantics;
mod settings;

pub use descriptor::{
    ConfigFile, Descriptor, Registry, Service, UrlForm, any_bucket, any_cleanup, no_directory,
};
pub use dialect::Dialect;
pub use flag::{Check, Flag, Scope, Value};
pub use locate::{CephStore, Locate, Locators, OnCopy, RingStore};
pub use origin::{Origin, Source};
pub use semantics::Semantics;
pub use settings::{Given, OpenError, OpenRequest, Settings};
