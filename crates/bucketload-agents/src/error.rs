//! What can go wrong between coordinator and agents.

use tonic::{Code, Status};

/// Why a run on agents, or an agent, could not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AgentsError {
    /// What to tell the user, with what to do about it.
    pub message: String,
    /// The exit code that it means: 2 usage, 3 target not usable, 4 aborted.
    pub exit_code: u8,
}

impl AgentsError {
    /// A mistake of the user.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_code: 2,
        }
    }

    /// Somebody was lost, or did not answer.
    pub fn aborted(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_code: 4,
        }
    }
}

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) enum CallError {
    /// Nobody is there (yet).
    Unreachable(String),
    /// The other side is busy with another run.
    Busy(String),
    /// The other side does not want to talk to us, or we not to it.
    Refused(String),
}

impl CallError {
    pub(crate) fn of(status: &Status) -> Self {
        let message = status.message().to_owned();
        match status.code() {
            Code::Unauthenticated | Code::FailedPrecondition | Code::PermissionDenied => {
                Self::Refused(message)
            }
            Code::Unimplemented => {
                Self::Refused("the other side is no agent or coordinator of bucketload".to_owned())
            }
            Code::ResourceExhausted => Self::Busy(message),
            _ => Self::Unreachable(described(status)),
        }
    }

    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Unreachable(text) | Self::Busy(text) | Self::Refused(text) => text,
        }
    }
}

/// A broken stream in words.
pub(crate) fn described(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// An error of the transport with its causes.
pub(crate) fn transport(error: &tonic::transport::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
