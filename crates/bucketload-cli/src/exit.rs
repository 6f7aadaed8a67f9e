//! Exit codes, the same for every command.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything went well.
    Ok,
    /// The run finished but a gate failed: verification, objective or regression.
    GateFailed,
    /// The command line, the workload or the configuration is wrong.
    Usage,
    /// The target could not be used at preflight.
    Target,
    /// The run was aborted.
    Aborted,
    /// Everything else went well, but clean-up left something in the target. The last message says what and where,
    /// and how to remove it. The result is valid.
    Leftovers,
    /// The user interrupted the run; partial results are kept.
    Interrupted,
}

impl Exit {
    /// The exit code of the process.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::GateFailed => 1,
            Exit::Usage => 2,
            Exit::Target => 3,
            Exit::Aborted => 4,
            Exit::Leftovers => 5,
            Exit::Interrupted => 130,
        }
    }

    /// [`Exit::Leftovers`] instead of [`Exit::Ok`] if something was left in the target; worse exits stay.
    pub(crate) fn or_leftovers(self, left: bool) -> Self {
        match self {
            Self::Ok if left => Self::Leftovers,
            other => other,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The first failure of two, with the messages of both.
pub(crate) fn first_failure(
    first: Result<(), Failure>,
    second: Result<(), Failure>,
) -> Result<(), Failure> {
    match (first, second) {
        (Err(first), Err(second)) => Err(first.with_leftovers(Some(&second.message))),
        (first, second) => first.and(second),
    }
}

/// A failed command: what to print and how to exit.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How to exit.
    pub(crate) exit: Exit,
    /// What to tell the user, without the leading `bucketload: `.
    pub(crate) message: String,
}

impl Failure {
    fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
        }
    }

    /// A gate failed: exit code 1.
    pub(crate) fn gate(message: impl Into<String>) -> Self {
        Self::new(Exit::GateFailed, message)
    }

    /// A mistake of the user: exit code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The target cannot be used: exit code 3.
    pub(crate) fn target(message: impl Into<String>) -> Self {
        Self::new(Exit::Target, message)
    }

    /// The run broke: exit code 4.
    pub(crate) fn aborted(message: impl Into<String>) -> Self {
        Self::new(Exit::Aborted, message)
    }

    /// Something is left in the target although everything else went well: exit code 5.
    pub(crate) fn leftovers(message: impl Into<String>) -> Self {
        Self::new(Exit::Leftovers, message)
    }

    /// The user interrupted the command: exit code 130.
    pub(crate) fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted")
    }

    /// Appends a message about leftovers in the target.
    pub(crate) fn with_leftovers(mut self, message: Option<&str>) -> Self {
        if let Some(message) = message {
            self.message += &format!("\nbucketload: {message}");
        }
        self
    }
}

/// Turns any error into a [`Failure`] with the same message.
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
