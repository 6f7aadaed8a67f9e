//! The workload language and its plans, tested through the public interface.

mod buckets;
mod crews;
mod errors;
mod jobs;
mod language;
mod scenarios;
mod schema;
