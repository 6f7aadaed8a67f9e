//! The report in a real browser: headless Chromium loads the page from disk, shows it, and runs its script.

use std::path::Path;
use std::process::Command;

use crate::files::TempDir;
use crate::program::try_bucketload;
use crate::sh::{Result, cmd, ensure, need_programs, output, run, words};

/// Runs a newcomer's first command briefly and opens its report.
pub(crate) fn all() -> Result {
    need_programs(&[("chromium", "chromium")])?;
    let dir = TempDir::new("browser")?;
    let out = dir.file("run");
    try_bucketload(&format!(
        "run online-service --duration 8s --objects 400 --out {out} --quiet"
    ))?
    .expect_code(0)?;
    open(&dir.path().join("run/report.html"), 6)
}

/// Fails unless the page has at least `charts` charts and its script ran to the end. The script adds a line for
/// values to charts with scales.
pub(crate) fn open(page: &Path, charts: u32) -> Result {
    let profile = TempDir::new("chromium")?;
    let dump = "--virtual-time-budget=3000 --dump-dom";
    let dom = output(&mut chromium(page, &profile, dump))?;
    let count = |element: &str| dom.matches(element).count();
    let (drawn, tips) = (count("<svg class=\"chart\""), count("<div class=\"tip\">"));
    ensure(drawn >= charts as usize && tips > 0, || {
        let page = page.display();
        format!("{page}: {drawn} charts, {tips} of them with values under the pointer")
    })?;
    picture(page, &page.with_extension("png"), 1240, 4200)
}

/// Takes a picture of the first `height` pixels of a page that is `width` pixels wide.
///
/// # Errors
/// When Chromium fails.
pub(crate) fn picture(page: &Path, png: &Path, width: u32, height: u32) -> Result {
    let profile = TempDir::new("chromium")?;
    let line = format!(
        "--hide-scrollbars --window-size={width},{height} --screenshot='{}'",
        png.display()
    );
    run(&mut chromium(page, &profile, &line))
}

/// Headless Chromium on a page of this machine, with the flags in `line`.
fn chromium(page: &Path, profile: &TempDir, line: &str) -> Command {
    let mut command = cmd("chromium", words("--headless --no-sandbox --disable-gpu"));
    command
        .arg("--disable-dev-shm-usage")
        .arg(format!("--user-data-dir={}", profile.file("profile")))
        .args(words(line))
        .arg(format!("file://{}", page.display()));
    command
}
