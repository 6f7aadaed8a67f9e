//! The workloads built into the program.

use super::error::SpecError;
use super::file::WorkloadFile;
use super::suggest;

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../workloads/", $name, ".toml")))),*]
    };
}

/// Name and text of every built-in workload, in listing order.
pub const BUILTIN_WORKLOADS: &[(&str, &str)] = builtin![
    "online-service",
    "big-data-analysis",
    "file-backup",
    "hotspot",
    "put",
    "get",
    "mixed",
    "range-get",
    "list",
    "head",
    "delete",
    "multipart",
    "one-byte",
    "single-stream",
    "multi-stream",
    "bulk-delete",
    "redownload",
    "cold-read",
    "smoke",
    "list-consistency",
    "bucket-provision",
    "ossperf",
    "study-grid",
    "s3-hpc",
];

macro_rules! drills {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../drills/", $name, ".toml")))),*]
    };
}

/// Name and text of every built-in drill, in listing order.
pub const BUILTIN_DRILLS: &[(&str, &str)] = drills![
    "slow-link",
    "narrow-link",
    "slow-connect",
    "black-hole",
    "half-open",
    "resets",
    "refused",
    "flapping",
    "throttled",
    "node-kill",
];

impl WorkloadFile {
    /// The built-in drill called `name`.
    ///
    /// # Errors
    /// If there is none; the error suggests the closest name.
    pub fn drill(name: &str) -> Result<Self, SpecError> {
        match BUILTIN_DRILLS.iter().find(|(known, _)| *known == name) {
            Some((name, text)) => Self::parse(&format!("{name}.toml"), text),
            None => {
                let names = BUILTIN_DRILLS.iter().map(|(name, _)| *name);
                let remedy = suggest::advice(name, names);
                let message = "there is no built-in drill with this name";
                Err(SpecError::flag(name, message, remedy))
            }
        }
    }

    /// The built-in workload called `name`.
    ///
    /// # Errors
    /// If there is none; the error suggests the closest name.
    pub fn builtin(name: &str) -> Result<Self, SpecError> {
        match BUILTIN_WORKLOADS.iter().find(|(known, _)| *known == name) {
            Some((name, text)) => Self::parse(&format!("{name}.toml"), text),
            None => {
                let names = BUILTIN_WORKLOADS.iter().map(|(name, _)| *name);
                let remedy = suggest::advice(name, names);
                let message = "there is no built-in workload with this name";
                Err(SpecError::flag(name, message, remedy))
            }
        }
    }
}
