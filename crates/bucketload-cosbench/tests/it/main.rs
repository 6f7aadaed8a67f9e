//! COSBench workload files (reading, validation, expansion) and the COSBench archive.

mod artifacts;
mod files;
mod fuzz;
mod samples;
