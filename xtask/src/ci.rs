//! The steps of continuous integration.

use crate::sh::{Result, cargo, run, step};
use crate::{conformance, deps, gates, manual};

/// Everything that must hold for a change to land.
pub(crate) fn all() -> Result {
    step("lint", lint)?;
    step("test", test)?;
    step("deps", deps::check)?;
    step("docs", || docs(&[]))?;
    step("manual", || manual::main(&[]))?;
    step("gates", || gates::all(&[]))?;
    step("conformance", || conformance::all(&[]))
}

/// Format and clippy, warnings denied.
pub(crate) fn lint() -> Result {
    run(&mut cargo(["fmt", "--all", "--check"]))?;
    run(&mut cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))
}

/// The tests that need nothing but the toolchain.
pub(crate) fn test() -> Result {
    run(&mut cargo(["test", "--workspace", "--locked"]))
}

/// The documentation build; with `--open`, shows it.
pub(crate) fn docs(args: &[String]) -> Result {
    let mut command = cargo(["doc", "--workspace", "--no-deps", "--locked"]);
    command.args(args).env("RUSTDOCFLAGS", "-D warnings");
    run(&mut command)
}
