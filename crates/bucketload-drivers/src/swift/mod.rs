//! The native OpenStack Swift driver (for OpenStack Swift and Ceph's radosgw).
//!
//! ```text
//! discover ── config ── driver ── session ── object, large, list, bulk, container ── head ── http
//!   clouds             │                   admin
//!            tokens ───┘ (identity: sign-in requests and responses)
//! ```
//!
//! The driver signs in when it is created, before a run. A separate thread renews the token before it expires
//! (`tokens`). A session renders a head (`head`) and sends it with the shared HTTP kit; `error_map` classifies refusals.

mod admin;
mod bulk;
mod clouds;
mod config;
mod container;
mod descriptor;
mod discover;
mod driver;
mod error_map;
mod head;
mod identity;
mod large;
mod list;
mod object;
mod session;
mod tokens;

pub use crate::http::{ConfigError, Endpoint, Origin, Secret, Source, TlsConfig};
pub use config::{
    Domain, Identity, Keystone, LargeObject, Named, Project, SwiftAuth, SwiftConfig,
    check_container,
};
pub use descriptor::DESCRIPTOR;
pub use discover::SwiftOverrides;
pub use driver::{SignInError, SwiftDriver};
pub use session::SwiftSession;
