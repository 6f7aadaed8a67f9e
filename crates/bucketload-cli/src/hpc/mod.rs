//! The access paths that `bucketload s3-hpc` compares: `rows` defines the rows and runs their servers, `gateway`
//! starts a gateway for libs3, `floor` measures a bare socket.

pub(crate) mod floor;
pub(crate) mod gateway;
pub(crate) mod rows;
