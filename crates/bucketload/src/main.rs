//! Runs the command line with the drivers of this build.

use std::process::ExitCode;

fn main() -> ExitCode {
    bucketload_cli::main(&bucketload::REGISTRY)
}
