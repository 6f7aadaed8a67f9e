//! Development tasks of Bucketload, run as `cargo xtask TASK`.
//!
//! `.ci/run` calls `ci`, which runs `lint`, `test`, `deps`, `docs`, `manual`, `examples`, `gates` and `conformance`.
//! Each task is a module; `sh` runs commands, `server` starts and stops the servers of `servers/`.

mod bench;
mod ci;
mod conformance;
mod deps;
mod dist;
mod examples;
mod features;
mod files;
mod gallery;
mod gates;
mod machine;
mod manual;
mod process;
mod program;
mod random;
mod server;
mod sh;
/// Shared with the tests of the runner.
#[path = "../../crates/bucketload-run/tests/common/watch.rs"]
mod watch;
mod weight;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask TASK

  ci            lint to conformance; what continuous integration runs
  fmt           formats all sources
  lint          rustfmt and clippy, warnings denied
  test          cargo test --workspace
  deps          dependency directions, licences and bans, one set of features
  docs          rustdoc with warnings denied
  manual        [--write] [--open]  the manual: generated pages, links, the book (--write updates the pages)
  examples      [PAGE ...] [--long]  the commands of README, manual and --help, run exactly as written
  gates         [NAME ...]  system calls, instructions, memory, lateness of the request path
  conformance   [PART ...]  real servers, real clients, the whole program
  bench         [ROW ...] [--repetitions N] [--write] [--before PROGRAM]  CPU time against wrk and iperf3, or another build
  bench drivers [--write]  CPU time of the native drivers against the S3 driver
  bench posix   [--directory DIR] [--repetitions N] [--write]  files against fio
  bench proxy   [--repetitions N] [--write]  what the idle fault line of a drill adds to a request
  bench ai      [ROW ...] [--repetitions N] [--write]  checkpoints, training, key-value caches: CPU time per GiB
  bench scale   [--scale N] [--write]  far more objects, operations and intervals than usual: CPU time and memory
  bench ranks   [--repetitions N] [--before PROGRAM] [--write]  ranks on files against bare system calls
  bench gateway [--repetitions N] [--write]  libs3 in the process and over the gateway, against files and versitygw
  bench libs3   [--repetitions N] [--write]  the libs3 library against files
  bench peers   [cost] [truth] [--tool NAME=PATH] [--get NAME=LINE] [--put NAME=LINE] [--quick] [--write]
                CPU time, memory and truth of other load generators
  bench apps    [--ior PATH] [--mdtest PATH] [--md-workbench PATH] [--io500 PATH] [--libs3 FILE] [--versitygw FILE] [--minio FILE]
                [--repetitions N] [--quick] [--write]  applications under libs3 and on files; our io500 and the real one
  gallery       [PICTURE ...]  the pictures of the gallery, from runs of today's program
  weight        [--quick] [--write]  what a build costs (--quick: nothing is compiled)
  dist          [--out DIR]  packages for users without a toolchain: .tar.gz, .deb, image, wheel, libs3, SBOM, checksums
  floor         reference clients for the benchmarks
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or_default();
    let outcome = match args.first().map(String::as_str) {
        Some("ci") => ci::all(),
        Some("fmt") => ci::format(""),
        Some("lint") => ci::lint(),
        Some("test") => ci::test(),
        Some("deps") => deps::check(),
        Some("docs") => ci::docs(rest),
        Some("manual") => manual::main(rest),
        Some("dist") => dist::main(rest),
        Some("examples") => examples::main(rest),
        Some("conformance") => conformance::all(rest),
        Some("gates") => gates::all(rest),
        Some("gallery") => gallery::main(rest),
        Some("bench") => bench::main(rest),
        Some("weight") => weight::main(rest),
        Some("floor") => bench::floor(rest),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
