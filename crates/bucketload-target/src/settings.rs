//! What was set about a target: flags by name, and variables that a workload brings with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use bucketload_core::driver::AnyDriver;
use serde::{Deserialize, Serialize};

use crate::Flag;

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

/// The flags that were given, with the texts after them. A switch has an empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    values: BTreeMap<String, Vec<String>>,
    /// Settings that a workload brings with it and that come before those of the environment.
    pub given: Given,
    /// Where COSBench's `localwrite` writes files.
    pub local_files: Option<PathBuf>,
}

impl Settings {
    /// Whether `flag` was given.
    #[must_use]
    pub fn has(&self, flag: &Flag) -> bool {
        self.values.contains_key(flag.name)
    }

    /// The texts after `flag`; none unless it was given.
    #[must_use]
    pub fn all(&self, flag: &Flag) -> &[String] {
        self.values.get(flag.name).map_or(&[], Vec::as_slice)
    }

    /// The text after `flag`.
    #[must_use]
    pub fn get(&self, flag: &Flag) -> Option<&str> {
        self.all(flag).first().map(String::as_str)
    }

    /// The text after `flag`, owned.
    #[must_use]
    pub fn text(&self, flag: &Flag) -> Option<String> {
        self.get(flag).map(str::to_owned)
    }

    /// The path after `flag`.
    #[must_use]
    pub fn path(&self, flag: &Flag) -> Option<PathBuf> {
        self.get(flag).map(PathBuf::from)
    }

    /// All texts after `flag`, separated by commas.
    #[must_use]
    pub fn joined(&self, flag: &Flag) -> Option<String> {
        self.has(flag).then(|| self.all(flag).join(","))
    }

    /// The value of `flag`.
    ///
    /// # Errors
    /// When its text is no `T`.
    pub fn parse<T>(&self, flag: &Flag) -> Result<Option<T>, OpenError>
    where
        T: FromStr<Err: std::fmt::Display>,
    {
        let wrong = |e| OpenError::Usage(format!("{}: {e}", flag.name));
        self.get(flag).map(str::parse).transpose().map_err(wrong)
    }

    /// The values of `flag`.
    ///
    /// # Errors
    /// When one of its texts is no `T`.
    pub fn parse_all<T>(&self, flag: &Flag) -> Result<Vec<T>, OpenError>
    where
        T: FromStr<Err: std::fmt::Display>,
    {
        let wrong = |e| OpenError::Usage(format!("{}: {e}", flag.name));
        let values = self.all(flag).iter().map(|text| text.parse());
        values.collect::<Result<_, _>>().map_err(wrong)
    }

    /// Sets `flag`; without texts a switch.
    pub fn set(&mut self, flag: &Flag, values: impl IntoIterator<Item: Into<String>>) {
        let values = values.into_iter().map(Into::into).collect();
        self.values.insert(flag.name.to_owned(), values);
    }

    /// Turns the switch `flag` on.
    pub fn switch_on(&mut self, flag: &Flag) {
        self.set(flag, [] as [&str; 0]);
    }

    /// These settings, replaced by those of `other` that were given.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.values.extend(other.values.clone());
        if other.given != Given::default() {
            all.given = other.given.clone();
        }
        if other.local_files.is_some() {
            all.local_files.clone_from(&other.local_files);
        }
        all
    }
}

/// Settings under the names of environment variables; `None` hides a variable. They may be secrets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given(BTreeMap<String, Option<String>>);

impl Given {
    /// Those of `settings`.
    #[must_use]
    pub fn new(settings: Vec<(&'static str, Option<String>)>) -> Self {
        let settings = settings.into_iter();
        Self(settings.map(|(n, value)| (n.to_owned(), value)).collect())
    }

    /// What stands for the variable `name`; `Some(None)` where it is hidden.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Option<&str>> {
        self.0.get(name).map(Option::as_deref)
    }

    /// Replaces the value of `name` where it has one.
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

/// What a driver is asked to open.
pub struct OpenRequest<'a> {
    /// The flags.
    pub settings: &'a Settings,
    /// Looks a variable up: those that a workload brings come before the environment's.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The home folder, for configuration files.
    pub home: Option<&'a Path>,
    /// `HOST:PORT`, where the URL names it.
    pub server: Option<&'a str>,
    /// The directory of a URL that names one; otherwise empty.
    pub directory: &'a Path,
    /// How many of the service's endpoints are used; `None` for all.
    pub endpoints: Option<usize>,
    /// The driver of files of this machine, for operations of a service's session that write some.
    pub files: Option<AnyDriver>,
}

impl OpenRequest<'_> {
    /// Keeps as many endpoints as are wanted.
    ///
    /// # Errors
    /// When there are fewer.
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
