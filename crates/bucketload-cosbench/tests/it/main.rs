//! COSBench workload files: read, checked, expanded; its archive.

mod artifacts;
mod files;
mod fuzz;
mod samples;
