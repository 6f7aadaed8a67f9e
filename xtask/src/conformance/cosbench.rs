//! COSBench workloads: ten million mutated samples must not make the parser panic.

use crate::program;
use crate::sh::{Result, cmd, run};

/// Number of inputs that the specification asks for.
const INPUTS: &str = "10000000";

/// Runs the parser's fuzz example in a release build.
pub(crate) fn fuzz() -> Result {
    let fuzz = program::example("fuzz")?;
    run(&mut cmd(&fuzz.to_string_lossy(), [INPUTS]))
}
