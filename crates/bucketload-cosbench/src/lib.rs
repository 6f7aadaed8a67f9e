//! COSBench workload files: read, checked and expanded as COSBench itself does, with everything that it
//! would ignore or misunderstand without a word reported.
//!
//! ```text
//! XML ─ document (elements, attributes, places) ─ expand (inheritance, defaults, special works) ─► Workload
//!                    config (key=value;…)           operation, adapter, selector (what each may say)
//! Workload ─ write ─► workload-config.xml
//! what happened ─ artifacts ─► the files of COSBench's archive
//! ```
//!
//! COSBench checks ratios and end conditions when a workload is submitted, and everything else on the
//! drivers when a stage starts. Here all of it is checked at once, with the same outcome: what COSBench
//! accepts is accepted, what it would stop at is refused before anything runs.

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
pub use error::{Place, Rejection, Warning};
pub use expand::{Parsed, parse};
pub use model::{Auth, Division, Operation, Stage, Storage, Work, WorkKind, Workload};
pub use operation::{OperationKind, Target};
pub use selector::{Selector, SelectorError, Sizes, Slice, slice};
pub use write::workload_config;
