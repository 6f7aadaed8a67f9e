//! The workload language: what a user writes, in TOML or on the command line.
//!
//! A file is parsed into a tree that records lines and columns ([`WorkloadFile`]), and the tree is decoded
//! into typed tables without defaults ([`WorkloadSpec`]). [`crate::resolve`] layers profiles and command-line
//! settings over the tree and turns the result into a [`bucketload_core::plan::Plan`]. Every problem names
//! file, line, column, field and remedy ([`SpecError`]). Decoding continues after a problem, so one pass
//! reports all of them.

mod builtin;
mod checkpoint;
pub(crate) mod decode;
mod drill;
mod error;
mod file;
mod jobs;
mod kvcache;
pub mod law;
mod named;
pub(crate) mod node;
mod quantity;
mod schema;
mod source;
pub(crate) mod suggest;
mod tables;
mod train;

pub use builtin::{BUILTIN_DRILLS, BUILTIN_WORKLOADS};
pub use checkpoint::{
    CheckpointPhase, CheckpointSpec, ExtensionSpec, FractionSpec, LanguageModelSpec, LatestSpec,
    ModelSpec, fraction, known_models, language_models,
};
pub use drill::{ByteRate, DirectionName, DrillSpec, FaultName, FaultSpec};
pub use error::{Problem, SpecError};
pub use file::WorkloadFile;
pub use jobs::{FactorSpec, JobsSpec, ModelName, OpsRange, Pace, Stages};
pub use kvcache::KvcacheSpec;
pub use named::Named;
pub use quantity::{ByteSize, Nanos, PerSecond, Share, Weight};
pub use schema::workload_schema;
pub use source::{Location, Snippet};
pub use suggest::closest;
pub use tables::{
    BucketsSpec, KeysetSpec, Mix, MixSpec, NotFound, PhaseLimits, PhaseSpec, RetrySpec, RoundsSpec,
    ScaleSpec, StopSpec, TargetSpec, WorkSpec, WorkloadSpec,
};

pub use train::{ReadMode, TrainSpec};

pub(crate) use error::Errors;
pub(crate) use file::decode as decode_workload;
pub(crate) use law::size::check_weights;
pub(crate) use named::is_name;
pub(crate) use source::{Origin, Source};
