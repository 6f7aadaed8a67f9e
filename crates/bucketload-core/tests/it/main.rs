//! Tests of generators and statistics through the public interface.

mod comparison;
mod generate_arrivals;
mod generate_common;
mod generate_objects;
mod generate_ops;
mod generate_popularity;
mod generate_shares;
mod generate_sizes;
