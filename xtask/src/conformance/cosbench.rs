//! COSBench workloads: ten million changed samples, none of which may make the parser panic.

use crate::own;
use crate::sh::{Result, cmd, run};

/// Inputs: what issue and specification ask for.
const INPUTS: &str = "10000000";

/// Runs the parser's fuzz example, built as it is shipped.
pub(crate) fn fuzz() -> Result {
    let fuzz = own::example("fuzz")?;
    run(&mut cmd(&fuzz.to_string_lossy(), [INPUTS]))
}
