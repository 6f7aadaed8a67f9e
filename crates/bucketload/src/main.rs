//! Bucketload, the benchmark for object storage.
fn main() {}
