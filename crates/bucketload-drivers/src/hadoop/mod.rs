//! Code that the two HDFS drivers share.
//!
//! ```text
//! semantics                 meaning of the operations on HDFS
//! settings ── site          user and layout of files; Hadoop's own configuration files
//! path                      bucket and key as a path, and the keys that HDFS cannot store
//! exception                 a Java exception of the cluster as an [`OpError`](bucketload_core::error::OpError)
//! walk                      listings: all files under a prefix, in order, page by page
//! listing                   listings for operations and for the control plane
//! prune                     removal of empty directories
//! ```
//!
//! HDFS is a tree of directories, not a map of keys. A bucket is a directory below the driver's root, and
//! the key `a/b` is the file `b` in the bucket's directory `a`. `docs/drivers/hdfs.md` and the conformance
//! suite's quirks describe the consequences.

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
