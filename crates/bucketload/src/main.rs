//! Hands the drivers to the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    bucketload_cli::main(&bucketload::REGISTRY)
}
