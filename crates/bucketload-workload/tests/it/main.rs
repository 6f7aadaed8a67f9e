//! The workload language and the plans that come of it, seen from outside.

mod buckets;
mod crews;
mod errors;
mod jobs;
mod language;
mod scenarios;
mod schema;
