//! COSBench workloads: ten million changed samples, none of which may make the parser panic.

use crate::sh::{Result, cargo, run};

/// Inputs: what issue and specification ask for.
const INPUTS: &str = "10000000";

/// Runs the parser's fuzz example, built as it is shipped.
pub(crate) fn fuzz() -> Result {
    run(&mut cargo([
        "run",
        "--release",
        "--package",
        "bucketload-cosbench",
        "--example",
        "fuzz",
        "--",
        INPUTS,
    ]))
}
