//! The settings of a target: flags by name, and variables that come with a workload.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use bucketload_core::driver::AnyDriver;
use serde::{Deserialize, Serialize};

use crate::{Dialect, Flag, Origin, Source};

/// Why a target cannot be opened, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// A setting is wrong.
    #[error("{0}")]
    Usage(String),
    /// The target refuses or cannot be reached.
    #[error("{0}")]
    Target(String),
    /// Something on this machine is missing.
    #[error("{0}")]
    Aborted(String),
}

impl OpenError {
    /// A wrong setting.
    pub fn usage(text: impl ToString) -> Self {
        Self::Usage(text.to_string())
    }

    /// A target that refuses.
    pub fn target(text: impl ToString) -> Self {
        Self::Target(text.to_string())
    }
}

/// The flags that were given, with their values. A switch has an empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    values: BTreeMap<String, Vec<String>>,
    /// Settings that come with a workload. They take precedence over the environment.
    pub given: Given,
    /// Where COSBench's `localwrite` writes files.
    pub local_files: Option<PathBuf>,
    /// Whether only agents write there, so that this process needs no such directory.
    #[serde(default)]
    pub local_files_on_agents: bool,
    /// What the store does otherwise than its API says.
    #[serde(default, skip_serializing_if = "Dialect::is_empty")]
    pub dialect: Dialect,
    /// Flags that the command chose because the user did not.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    chosen: BTreeSet<String>,
}

impl Settings {
    /// True if `flag` was given.
    #[must_use]
    pub fn has(&self, flag: &Flag) -> bool {
        self.values.contains_key(flag.name)
    }

    /// The values of `flag` as typed; empty unless it was given.
    #[must_use]
    pub fn all(&self, flag: &Flag) -> &[String] {
        self.values.get(flag.name).map_or(&[], Vec::as_slice)
    }

    /// The first value of `flag` as typed.
    #[must_use]
    pub fn get(&self, flag: &Flag) -> Option<&str> {
        self.all(flag).first().map(String::as_str)
    }

    /// As [`Self::get`], owned.
    #[must_use]
    pub fn text(&self, flag: &Flag) -> Option<String> {
        self.get(flag).map(str::to_owned)
    }

    /// As [`Self::get`], as a path.
    #[must_use]
    pub fn path(&self, flag: &Flag) -> Option<PathBuf> {
        self.get(flag).map(PathBuf::from)
    }

    /// All values of `flag`, joined with commas.
    #[must_use]
    pub fn joined(&self, flag: &Flag) -> Option<String> {
        self.has(flag).then(|| self.all(flag).join(","))
    }

    /// The first value of `flag`, parsed.
    ///
    /// # Errors
    /// When it does not parse as a `T`.
    pub fn parse<T>(&self, flag: &Flag) -> Result<Option<T>, OpenError>
    where
        T: FromStr<Err: std::fmt::Display>,
    {
        let wrong = |e| OpenError::Usage(format!("{}: {e}", flag.name));
        self.get(flag).map(str::parse).transpose().map_err(wrong)
    }

    /// All values of `flag`, parsed.
    ///
    /// # Errors
    /// When one does not parse as a `T`.
    pub fn parse_all<T>(&self, flag: &Flag) -> Result<Vec<T>, OpenError>
    where
        T: FromStr<Err: std::fmt::Display>,
    {
        let wrong = |e| OpenError::Usage(format!("{}: {e}", flag.name));
        let values = self.all(flag).iter().map(|text| text.parse());
        values.collect::<Result<_, _>>().map_err(wrong)
    }

    /// Sets `flag`; a switch has no values.
    pub fn set(&mut self, flag: &Flag, values: impl IntoIterator<Item: Into<String>>) {
        let values = values.into_iter().map(Into::into).collect();
        self.values.insert(flag.name.to_owned(), values);
    }

    /// Sets `flag` to the default of the command, unless the user gave it.
    pub fn choose(&mut self, flag: &Flag, value: impl Into<String>) {
        if !self.has(flag) {
            self.set(flag, [value]);
            self.chosen.insert(flag.name.to_owned());
        }
    }

    /// Turns the switch `flag` on.
    pub fn switch_on(&mut self, flag: &Flag) {
        self.set(flag, [] as [&str; 0]);
    }

    /// These settings, with the dialect's values for those of `flags` that were not given. For drivers whose flags no
    /// environment variable stands for.
    #[must_use]
    pub fn with_dialect(&self, flags: &[&Flag]) -> Self {
        let mut all = self.clone();
        for flag in flags {
            if let (false, Some((value, _))) = (self.has(flag), self.dialect.get(flag)) {
                all.set(flag, [value]);
            }
        }
        all
    }

    /// `origins` of settings [`Self::with_dialect`]: what was not given as a flag comes from the dialect, or is the
    /// default of the command.
    #[must_use]
    pub fn trace(&self, mut origins: Vec<Origin>) -> Vec<Origin> {
        for origin in &mut origins {
            if let Source::Flag(name) = origin.source
                && self.chosen.contains(name)
            {
                origin.source = Source::Default;
            } else if let Source::Flag(name) = origin.source
                && !self.values.contains_key(name)
                && let Some((_, line)) = self.dialect.settings.get(name)
            {
                origin.source = Source::Dialect(format!("{}:{line}", self.dialect.file));
            }
        }
        origins
    }

    /// These settings, overridden by those given in `other`.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.values.extend(other.values.clone());
        if other.given != Given::default() {
            all.given = other.given.clone();
        }
        if other.local_files.is_some() {
            all.local_files.clone_from(&other.local_files);
            all.local_files_on_agents = other.local_files_on_agents;
        }
        if !other.dialect.is_empty() {
            all.dialect = other.dialect.clone();
        }
        all
    }
}

/// Settings that stand in for environment variables; `None` hides a variable. Values may be secrets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given(BTreeMap<String, Option<String>>);

impl Given {
    /// Settings by variable name.
    #[must_use]
    pub fn new(settings: Vec<(&'static str, Option<String>)>) -> Self {
        let settings = settings.into_iter();
        Self(settings.map(|(n, value)| (n.to_owned(), value)).collect())
    }

    /// The value to use for the variable `name`; `Some(None)` if it is hidden.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Option<&str>> {
        self.0.get(name).map(Option::as_deref)
    }

    /// Replaces the value of `name` if it has one.
    pub fn replace(&mut self, name: &str, value: &str) {
        if let Some(Some(known)) = self.0.get_mut(name) {
            value.clone_into(known);
        }
    }
}

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// A request to open a driver.
pub struct OpenRequest<'a> {
    /// The flags.
    pub settings: &'a Settings,
    /// Looks up a variable: first among those that come with the workload, then in the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The home folder, for configuration files.
    pub home: Option<&'a Path>,
    /// `HOST:PORT` from the URL, if it has one.
    pub server: Option<&'a str>,
    /// The directory from the URL; empty if it has none.
    pub directory: &'a Path,
    /// How many of the service's endpoints to use; `None` for all.
    pub endpoints: Option<usize>,
    /// The driver of local files, for operations of a service's session that write files.
    pub files: Option<AnyDriver>,
}

impl OpenRequest<'_> {
    /// Cuts the list down to [`Self::endpoints`].
    ///
    /// # Errors
    /// When the list is shorter.
    pub fn limit<E>(&self, endpoints: &mut Vec<E>) -> Result<(), OpenError> {
        let Some(wanted) = self.endpoints else {
            return Ok(());
        };
        let known = endpoints.len();
        if wanted > known {
            return Err(OpenError::Usage(format!(
                "endpoints: {wanted} are wanted, {known} are known; name more with --endpoint-url"
            )));
        }
        endpoints.truncate(wanted);
        Ok(())
    }
}
