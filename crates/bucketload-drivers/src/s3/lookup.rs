//! Looks up settings in the environment and the chosen profile.

use std::path::{Path, PathBuf};

use super::discover::S3Overrides;
use super::profile::{Field, ProfileFile, Section};
use crate::http::config::{ConfigError, Origin, Source};

/// A value and where it came from, if it is set.
pub(super) type Setting = Option<(String, Source)>;

/// The sources of settings.
pub(super) struct Finder<'a> {
    pub(super) env: &'a dyn Fn(&str) -> Option<String>,
    pub(super) home: Option<&'a Path>,
    pub(super) config: ProfileFile,
    shared: ProfileFile,
    profile: String,
}

impl<'a> Finder<'a> {
    pub(super) fn open(
        overrides: &S3Overrides,
        env: &'a dyn Fn(&str) -> Option<String>,
        home: Option<&'a Path>,
    ) -> Result<(Self, Origin), ConfigError> {
        let file = |name: &str, default: &str| {
            let path = match env(name).filter(|v| !v.is_empty()) {
                Some(path) => Some(expand_home(&path, home)),
                None => home.map(|home| home.join(".aws").join(default)),
            };
            path.map_or_else(
                || Ok(ProfileFile::default()),
                |path| ProfileFile::read(&path),
            )
        };
        let config = file("AWS_CONFIG_FILE", "config")?;
        let shared = file("AWS_SHARED_CREDENTIALS_FILE", "credentials")?;
        let named = |name: &'static str| {
            let value = env(name).filter(|v| !v.is_empty());
            value.map(|value| (value, Source::Env(name)))
        };
        let (profile, source) = match &overrides.profile {
            Some(profile) => (profile.clone(), Source::Flag("--profile")),
            None => named("AWS_PROFILE")
                .or_else(|| named("AWS_DEFAULT_PROFILE"))
                .unwrap_or_else(|| ("default".to_owned(), Source::Default)),
        };
        let finder = Self {
            env,
            home,
            config,
            shared,
            profile,
        };
        if source != Source::Default && finder.profile_sections().next().is_none() {
            let names = finder.profile_names().join(", ");
            let known = if names.is_empty() {
                "no profile exists".to_owned()
            } else {
                format!("known profiles are {names}")
            };
            return Err(ConfigError::new(
                source.to_string(),
                format!("there is no profile `{}`", finder.profile),
                format!("{known}; add it to ~/.aws/config or choose another"),
            ));
        }
        let origin = Origin {
            name: "profile",
            value: finder.profile.clone(),
            source,
        };
        Ok((finder, origin))
    }

    /// The profile's sections with their files, credentials file first.
    pub(super) fn profile_sections(&self) -> impl Iterator<Item = (&ProfileFile, &Section)> {
        let prefixed = format!("profile {}", self.profile);
        let config = self.config.section(&prefixed).or_else(|| {
            // Only `default` may omit the word `profile`.
            (self.profile == "default")
                .then(|| self.config.section("default"))
                .flatten()
        });
        let shared = self
            .shared
            .section(&self.profile)
            .map(|s| (&self.shared, s));
        shared.into_iter().chain(config.map(|s| (&self.config, s)))
    }

    fn profile_names(&self) -> Vec<String> {
        let config = self
            .config
            .sections
            .iter()
            .filter_map(|s| match s.title.as_str() {
                "default" => Some("default".to_owned()),
                title => title.strip_prefix("profile ").map(str::to_owned),
            });
        let mut names: Vec<_> = config
            .chain(self.shared.sections.iter().map(|s| s.title.clone()))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    pub(super) fn env(&self, name: &'static str) -> Setting {
        let value = (self.env)(name).filter(|v| !v.is_empty())?;
        Some((value, Source::Env(name)))
    }

    pub(super) fn profile_value(&self, name: &str) -> Setting {
        self.profile_sections().find_map(|(file, section)| {
            let field = section.get(name)?;
            Some((field.value.clone(), source_of(file, section, field)))
        })
    }

    pub(super) fn profile_s3_value(&self, name: &str) -> Setting {
        self.profile_sections().find_map(|(file, section)| {
            let field = section.nested("s3", name)?;
            Some((field.value.clone(), source_of(file, section, field)))
        })
    }
}

pub(super) fn source_of(file: &ProfileFile, section: &Section, field: &Field) -> Source {
    Source::File(file.place(section, field))
}

/// Expands a leading `~/`.
pub(super) fn expand_home(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}
