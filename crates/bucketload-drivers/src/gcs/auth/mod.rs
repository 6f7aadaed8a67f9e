//! Access tokens: [`account`] describes the credentials, [`grant`] obtains a token ([`jwt`] signs for
//! service accounts), [`refresher`] keeps a fresh one for the sessions.

pub(crate) mod account;
pub(crate) mod grant;
mod jwt;
pub(crate) mod refresher;

pub use account::{Account, ServiceKey, UserGrant};
