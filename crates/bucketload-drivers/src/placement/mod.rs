//! Finds out which nodes hold an object: computes it from maps of the running store ([`groups`], [`ring`]), or asks the
//! store.
//!
//! Each kind of store implements [`bucketload_target::Locate`].

use bucketload_target::{Locators, OpenError};
use tokio::runtime::{Builder, Runtime};

pub(crate) mod ceph;
pub mod groups;
pub(crate) mod hdfs;
pub mod ring;
pub(crate) mod seaweedfs;
pub(crate) mod swift;

/// Opens each kind of store.
pub const LOCATORS: Locators = Locators {
    ceph: |store, bucket| Ok(Box::new(ceph::open(store, bucket)?)),
    hdfs: |urls, target| Ok(Box::new(hdfs::open(urls, target)?)),
    seaweedfs: |filer, master, run| Ok(Box::new(seaweedfs::open(filer, master, run)?)),
    swift: |store, run| Ok(Box::new(swift::open(store, run)?)),
};

/// The runtime for requests to a store.
fn runtime() -> Result<Runtime, OpenError> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| OpenError::Aborted(e.to_string()))
}
