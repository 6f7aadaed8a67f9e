//! Where stores keep the objects of a run.

use std::path::PathBuf;

use bucketload_core::driver::DriverFacts;

use crate::OpenError;

/// Told with the index of a key and the name of a node that holds it.
pub type Found<'a> = &'a mut dyn FnMut(usize, &str);

/// A store that tells where objects lie.
pub trait Locate {
    /// Tells where the objects `keys` of `bucket` lie: calls `found` with the index of a key and the name
    /// of a node, once per copy, the copy that serves reads first. An object that is not there has none.
    ///
    /// # Errors
    /// When the store cannot be asked.
    fn locate(&mut self, bucket: &str, keys: &[String], found: Found<'_>) -> Result<(), OpenError>;
}

/// How a Ceph cluster is asked.
pub struct CephStore {
    /// Its configuration file.
    pub conf: Option<PathBuf>,
    /// The pool of the objects.
    pub pool: String,
    /// The bucket's marker, where it is known.
    pub marker: Option<String>,
    /// Whether copies that serve no reads are told as well.
    pub all_copies: bool,
}

/// Where the ring of a Swift cluster is read from.
pub struct RingStore {
    /// The object ring.
    pub ring: PathBuf,
    /// `swift.conf`.
    pub conf: PathBuf,
    /// The account, where it is known.
    pub account: Option<String>,
}

type Opened = Result<Box<dyn Locate>, OpenError>;

/// How each kind of store is asked.
pub struct Locators {
    /// Ceph; gets the bucket.
    pub ceph: fn(&CephStore, &str) -> Opened,
    /// HDFS: the addresses of name nodes that were given, and the target of the run in words.
    pub hdfs: fn(&[String], &str) -> Opened,
    /// SeaweedFS: filer and master, where they were given, and what the run's driver said.
    pub seaweedfs: fn(Option<&str>, Option<&str>, &DriverFacts) -> Opened,
    /// Swift; gets what the run's driver said.
    pub swift: fn(&RingStore, &DriverFacts) -> Opened,
}
