//! Workload language, generators and statistics, seen from outside.

mod comparison;
mod generate_arrivals;
mod generate_common;
mod generate_objects;
mod generate_ops;
mod generate_popularity;
mod generate_shares;
mod generate_sizes;
mod workload_buckets;
mod workload_errors;
mod workload_jobs;
mod workload_language;
mod workload_scenarios;
mod workload_schema;
