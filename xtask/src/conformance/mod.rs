//! Conformance: our driver against servers we did not write, our server against clients we did not
//! write, and the whole program as a user meets it. Everything is installed by the scripts of
//! `servers/`; what cannot be had fails the run.

mod clients;

use crate::sh::Result;

/// All parts.
pub(crate) fn all(args: &[String]) -> Result {
    let wanted = |name: &str| args.is_empty() || args.iter().any(|arg| arg == name);
    if wanted("clients") {
        clients::all()?;
    }
    Ok(())
}
