//! Command-line settings that replace fields of a workload.

use std::sync::Arc;

use crate::spec::SpecError;

/// Command-line settings, in the order in which they apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The profile to use instead of the workload's default.
    pub profile: Option<String>,
    /// The settings; later ones replace earlier ones.
    pub settings: Vec<Override>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    pub(super) field: Field,
    pub(super) value: String,
    /// The flag as typed, for messages.
    pub(super) flag: Arc<str>,
}

/// The target of a setting. Named settings apply everywhere the quantity occurs, so they work with any
/// workload.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Field {
    /// The field at a dotted path, such as `phases.run.duration`.
    #[strum(serialize = "set")]
    Path(String),
    /// Arrival process of the measuring phases; makes them open loops.
    Arrival,
    /// Rate of the measuring phases; makes closed loops open ones with Poisson arrivals.
    Rate,
    /// Workers of the measuring phases; makes open loops closed ones.
    Workers,
    /// Think time of closed loops.
    Think,
    /// Cap on operations in flight of open loops.
    MaxInFlight,
    /// Time limit of the measuring phases.
    Duration,
    /// Limit of operations of the measuring phases.
    Ops,
    /// Limit of bytes of the measuring phases.
    Bytes,
    /// The operations and their weights, such as `get=70,put=30`.
    Mix,
    /// Sizes of all written objects.
    Size,
    /// Number of objects of every prepared key set; not scaled.
    Objects,
    /// Key law of operations on existing objects.
    Keys,
    /// The seed.
    Seed,
    /// The scale.
    Scale,
    /// Whether to verify the data read.
    Verify,
    /// The consistency oracle.
    Oracle,
    /// The timeout.
    Timeout,
    /// The content of objects.
    Payload,
    /// Whether to keep what the run created.
    Keep,
}

impl Override {
    /// A setting given by its flag. Values are written as in a workload file, without the outer quotes.
    #[must_use]
    pub fn new(field: Field, value: &str) -> Self {
        let name = <&'static str>::from(&field);
        let flag = match (&field, value) {
            (Field::Path(path), _) => format!("--{name} {path}={value}"),
            // Switches without a value on the command line.
            (Field::Verify | Field::Oracle | Field::Keep, "true") => format!("--{name}"),
            _ => format!("--{name} {value}"),
        };
        Self {
            field,
            value: value.to_owned(),
            flag: flag.into(),
        }
    }

    /// A setting given by the flag `flag`, which messages show.
    #[must_use]
    pub fn typed(field: Field, value: &str, flag: &str) -> Self {
        Self {
            field,
            value: value.to_owned(),
            flag: flag.into(),
        }
    }

    /// A setting written as `PATH=VALUE`, such as `phases.run.duration=30s`.
    ///
    /// # Errors
    /// If there is no `=` or the path is not a sequence of names separated by dots.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        const REMEDY: &str = "write --set PATH=VALUE, such as --set phases.run.duration=30s";
        let flag = || format!("--set {text}");
        let Some((path, value)) = text.split_once('=') else {
            return Err(SpecError::flag(flag(), "it contains no `=`", REMEDY));
        };
        let path = path.trim();
        let is_name = |key: &str| crate::spec::is_name(key);
        if !path.split('.').all(is_name) {
            let message = format!("`{path}` is not the path of a field");
            return Err(SpecError::flag(flag(), message, REMEDY));
        }
        Ok(Self::new(Field::Path(path.to_owned()), value.trim()))
    }
}
