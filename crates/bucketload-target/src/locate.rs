//! Which nodes of a store hold the objects of a run.

use std::path::PathBuf;

use bucketload_core::driver::DriverFacts;

use crate::OpenError;

/// Called with the index of a key and the name of a node that holds a copy of the object.
pub type OnCopy<'a> = &'a mut dyn FnMut(usize, &str);

/// Looks up which nodes hold an object.
pub trait Locate {
    /// Calls `on_copy` once per copy of each object in `keys`, starting with the copy that serves reads. Objects that
    /// do not exist are skipped.
    ///
    /// # Errors
    /// When the store does not answer.
    fn locate(
        &mut self,
        bucket: &str,
        keys: &[String],
        on_copy: OnCopy<'_>,
    ) -> Result<(), OpenError>;
}

/// How to reach a Ceph cluster.
pub struct CephStore {
    /// Its configuration file.
    pub conf: Option<PathBuf>,
    /// The pool that holds the objects.
    pub pool: String,
    /// The bucket's marker; `None` to look it up.
    pub marker: Option<String>,
    /// Whether to report copies that serve no reads.
    pub all_copies: bool,
}

/// The files that describe a Swift cluster's ring.
pub struct RingStore {
    /// The object ring.
    pub ring: PathBuf,
    /// `swift.conf`.
    pub conf: PathBuf,
    /// The account; `None` to take the run's.
    pub account: Option<String>,
}

type Opened = Result<Box<dyn Locate>, OpenError>;

/// Opens a [`Locate`] for each kind of store.
pub struct Locators {
    /// Ceph: the cluster and the bucket.
    pub ceph: fn(&CephStore, &str) -> Opened,
    /// HDFS: URLs of name nodes from the command line, and the run's target as the manifest shows it.
    pub hdfs: fn(&[String], &str) -> Opened,
    /// SeaweedFS: URLs of filer and master from the command line, and the facts of the run's driver.
    pub seaweedfs: fn(Option<&str>, Option<&str>, &DriverFacts) -> Opened,
    /// Swift: the ring, and the facts of the run's driver.
    pub swift: fn(&RingStore, &DriverFacts) -> Opened,
}
