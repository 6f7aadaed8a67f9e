//! Rare or long operations in memory that the thread keeps, so that sessions that never perform one
//! have no room for them.

pub(crate) use bucketload_wire::park;
