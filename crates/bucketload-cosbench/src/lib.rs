//! COSBench workload files: read, validated and expanded as COSBench itself does. Everything that COSBench
//! would silently ignore or misinterpret is reported.
//!
//! ```text
//! XML ─ document (elements, attributes, locations) ─ expand (inheritance, defaults, special works) ─► Workload
//!                    config (key=value;…)           operation, adapter, selector (valid settings of each)
//! Workload ─ write ─► workload-config.xml
//! results ─ artifacts ─► the files of COSBench's archive
//! ```
//!
//! COSBench checks ratios and end conditions when a workload is submitted, and everything else on the drivers
//! when a stage starts. Here everything is checked at once with the same outcome: whatever COSBench accepts
//! is accepted, and whatever it would fail at is rejected before anything runs.

mod adapter;
pub mod artifacts;
mod config;
mod document;
mod error;
mod expand;
mod model;
mod operation;
mod selector;
mod write;

pub use adapter::{Adapter, Availability, auth_types, storage_types};
pub use config::{Config, Missing};
pub use error::{Location, Rejection, Warning};
pub use expand::{Parsed, parse};
pub use model::{ConfiguredAdapter, Division, Operation, Stage, Work, WorkKind, Workload};
pub use operation::{OperationKind, Target};
pub use selector::{Selector, SelectorError, Sizes};
pub use write::workload_config;
