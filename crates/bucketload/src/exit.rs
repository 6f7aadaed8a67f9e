//! Exit codes, the same for every command.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything went well.
    Ok,
    /// The run finished but a gate failed: verification, objective, regression.
    GateFailed,
    /// The command line, the workload or the configuration is wrong.
    Usage,
    /// The target could not be used at preflight.
    Target,
    /// The run was aborted.
    Aborted,
    /// The user interrupted the run; partial results are kept.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Ok => 0,
            Exit::GateFailed => 1,
            Exit::Usage => 2,
            Exit::Target => 3,
            Exit::Aborted => 4,
            Exit::Interrupted => 130,
        })
    }
}

/// A failed command: what to print and how to exit.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How to exit.
    pub(crate) exit: Exit,
    /// What to tell the user, without the `bucketload: ` in front.
    pub(crate) message: String,
}

impl Failure {
    /// A mistake of the user: exit code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            message: message.into(),
        }
    }

    /// The target cannot be used: exit code 3.
    pub(crate) fn target(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Target,
            message: message.into(),
        }
    }

    /// The run broke: exit code 4.
    pub(crate) fn aborted(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Aborted,
            message: message.into(),
        }
    }
}
