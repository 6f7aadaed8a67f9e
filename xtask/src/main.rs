//! Development tasks of Bucketload.
fn main() {}
