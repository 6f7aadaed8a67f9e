//! Where stores keep objects: from maps that are read from the running system ([`groups`], [`ring`]), or asked of it.
//!
//! Each kind of store is a [`bucketload_target::Locate`].

pub(crate) mod ceph;
pub mod groups;
pub(crate) mod hdfs;
pub mod ring;
pub(crate) mod seaweedfs;
pub(crate) mod swift;

/// How each kind of store is asked.
pub const LOCATORS: bucketload_target::Locators = bucketload_target::Locators {
    ceph: |store, bucket| Ok(Box::new(ceph::open(store, bucket)?)),
    hdfs: |urls, target| Ok(Box::new(hdfs::open(urls, target)?)),
    seaweedfs: |filer, master, run| Ok(Box::new(seaweedfs::open(filer, master, run)?)),
    swift: |store, run| Ok(Box::new(swift::open(store, run)?)),
};
