//! Access tokens: [`account`] says what they are obtained with, [`grant`] obtains one ([`jwt`] signs for
//! service accounts), [`keeper`] has a fresh one at hand for the sessions.

pub(crate) mod account;
pub(crate) mod grant;
mod jwt;
pub(crate) mod keeper;

pub use account::{Account, ServiceKey, UserGrant};
