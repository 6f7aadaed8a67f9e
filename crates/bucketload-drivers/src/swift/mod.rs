//! The native OpenStack Swift driver (OpenStack Swift, Ceph's radosgw).
//!
//! ```text
//! discover ── config ── driver ── session ── object, large, list, bulk, container ── head ── http
//!   clouds             │                   admin
//!            tokens ───┘ (identity: what is asked when signing in)
//! ```
//!
//! Signing in happens when the driver is made, before a run; a thread of its own renews the token
//! before it ends (`tokens`). A session renders a head (`head`) and lets the shared HTTP core exchange
//! it; refusals become meanings in `error_map`.

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
