//! Flags as data: the command line, its help and the checks of which flag goes with which target are made from it.

/// A flag about the target.
#[derive(Debug)]
pub struct Flag {
    /// The flag, with its dashes.
    pub name: &'static str,
    /// Another name for it, without dashes.
    pub alias: Option<&'static str>,
    /// What follows it.
    pub value: Value,
    /// What it is about.
    pub scope: Scope,
    /// What it does, for `-h`: a line without a full stop.
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

    /// Says that the flag `other` must be given as well.
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

/// What a flag is about: it decides where the flag is refused and which part of the help shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Where a service is and who asks. Means nothing for a server of our own.
    Service,
    /// How content is sent. Means something for a server of our own, too.
    Content,
    /// Which client performs the operations.
    Client,
    /// How files are used.
    Files,
}

/// Checks the text of a value.
pub type Check = fn(&str) -> Result<(), String>;

/// What follows a flag. The first text is how help names it.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// Nothing.
    Switch,
    /// A text.
    Text(&'static str),
    /// URLs, separated by commas; the flag may be repeated.
    Urls(&'static str),
    /// Values separated by commas, each checked; the flag may be repeated.
    List(&'static str, Check),
    /// A file that the driver reads; agents get its contents.
    File(&'static str),
    /// A path that means the same on every host.
    Path(&'static str),
    /// One of some names, each with its meaning.
    Choice(&'static str, &'static [(&'static str, &'static str)]),
    /// A text that is checked.
    Checked(&'static str, Check),
}

impl Value {
    /// A check that `text` can be read as a `T`.
    ///
    /// # Errors
    /// Why it cannot.
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
