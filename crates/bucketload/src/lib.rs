//! Bucketload, the benchmark for object storage: passes the list of drivers to the command line of `bucketload-cli`.
//! Command line and drivers do not depend on each other, so a change of a driver compiles only its crate and links this
//! one.

use bucketload_drivers::{azblob, engines, gcs, hadoop, placement, s3, seaweedfs, swift};
use bucketload_local::{libs3, null, posix};
use bucketload_target::Registry;

/// The drivers of this build. A new driver takes one line here.
pub static REGISTRY: Registry = Registry {
    drivers: &[
        &s3::DESCRIPTOR,
        &azblob::DESCRIPTOR,
        &gcs::DESCRIPTOR,
        &swift::DESCRIPTOR,
        &hadoop::WEBHDFS,
        #[cfg(feature = "hdfs")]
        &hadoop::HDFS,
        &seaweedfs::DESCRIPTOR,
        &libs3::DESCRIPTOR,
        &posix::DESCRIPTOR,
    ],
    absent: &[
        #[cfg(not(feature = "hdfs"))]
        (
            "hdfs",
            "hdfs:// is not part of this build: use a package, build with `--features hdfs`, or access the same files \
             through webhdfs://",
        ),
    ],
    absent_engines: engines::ABSENT,
    engine: engines::FLAGS,
    null: || null::NullDriver::new().into(),
    check_library: libs3::check,
    locators: placement::LOCATORS,
};
