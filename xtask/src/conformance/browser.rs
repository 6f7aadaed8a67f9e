//! The report in a real browser: headless Chromium loads the page from disk, shows it, and runs its script.

use std::path::Path;

use crate::own::{TempDir, bucketload, call};
use crate::sh::{Result, cmd, need_programs, output, run};

/// Runs the newcomer's command for a moment and opens its report.
pub(crate) fn all() -> Result {
    need_programs(&[("chromium", "chromium")])?;
    let dir = TempDir::new("browser")?;
    let out = dir.file("run");
    let args = [
        "run",
        "online-service",
        "--duration",
        "8s",
        "--objects",
        "400",
        "--out",
        &out,
        "--quiet",
    ];
    call(&mut bucketload(&args)?)?.expect_code(0)?;
    open(&dir.path().join("run/report.html"), 6)
}

/// Fails unless the page has at least `charts` charts and its script ran to its end, which adds a line for values to
/// those with scales.
pub(crate) fn open(page: &Path, charts: u32) -> Result {
    let url = format!("file://{}", page.display());
    let profile = TempDir::new("chromium")?;
    let user_data = format!("--user-data-dir={}", profile.file("profile"));
    let base = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        &user_data,
    ];
    let dom = output(&mut cmd(
        "chromium",
        [
            &base[..],
            &["--virtual-time-budget=3000", "--dump-dom", &url],
        ]
        .concat(),
    ))?;
    let count = |element: &str| dom.matches(element).count();
    let (drawn, tips) = (count("<svg class=\"chart\""), count("<div class=\"tip\">"));
    if drawn < charts as usize || tips == 0 {
        return Err(format!(
            "{}: {drawn} charts, {tips} of them with values under the pointer",
            page.display()
        ));
    }
    let picture = format!("--screenshot={}", page.with_extension("png").display());
    run(&mut cmd(
        "chromium",
        [&base[..], &["--window-size=1240,4200", &picture, &url]].concat(),
    ))
}
