//! Runs rare or long operations in memory that the thread keeps, so sessions need no room for them.

pub(crate) use bucketload_wire::park;
