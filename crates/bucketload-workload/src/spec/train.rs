//! Training in a workload file: the table `train` of a work.

use schemars::JsonSchema;

use super::decode::{decode_variants, spec_table};
use super::quantity::{ByteSize, Nanos, Share};

spec_table! {
    /// Accelerators that compute on batches of samples, which their readers fetch meanwhile.
    pub struct TrainSpec {
        /// Number of accelerators, over all agents. Default: 1.
        pub accelerators: Option<u32>,
        /// Samples per batch.
        pub batch: Option<u64>,
        /// Time that an accelerator computes on a batch.
        pub computation: Option<Nanos>,
        /// Readers per accelerator. Default: 4.
        pub readers: Option<u32>,
        /// Batches that the readers of an accelerator may be ahead of it, divided among them and rounded up; 0
        /// for two per reader. Default: 2.
        pub prefetch: Option<u32>,
        /// Passes over the data set. Default: 5.
        pub epochs: Option<u32>,
        /// Most steps of an epoch. Default: as many as the data set has.
        pub steps: Option<u64>,
        /// Samples per object. Default: 1.
        pub samples_per_object: Option<u64>,
        /// Nominal bytes of a sample. Default: the mean size of an object, divided by its samples.
        pub record: Option<f64>,
        /// How objects are read: "whole" (the default), "ranges" (one after another, as far as a batch needs
        /// them) or "columns" (a range per column chunk).
        pub read: Option<ReadMode>,
        /// Bytes per request, for "ranges". Default: 8 MiB.
        pub range_size: Option<ByteSize>,
        /// Bytes of each column that is read, for "columns".
        pub columns: Option<Vec<ByteSize>>,
        /// Bytes of a row with all its columns, for "columns". Default: the nominal bytes of a sample.
        pub row: Option<ByteSize>,
        /// Rows of a row group, for "columns". Default: 6144.
        pub row_group: Option<u64>,
        /// Accelerator utilisation that passes. Default: 90%.
        pub au: Option<Share>,
    }
}

/// How training reads objects.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, JsonSchema, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ReadMode {
    /// One request per object.
    Whole,
    /// Consecutive ranges.
    Ranges,
    /// A range per column chunk.
    Columns,
}

decode_variants!(ReadMode);
