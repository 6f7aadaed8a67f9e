//! Errors between coordinator and agents.

use tonic::{Code, Status};

/// Why a run on agents, or a single agent, failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AgentsError {
    /// Message for the user, with the remedy.
    pub message: String,
    /// Exit code of the process: 2 usage, 3 target not usable, 4 aborted.
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

    /// A peer was lost or did not answer.
    pub fn aborted(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_code: 4,
        }
    }
}

/// Why a gRPC call failed.
#[derive(Clone, Debug)]
pub(crate) enum CallError {
    /// Nobody listens there (yet).
    Unreachable(String),
    /// The other side is busy with another run.
    Busy(String),
    /// One side rejected the other: wrong token, version or configuration.
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
                Self::Refused("the other side is not a bucketload agent or coordinator".to_owned())
            }
            Code::ResourceExhausted => Self::Busy(message),
            _ => Self::Unreachable(status_text(status)),
        }
    }

    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Unreachable(text) | Self::Busy(text) | Self::Refused(text) => text,
        }
    }
}

/// Describes a gRPC status with its causes.
pub(crate) fn status_text(status: &Status) -> String {
    with_causes(status.message().to_owned(), status)
}

/// Describes a transport error with its causes.
pub(crate) fn transport_text(error: &tonic::transport::Error) -> String {
    with_causes(error.to_string(), error)
}

/// Appends the causes of `error` that `text` does not mention yet.
fn with_causes(mut text: String, error: &dyn std::error::Error) -> String {
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
