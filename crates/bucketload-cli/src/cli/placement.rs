//! Flags of `bucketload placement`: one subcommand per kind of store.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand, ValueHint};

use super::values::{Choices, choice};

/// Look up which data nodes hold the objects of a run
///
/// Writes the file for `report --placement`: lines KEY,NODE, one per copy. The keys come from the run's
/// operation log (run --op-log), the nodes from the running store.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example:\n  bucketload run hotspot --target s3://bucket/p --op-log --out out\n  \
                  bucketload placement ceph out --out placement.csv\n  \
                  bucketload report out --placement placement.csv"
)]
pub(crate) struct PlacementArgs {
    /// Kind of store
    #[command(subcommand)]
    pub(crate) store: PlacementStore,
}

/// Kinds of stores.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum PlacementStore {
    /// Ceph's radosgw: the OSD that serves reads of each object
    Ceph(CephPlacement),
    /// SeaweedFS: the volume servers that hold the chunks of each file
    Seaweedfs(SeaweedPlacement),
    /// OpenStack Swift: the devices of the object ring
    Swift(SwiftPlacement),
    /// HDFS: the data nodes that hold the blocks of each file
    Hdfs(HdfsPlacement),
}

/// Flags of every kind of store.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlacementKeys {
    /// Run directory with an operation log
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,

    /// File to write (default: standard output)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,

    /// Bucket or container of the objects (default: that of the run)
    #[arg(long, value_name = "NAME")]
    pub(crate) bucket: Option<String>,
}

/// Flags of Ceph, which is asked through the tools `ceph` and `radosgw-admin`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CephPlacement {
    #[command(flatten)]
    pub(crate) keys: PlacementKeys,

    /// Configuration of the cluster (default: CEPH_CONF, else the tools' default)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ceph_conf: Option<PathBuf>,

    /// Pool of the objects' data
    #[arg(long, value_name = "NAME", default_value = "default.rgw.buckets.data")]
    pub(crate) pool: String,

    /// Marker that radosgw puts in front of the names of the bucket's objects (default: radosgw-admin is asked)
    #[arg(long, value_name = "TEXT")]
    pub(crate) marker: Option<String>,

    /// Which copies to write
    #[arg(long = "copies", action = ArgAction::Set, value_name = "WHICH", default_value = "primary", value_parser = choice(COPIES))]
    pub(crate) all_copies: bool,
}

/// Whether all copies of an object are written.
const COPIES: &Choices<bool> = &[
    ("primary", "The copy that serves reads", false),
    ("all", "All copies", true),
];

/// Flags of Swift.
#[derive(Clone, Debug, Args)]
pub(crate) struct SwiftPlacement {
    #[command(flatten)]
    pub(crate) keys: PlacementKeys,

    /// Object ring of the storage policy
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/swift/object.ring.gz",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) ring: PathBuf,

    /// Configuration with the cluster's hash prefix and suffix
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/swift/swift.conf",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) swift_conf: PathBuf,

    /// Account (default: that of the run's storage URL)
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
}

/// Flags of HDFS, whose name node is asked through WebHDFS.
#[derive(Clone, Debug, Args)]
pub(crate) struct HdfsPlacement {
    #[command(flatten)]
    pub(crate) keys: PlacementKeys,

    /// URL of the name node, such as http://host:9870 (default: that of the run if it used webhdfs://, else that
    /// of Hadoop's configuration files)
    #[arg(long, value_name = "URL", value_delimiter = ',', value_hint = ValueHint::Url)]
    pub(crate) endpoint_url: Vec<String>,
}

/// Flags of SeaweedFS. The objects must still exist, so the run needs --keep and --op-log.
#[derive(Clone, Debug, Args)]
pub(crate) struct SeaweedPlacement {
    #[command(flatten)]
    pub(crate) keys: PlacementKeys,

    /// URL of a filer (default: that of the run, else SEAWEEDFS_FILER_URL)
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) filer: Option<String>,

    /// URL of the master (default: SEAWEEDFS_MASTER_URL, else http://localhost:9333)
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) master: Option<String>,
}
