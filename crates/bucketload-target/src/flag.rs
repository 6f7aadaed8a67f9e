//! Flags as data. The command line, its help and the checks of which flags fit a target are built from them.

/// A flag about the target.
#[derive(Debug)]
pub struct Flag {
    /// The flag, with its dashes.
    pub name: &'static str,
    /// Another name for it, without dashes.
    pub alias: Option<&'static str>,
    /// The value that follows it.
    pub value: Value,
    /// What it is about.
    pub scope: Scope,
    /// What it does, for `-h`: one line without a full stop.
    pub help: &'static str,
    /// What `--help` adds; may be empty.
    pub more: &'static str,
    /// A flag that must be given as well.
    pub requires: Option<&'static str>,
}

impl Flag {
    /// A flag with one name that needs no other.
    #[must_use]
    pub const fn new(name: &'static str, value: Value, scope: Scope, help: &'static str) -> Self {
        Self {
            name,
            alias: None,
            value,
            scope,
            help,
            more: "",
            requires: None,
        }
    }

    /// Adds a paragraph for `--help`.
    #[must_use]
    pub const fn with_more(mut self, more: &'static str) -> Self {
        self.more = more;
        self
    }

    /// Adds another name.
    #[must_use]
    pub const fn with_alias(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    /// Requires that the flag `other` be given as well.
    #[must_use]
    pub const fn with(mut self, other: &'static str) -> Self {
        self.requires = Some(other);
        self
    }

    /// The name without its dashes.
    #[must_use]
    pub fn long(&self) -> &'static str {
        self.name.trim_start_matches('-')
    }
}

/// What a flag is about. Decides which targets refuse the flag and which part of the help shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The service's address and the credentials. Refused for a server that Bucketload starts itself.
    Service,
    /// How content is sent. Also accepted for a server that Bucketload starts itself.
    Content,
    /// Which client performs the operations.
    Client,
    /// How files are read and written.
    Files,
}

/// Checks a value as the user typed it.
pub type Check = fn(&str) -> Result<(), String>;

/// The value that follows a flag. The first string of each variant is its name in the help.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// No value.
    Switch,
    /// Any text.
    Text(&'static str),
    /// URLs, separated by commas; the flag may be repeated.
    Urls(&'static str),
    /// Values separated by commas, each checked; the flag may be repeated.
    List(&'static str, Check),
    /// A file that the driver reads; the coordinator sends its contents to agents.
    File(&'static str),
    /// A path that means the same on every host.
    Path(&'static str),
    /// One of several names, each with its meaning.
    Choice(&'static str, &'static [(&'static str, &'static str)]),
    /// Text that is checked.
    Checked(&'static str, Check),
}

impl Value {
    /// Checks that `text` parses as a `T`.
    ///
    /// # Errors
    /// The parser's message if it does not.
    pub fn parses<T>(text: &str) -> Result<(), String>
    where
        T: std::str::FromStr<Err: std::fmt::Display>,
    {
        match text.parse::<T>() {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
