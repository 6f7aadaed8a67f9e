//! Bucketload, the benchmark for object storage: the command line of `bucketload-cli` and the list of the drivers that
//! it is given. Command line and drivers do not know each other, so a change of a driver compiles its crate and links
//! this one.

use bucketload_drivers::{azblob, engines, gcs, hadoop, placement, s3, seaweedfs, swift};
use bucketload_local::{libs3, null, posix};
use bucketload_target::Registry;

/// The drivers of this build. A further driver is a line here.
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
            "hdfs:// is not part of this build: use a package, build with `--features hdfs`, or reach the same files \
             by webhdfs://",
        ),
    ],
    absent_engines: engines::ABSENT,
    engine: engines::FLAGS,
    null: || null::NullDriver::new().into(),
    check_library: libs3::check,
    locators: placement::LOCATORS,
};
