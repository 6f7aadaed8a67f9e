//! `bucketload kvcache`: language models, and the plan.

mod models;
mod plan;
mod users;

pub(crate) use models::{ModelShape, Models};
pub(crate) use plan::{CacheOptions, MODEL, plan};
pub(crate) use users::{is_of_users, workload};
