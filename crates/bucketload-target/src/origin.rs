//! Where settings come from.

use std::fmt;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A command-line flag or the caller.
    Flag(&'static str),
    /// An environment variable.
    Env(&'static str),
    /// `FILE:LINE [section] field` of a configuration file.
    File(String),
    /// `FILE:LINE` of the file named by `--dialect`.
    Dialect(String),
    /// Built in.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Env(name) => f.write_str(name),
            Self::File(place) => f.write_str(place),
            Self::Dialect(place) => write!(f, "dialect {place}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One effective setting, for `config show` and `doctor`; never holds a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name of the setting.
    pub name: &'static str,
    /// Its effective value; secrets are shown as `***`.
    pub value: String,
    /// Where it came from.
    pub source: Source,
}
