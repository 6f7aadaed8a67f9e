//! What a store does otherwise than its API says: settings for it, and operations that it does not perform.

use std::collections::BTreeMap;

use bucketload_core::op::OpClass;
use serde::{Deserialize, Serialize};

use crate::{Flag, Source};

/// A dialect as its file states it; empty without one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialect {
    /// The file, as the user named it; empty without one.
    pub file: String,
    /// Values by flag, each with its line. They take precedence over configuration files and defaults only.
    pub settings: BTreeMap<String, (String, u32)>,
    /// Operations that the store does not perform, each with the reason.
    pub refused: Vec<(OpClass, String)>,
}

impl Dialect {
    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.file.is_empty()
    }

    /// The value for `flag`, and where it stands.
    #[must_use]
    pub fn get(&self, flag: &Flag) -> Option<(String, Source)> {
        let (value, line) = self.settings.get(flag.name)?;
        let place = format!("{}:{line}", self.file);
        Some((value.clone(), Source::Dialect(place)))
    }
}
