//! Runs on many hosts: this program as coordinator or agent of `bucketload-agents`.
//!
//! `setup` describes the target for an agent, `host` opens it on the agent, `fleet` finds or starts the agents.

pub(crate) mod fleet;
pub(crate) mod host;
pub(crate) mod setup;

use std::path::Path;

use bucketload_agents::{Access, AgentsError, TOKEN_ENV, Tls, TlsFiles};
use bucketload_token::AccessToken;

use crate::cli::agents::AgentTlsArgs;
use crate::exit::{Exit, Failure, OrFail as _};

/// The failure that an error of agents means for the user.
pub(crate) fn broken(error: AgentsError) -> Failure {
    Failure {
        exit: match error.exit_code {
            2 => Exit::Usage,
            3 => Exit::Target,
            1 => Exit::GateFailed,
            _ => Exit::Aborted,
        },
        message: error.message,
    }
}

/// The token and certificates of this side.
///
/// # Errors
/// When the token or a certificate cannot be read.
pub(crate) fn access(token_file: Option<&Path>, tls: &AgentTlsArgs) -> Result<Access, Failure> {
    let token = AccessToken::find("the agents' token", token_file, TOKEN_ENV).or_usage()?;
    let files = match (&tls.agent_cert, &tls.agent_key, &tls.agent_ca) {
        (Some(certificate), Some(key), Some(authority)) => Some(TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
            authority: authority.clone(),
        }),
        _ => None,
    };
    let tls = files.as_ref().map(Tls::read).transpose().map_err(broken)?;
    Ok(Access::new(env!("CARGO_PKG_VERSION"), token, tls))
}
