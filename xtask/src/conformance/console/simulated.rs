//! The console with simulated runs (the example `simulated_console`): the memory that a run of a day takes in browser
//! and server, and a comparison of VALID runs even on a busy machine.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::super::devtools::Browser;
use super::submit;
use crate::files::TempDir;
use crate::process::{Process, status_bytes};
use crate::program;
use crate::sh::{Result, ensure};

/// Environment variable that names the example's executable, in place of the test build.
const INSTEAD: &str = "BUCKETLOAD_SIMULATED_CONSOLE";
/// Largest heap of a page and resident memory of the server, in bytes.
const MOST: f64 = 50e6;
/// Longest time to simulate a day.
const A_DAY: Duration = Duration::from_secs(900);

/// The simulated controller; ended when dropped.
struct Simulated {
    process: Process,
    url: String,
}
impl Simulated {
    fn start(data: &str) -> Result<Self> {
        let mut command = match std::env::var_os(INSTEAD) {
            Some(program) => Command::new(program),
            None => Command::new(program::tested_example("simulated_console")?),
        };
        // Its standard input closes when we end. The real program sets this threshold itself (bucketload's `memory`),
        // so that zeroed histograms take no memory until they are used.
        let piped = command
            .arg(data)
            .env("MALLOC_MMAP_THRESHOLD_", "131072")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = Process::start(piped)?;
        let stdout = process.child.stdout.take();
        let (line, _) = process.first_line(stdout)?;
        let url = line.trim().strip_prefix("console: ");
        let url = url.ok_or_else(|| format!("simulated console: unexpected output {line:?}"))?;
        Ok(Self {
            process,
            url: url.trim_end_matches('/').to_owned(),
        })
    }

    /// A field of the process's status such as `VmRSS`, in bytes.
    fn memory(&self, field: &str) -> Result<f64> {
        let pid = self.process.child.id();
        let bytes = status_bytes(pid, field).map(|bytes| bytes as f64);
        bytes.ok_or_else(|| format!("/proc/{pid}/status: no {field}"))
    }
}

/// Both flows.
pub(super) fn flows(browser: &mut Browser, dir: &TempDir, pictures: &Path) -> Result {
    let console = Simulated::start(&dir.file("simulated"))?;
    comparison(browser, &console.url, pictures)?;
    a_day(browser, &console, &pictures.join("day"))
}

fn named(name: &str) -> String {
    format!("{{text: 'name = \"{name}\"\\n'}}")
}

/// Two equal sides and two different ones, three runs each; every run is VALID by the usual rules.
fn comparison(browser: &mut Browser, url: &str, pictures: &Path) -> Result {
    let names = [
        "base-1", "base-2", "base-3", "same-1", "same-2", "same-3", "slower-1", "slower-2",
        "slower-3",
    ];
    for name in names {
        submit(browser, url, &named(name))?;
        browser.wait("location.pathname.startsWith('/jobs/')")?;
    }
    // The overview's list updates by itself.
    browser.open(&format!("{url}/"))?;
    browser.wait(
        "[...document.querySelectorAll('#history tbody tr')].length === 8 && document.querySelector('#queue .empty') !== null",
    )?;
    browser.pictures(&pictures.join("overview-idle"))?;
    for (side, words, picture) in [
        ("slower", &["slower"][..], "compare"),
        (
            "same",
            &["equivalent", "inconclusive", "no difference", "same"],
            "compare-same",
        ),
    ] {
        browser.open(&format!("{url}/compare"))?;
        let valid = browser.eval(
            "[...document.querySelectorAll('tbody tr')].filter(row => row.cells[4].innerText === 'VALID').length",
        )?;
        ensure(valid == names.len(), || {
            format!("{valid} of {} runs are VALID", names.len())
        })?;
        browser.eval(&format!(
            "for (const row of document.querySelectorAll('tbody tr')) {{ const name = row.cells[0].innerText; \
             row.querySelector('[name=a]').checked = name.includes('base-'); \
             row.querySelector('[name=b]').checked = name.includes('{side}-'); }} \
             document.querySelector('#compare').click()"
        ))?;
        browser.wait("document.querySelector('#comparison') !== null")?;
        let shown = browser.text("document.querySelector('#comparison').innerText")?;
        let first = shown.lines().take(6).collect::<Vec<_>>().join("\n");
        let first = first.to_lowercase();
        ensure(words.iter().any(|word| first.contains(word)), || {
            format!("{side}: the verdict is not shown:\n{shown}")
        })?;
        browser.pictures(&pictures.join(picture))?;
    }
    Ok(())
}

/// A run of a day: every second goes through run directory, controller and event stream to the page.
fn a_day(browser: &mut Browser, console: &Simulated, picture: &Path) -> Result {
    let before = console.memory("VmRSS")?;
    submit(browser, &console.url, &named("day"))?;
    browser.wait("location.pathname.startsWith('/jobs/')")?;
    browser.wait_for(
        "document.querySelector('#live-phase') !== null && document.querySelector('#live-phase').textContent.includes(' 24:00:00 of ')",
        A_DAY,
    )?;
    let heap = browser.heap()?;
    let (now, most) = (console.memory("VmRSS")?, console.memory("VmHWM")?);
    let points = browser
        .eval("Number(document.body.dataset.points)")?
        .as_f64()
        .unwrap_or(0.0);
    eprintln!(
        "page of a day: {points} points, heap {:.1} MB; server {:.1} MB before, {:.1} MB after, {:.1} MB at most",
        heap / 1e6,
        before / 1e6,
        now / 1e6,
        most / 1e6
    );
    browser.pictures(picture)?;
    browser.click("#cancel")?;
    browser.wait("document.querySelector('#confirm') !== null")?;
    browser.click("#confirm")?;
    browser.see("cancelled")?;
    ensure(
        heap < MOST && most < MOST && points <= 360.0 && points > 180.0,
        || "page or server of a day need more than 50 MB, or the page lost points",
    )
}
