//! Bucketload, the benchmark for object storage.

#[allow(dead_code)]
mod cli;

fn main() {
    let _ = <cli::Cli as clap::Parser>::parse();
}
