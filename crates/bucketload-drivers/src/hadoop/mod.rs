//! What the two drivers of HDFS share.
//!
//! ```text
//! semantics                 what operations mean here
//! settings ── site          where the name nodes are, who asks; Hadoop's own configuration files
//! path                      bucket and key as a path, and which keys HDFS cannot hold
//! exception                 a Java exception of the cluster as an [`OpError`](bucketload_core::error::OpError)
//! walk                      listings: all files under a prefix, in order, page by page
//! listing                   what operations and the control plane ask of a walk
//! prune                     directories that hold nothing any more
//! ```
//!
//! HDFS is a tree of directories, not a map of keys. A bucket is a directory below the driver's root,
//! and the key `a/b` is the file `b` in its directory `a`. What that changes is documented in
//! `docs/drivers/hdfs.md` and stands in the conformance suite's quirks.

mod descriptor;
pub(crate) mod exception;
pub(crate) mod listing;
pub(crate) mod path;
pub(crate) mod prune;
pub(crate) mod semantics;
pub(crate) mod settings;
pub(crate) mod site;
pub(crate) mod walk;

#[cfg(feature = "hdfs")]
pub use descriptor::HDFS;
pub use descriptor::WEBHDFS;
pub use settings::{FileSettings, HadoopOverrides};
