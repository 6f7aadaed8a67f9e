//! How a driver is registered.
//!
//! Each driver has one [`Descriptor`]: the schemes of its URLs, the flags that it reads, how it is opened, where its
//! settings come from. The [`Registry`] lists them. The command line is built from the registry, so a new driver
//! changes nothing outside its folder but the registry's list.
//!
//! ```text
//! command line ── Settings ──▶ OpenRequest ──▶ Descriptor::open ──▶ Service { driver, endpoints }
//!      ▲                                            │
//!      └────────── Descriptor::flags                └▶ Descriptor::origins (`config show`)
//! ```

mod descriptor;
mod flag;
pub mod flags;
mod locate;
mod origin;
mod semantics;
mod settings;

pub use descriptor::{
    ConfigFile, Descriptor, Registry, Service, UrlForm, any_bucket, no_directory, sees_all,
};
pub use flag::{Check, Flag, Scope, Value};
pub use locate::{CephStore, Found, Locate, Locators, RingStore};
pub use origin::{Origin, Source};
pub use semantics::Semantics;
pub use settings::{Given, OpenError, OpenRequest, Settings};
