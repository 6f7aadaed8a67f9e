//! The report in a real browser: headless Chromium loads the page from disk and runs its script.

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

/// Fails unless the page's script ran to its end and drew at least `charts` charts.
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
    let drawn = attribute(&dom, "data-charts")
        .and_then(|text| text.parse::<u32>().ok())
        .unwrap_or(0);
    if attribute(&dom, "data-ready") != Some("yes") || drawn < charts {
        return Err(format!(
            "{}: the page did not draw itself ({drawn} charts)",
            page.display()
        ));
    }
    let picture = format!("--screenshot={}", page.with_extension("png").display());
    run(&mut cmd(
        "chromium",
        [&base[..], &["--window-size=1240,4200", &picture, &url]].concat(),
    ))
}

fn attribute<'a>(dom: &'a str, name: &str) -> Option<&'a str> {
    let at = dom.find(&format!("{name}=\""))? + name.len() + 2;
    dom[at..].split('"').next()
}

#[cfg(test)]
mod tests {
    use super::attribute;

    #[test]
    fn attributes_are_found() {
        assert_eq!(
            attribute("<body data-ready=\"yes\" data-charts=\"7\">", "data-charts"),
            Some("7")
        );
        assert_eq!(attribute("<body>", "data-ready"), None);
    }
}
