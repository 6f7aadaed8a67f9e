//! The report in a real browser: headless Chromium loads the page from disk, shows it, and runs its script.

use std::path::Path;

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
    let url = format!("file://{}", page.display());
    let profile = TempDir::new("chromium")?;
    let chromium = |line: &str| {
        let mut command = cmd("chromium", words("--headless --no-sandbox --disable-gpu"));
        command
            .arg("--disable-dev-shm-usage")
            .arg(format!("--user-data-dir={}", profile.file("profile")))
            .args(words(line))
            .arg(&url);
        command
    };
    let dom = output(&mut chromium("--virtual-time-budget=3000 --dump-dom"))?;
    let count = |element: &str| dom.matches(element).count();
    let (drawn, tips) = (count("<svg class=\"chart\""), count("<div class=\"tip\">"));
    ensure(drawn >= charts as usize && tips > 0, || {
        let page = page.display();
        format!("{page}: {drawn} charts, {tips} of them with values under the pointer")
    })?;
    let picture = page.with_extension("png");
    let picture = format!(
        "--window-size=1240,4200 --screenshot='{}'",
        picture.display()
    );
    run(&mut chromium(&picture))
}
