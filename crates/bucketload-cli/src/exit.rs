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
    /// Everything else went well, but a clean-up left something in the target: the last message says what, where
    /// and how to remove it. The result stands.
    Left,
    /// The user interrupted the run; partial results are kept.
    Interrupted,
}

impl Exit {
    /// The number that the process ends with.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::GateFailed => 1,
            Exit::Usage => 2,
            Exit::Target => 3,
            Exit::Aborted => 4,
            Exit::Left => 5,
            Exit::Interrupted => 130,
        }
    }

    /// The same end, or that something is left where nothing graver is to be said.
    pub(crate) fn or_left(self, left: bool) -> Self {
        match self {
            Self::Ok if left => Self::Left,
            other => other,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The first failure of two, with the words of both.
pub(crate) fn also(first: Result<(), Failure>, then: Result<(), Failure>) -> Result<(), Failure> {
    match (first, then) {
        (Err(first), Err(then)) => Err(first.and_left(Some(&then.message))),
        (first, then) => first.and(then),
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

    /// Something is left in the target although all else went well: exit code 5.
    pub(crate) fn left(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Left,
            message: message.into(),
        }
    }

    /// Adds what is left in the target to the message of what went wrong before.
    pub(crate) fn and_left(mut self, left: Option<&str>) -> Self {
        if let Some(left) = left {
            self.message += &format!("\nbucketload: {left}");
        }
        self
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

/// Makes a [`Failure`] of what went wrong, in its words.
pub(crate) trait OrFail<T> {
    /// As a mistake of the user.
    fn or_usage(self) -> Result<T, Failure>;

    /// As something that broke the run.
    fn or_aborted(self) -> Result<T, Failure>;
}

impl<T, E: ToString> OrFail<T> for Result<T, E> {
    fn or_usage(self) -> Result<T, Failure> {
        self.map_err(|e| Failure::usage(e.to_string()))
    }

    fn or_aborted(self) -> Result<T, Failure> {
        self.map_err(|e| Failure::aborted(e.to_string()))
    }
}
