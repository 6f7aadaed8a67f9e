//! `bucketload kvcache`: language models, and the plan.

mod models;
mod plan;

pub(crate) use models::{ModelShape, Models};
pub(crate) use plan::{CacheOptions, plan};
