//! The steps of continuous integration.

use crate::sh::{Result, cargo, root, run, step};
use crate::{conformance, deps, examples, files, gates, manual, program};

/// Everything that must hold for a change to land.
pub(crate) fn all() -> Result {
    step("lint", lint)?;
    step("test", test_beside_builds)?;
    step("deps", deps::check)?;
    step("documents and untimed conformance", beside)?;
    step("gates", || gates::all(&[]))?;
    step("conformance", conformance::alone)
}

/// Checks the documents and, at the same time, runs the conformance parts that check no times: those wait more than
/// they compute.
///
/// # Errors
/// All failures, once both have ended.
fn beside() -> Result {
    std::thread::scope(|scope| {
        let parts = scope.spawn(conformance::beside);
        let documents = step("docs", || docs(&[]))
            .and_then(|()| step("manual", || manual::main(&[])))
            .and_then(|()| step("examples", || examples::main(&[])));
        let parts = parts.join().map_err(|_| "panicked".to_owned())?;
        documents.and(parts)
    })
}

/// Format and clippy with warnings denied, including the features that only packages have.
pub(crate) fn lint() -> Result {
    format("--check")?;
    run(&mut cargo(
        "clippy --workspace --all-targets --features bucketload/hdfs --locked -- -D warnings",
    ))
}

/// Formats all sources; with `--check`, fails if that would change one. The models' files are named because cargo fmt
/// does not see modules that a macro declares.
pub(crate) fn format(check: &str) -> Result {
    let models = root().join("models");
    let files = files::below(&models)?;
    let sources = files.iter().map(|file| models.join(file));
    let sources = sources.filter(|file| file.extension().is_some_and(|kind| kind == "rs"));
    run(cargo(&format!("fmt --all {check} --")).args(sources))
}

/// The tests that need nothing but the toolchain.
pub(crate) fn test() -> Result {
    run(&mut cargo("test --workspace --locked"))
}

/// Runs the tests and, at the same time with the lowest priority, the builds that later steps need: a release build
/// takes the cores for a quarter of an hour, and tests wait more than they compute.
///
/// # Errors
/// All failures, once both have ended.
fn test_beside_builds() -> Result {
    run(&mut cargo("test --workspace --locked --no-run"))?;
    std::thread::scope(|scope| {
        let builds = scope.spawn(|| {
            // Applies to this thread and the processes that it starts.
            rustix::process::setpriority_process(None, 19).map_err(|e| e.to_string())?;
            program::program()?;
            manual::need_mdbook()
        });
        let tested = test();
        let built = step("builds", || {
            builds.join().map_err(|_| "panicked".to_owned())?
        });
        tested.and(built)
    })
}

/// Builds the documentation; `--open` shows it.
pub(crate) fn docs(args: &[String]) -> Result {
    // Includes an example, because only then does cargo use the features of the tests and of clippy.
    let targets = ["--lib", "--bins", "--example", "generate_cost"];
    let mut command = cargo("doc --workspace --no-deps --locked");
    command.args(targets);
    command.args(args).env("RUSTDOCFLAGS", "-D warnings");
    run(&mut command)
}
