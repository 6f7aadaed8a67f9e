//! What `bucketload s3-hpc` sets side by side: `rows` says how each way to the objects is run and keeps the servers
//! that it needs, `floor` measures a bare socket.

pub(crate) mod floor;
pub(crate) mod rows;
