//! The report in a real browser: headless Chromium loads the page from disk and runs its script.

use std::path::Path;

use crate::files::TempDir;
use crate::own::own;
use crate::sh::{Result, cmd, ensure, need_programs, output, run, words};

/// Runs the newcomer's command for a moment and opens its report.
pub(crate) fn all() -> Result {
    need_programs(&[("chromium", "chromium")])?;
    let dir = TempDir::new("browser")?;
    let out = dir.file("run");
    own(&format!(
        "run online-service --duration 8s --objects 400 --out {out} --quiet"
    ))?
    .expect_code(0)?;
    open(&dir.path().join("run/report.html"), 6)
}

/// Fails unless the page's script ran to its end and drew at least `charts` charts.
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
    let drawn = attribute(&dom, "data-charts").and_then(|text| text.parse::<u32>().ok());
    let drawn = drawn.unwrap_or(0);
    let ready = attribute(&dom, "data-ready") == Some("yes");
    ensure(ready && drawn >= charts, || {
        let page = page.display();
        format!("{page}: the page did not draw itself ({drawn} charts)")
    })?;
    let picture = page.with_extension("png");
    let picture = format!(
        "--window-size=1240,4200 --screenshot='{}'",
        picture.display()
    );
    run(&mut chromium(&picture))
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
