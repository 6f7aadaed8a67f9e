//! What `bucketload s3-hpc` sets side by side: `rows` says how each way to the objects is run and keeps the servers
//! that it needs, `gateway` starts one for libs3, `floor` measures a bare socket.

pub(crate) mod floor;
pub(crate) mod gateway;
pub(crate) mod rows;
