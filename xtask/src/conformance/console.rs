//! The web console as users meet it, in headless Chromium: submit, watch, cancel, compare, a wrong token, an
//! empty history, a controller that is killed. Pictures of every page, light and dark, are written to
//! `target/console/` for people to look at.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use super::devtools::Browser;
use crate::own::{TempDir, bucketload, call, self_signed};
use crate::sh::{Result, need_programs, root};

/// A controller; ended when dropped.
struct Controller {
    child: Child,
    url: String,
}

impl Controller {
    fn start(data: &str, args: &[&str]) -> Result<Self> {
        let mut line = vec![
            "controller",
            "--listen",
            "127.0.0.1:0",
            "--data",
            data,
            "--grace",
            "20s",
        ];
        line.extend(args);
        let mut child = bucketload(&line)?
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("controller: {e}"))?;
        let stderr = child.stderr.take().ok_or("controller: no output")?;
        let mut lines = BufReader::new(stderr);
        let mut first = String::new();
        lines
            .read_line(&mut first)
            .map_err(|e| format!("controller: {e}"))?;
        let Some(url) = first
            .split_whitespace()
            .find(|word| word.starts_with("http"))
        else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("controller: unexpected output {first:?}"));
        };
        // What it says later goes where ours goes.
        std::thread::spawn(move || {
            lines
                .lines()
                .map_while(std::result::Result::ok)
                .for_each(|line| eprintln!("{line}"))
        });
        Ok(Self {
            child,
            url: url.trim_end_matches('/').to_owned(),
        })
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All flows.
pub(crate) fn all() -> Result {
    need_programs(&[("chromium", "chromium"), ("openssl", "openssl")])?;
    let pictures = root().join("target/console");
    std::fs::create_dir_all(&pictures).map_err(|e| format!("{}: {e}", pictures.display()))?;
    let dir = TempDir::new("console")?;
    let mut browser = Browser::start()?;
    open_console(&mut browser, &dir, &pictures)?;
    closed_console(&mut browser, &dir, &pictures)?;
    if browser.complaints.is_empty() {
        eprintln!("pictures: {}", pictures.display());
        Ok(())
    } else {
        Err(format!(
            "pages complained:\n{}",
            browser.complaints.join("\n")
        ))
    }
}

/// Fills the form for a short run of a built-in workload and sends it.
fn submit(browser: &mut Browser, url: &str, fields: &str) -> Result {
    browser.open(&format!("{url}/submit"))?;
    browser.eval(&format!(
        "for (const [name, value] of Object.entries({fields})) document.querySelector(`[name=\"${{name}}\"]`).value = value; \
         document.querySelector('#submit').click()"
    ))?;
    Ok(())
}

const SHORT: &str =
    "{builtin: 'mixed', rate: '300/s', duration: '12s', objects: '200', size: '16KiB'}";

fn open_console(browser: &mut Browser, dir: &TempDir, pictures: &Path) -> Result {
    let data = dir.file("open");
    let controller = Controller::start(&data, &[])?;
    let url = controller.url.clone();
    let picture = |name: &str| -> PathBuf { pictures.join(name) };
    // Nothing there yet.
    for (path, words, name) in [
        ("/", "Nothing runs and nothing waits", "empty-overview"),
        (
            "/history",
            "No workload has come to its end yet",
            "empty-history",
        ),
        (
            "/compare",
            "There are no runs to compare yet",
            "empty-compare",
        ),
        ("/agents", "No agents are configured", "agents"),
        ("/submit", "Built-in workload", "submit"),
    ] {
        browser.open(&format!("{url}{path}"))?;
        browser.see(words)?;
        browser.pictures(&picture(name))?;
    }
    // The keyboard: the first stop leads past the navigation.
    browser.open(&format!("{url}/"))?;
    browser.press("Tab", 9)?;
    browser.wait("document.activeElement.className === 'skip'")?;
    browser.press("Enter", 13)?;
    browser.wait("document.activeElement.id === 'main'")?;
    // A mistake is told with its place, and what was entered stays.
    submit(
        browser,
        &url,
        "{text: 'name = \"x\"\\nbogus = 1\\n', size: '1KiB'}",
    )?;
    browser.see("Not accepted")?;
    browser.see("workload.toml:2")?;
    browser.wait("document.querySelector('#f-size').value === '1KiB'")?;
    browser.pictures(&picture("refused"))?;
    // The same in a file, under the name that it has.
    let file = dir.file("mine.toml");
    std::fs::write(&file, "name = \"x\"\n\nbogus = 1\n").map_err(|e| format!("{file}: {e}"))?;
    browser.open(&format!("{url}/submit"))?;
    browser.choose_file("#file", &file)?;
    browser.eval("document.querySelector('#submit').click()")?;
    browser.see("mine.toml:3")?;
    // Submit, watch.
    submit(browser, &url, SHORT)?;
    browser.wait("location.pathname === '/jobs/w2' || location.pathname === '/jobs/w1'")?;
    let first = browser.eval("location.pathname.slice(6)")?;
    let first = first.as_str().unwrap_or_default().to_owned();
    browser.wait("Number(document.body.dataset.points) >= 5 && document.querySelectorAll('#live-charts svg[role=img] path').length > 4")?;
    browser.wait("document.querySelector('#live-table tbody tr') !== null")?;
    browser.pictures(&picture("live"))?;
    // Two more wait; one is cancelled in the list, the other moved and cancelled.
    submit(
        browser,
        &url,
        "{builtin: 'get', duration: '300s', objects: '50', size: '1KiB'}",
    )?;
    browser.wait("document.querySelector('#cancel') !== null")?;
    let second = browser.eval("location.pathname.slice(6)")?;
    let second = second.as_str().unwrap_or_default().to_owned();
    submit(browser, &url, SHORT)?;
    browser.wait("location.pathname.startsWith('/jobs/')")?;
    browser.open(&format!("{url}/"))?;
    browser.see("queuing")?;
    browser.wait("Number(document.body.dataset.points) >= 1")?;
    browser.pictures(&picture("overview"))?;
    browser.eval(&format!("document.querySelector('#down-{second}').click()"))?;
    browser.wait("document.readyState === 'complete'")?;
    browser.eval(&format!(
        "document.querySelector('#cancel-{second}').click()"
    ))?;
    browser.open(&format!("{url}/jobs/{second}"))?;
    browser.see("cancelled")?;
    // The first one ends: the page says so and leads to the report.
    browser.open(&format!("{url}/jobs/{first}"))?;
    browser.wait(
        "document.querySelector('iframe.report') !== null || (document.querySelector('#over') && !document.querySelector('#over').hidden)",
    )?;
    browser.open(&format!("{url}/jobs/{first}"))?;
    browser.wait("document.querySelector('iframe.report') !== null")?;
    browser.see("finished")?;
    // The frame draws in its own time; it cannot be looked into from here, which is its purpose.
    std::thread::sleep(std::time::Duration::from_secs(3));
    browser.pictures(&picture("report"))?;
    // The third is cancelled while it runs, from its page.
    browser.eval(&format!(
        "fetch('/api/jobs/{first}').then(r => r.json()).then(j => window.verdict = j.verdict)"
    ))?;
    submit(browser, &url, SHORT)?;
    browser.wait("document.querySelector('#over') !== null && !document.querySelector('#over').hidden || document.querySelector('iframe.report') !== null")?;
    submit(
        browser,
        &url,
        "{builtin: 'get', duration: '300s', objects: '50', size: '1KiB'}",
    )?;
    browser.wait("document.body.dataset.live === 'yes'")?;
    let running = browser.eval("location.href")?;
    a_day(browser, &url, &picture("day"))?;
    browser.open(running.as_str().unwrap_or_default())?;
    browser.eval("document.querySelector('#cancel').click()")?;
    browser.see("cancelled")?;
    // Compare two runs of the list.
    browser.open(&format!("{url}/compare"))?;
    browser.eval(
        "(() => { const all = [...document.querySelectorAll('tbody tr')].filter(r => r.innerText.includes('finished')); \
         all[all.length - 1].querySelector('[name=a]').checked = true; all[0].querySelector('[name=b]').checked = true; \
         document.querySelector('[name=differ]').checked = true; document.querySelector('#compare').click(); })()",
    )?;
    // On a busy machine the runs are CLIENT-BOUND, which no comparison takes; the page says so then.
    browser.wait(
        "document.querySelector('iframe.report') !== null && document.querySelector('#comparison') !== null \
         || document.body.innerText.includes('is CLIENT-BOUND')",
    )?;
    std::thread::sleep(std::time::Duration::from_secs(3));
    browser.pictures(&picture("compare"))?;
    browser.open(&format!("{url}/history"))?;
    browser.pictures(&picture("history"))?;
    commands(&url, &dir.file("bad.xml"))
}

/// Largest heap of a page, bytes.
const MAX_HEAP: f64 = 50e6;

/// Stands for the connection to the controller, so that a day takes a minute.
const FAKE_EVENTS: &str = "window.EventSource = class { constructor() { this.on = {}; window.fake = this; } \
                           addEventListener(name, f) { this.on[name] = f; } close() {} };";

/// What the controller sends in a day, by the rules of its `Series`: at most 360 points, twice as wide when there
/// would be more, only what is new in each message.
const DAY: &str = "(async () => {
  const classes = ['get', 'put', 'delete', 'list', 'head', 'copy', 'multipart-put', 'range-get'];
  const run = {run_id: 'day', workload: 'a day', target: 'mem:', status: 'running', verdict: null, current: 0, signs: [], messages: [], in_flight: 9, busiest_share: 0.2, rss_bytes: 1e8};
  let width = 1, points = [];
  for (let t = 0; t < 86400; t += 60) {
    let full = false;
    while (t / width >= 360) { width *= 2; points = points.filter((p, i) => i % 2 === 0); full = true; }
    const at = Math.floor(t / width) * width, r = Math.sin(t / 9000), p = {t_s: at, offered_per_s: 900, in_flight: 9, classes: classes.map((c, i) =>
      ({ops_per_s: 100 + 20 * r * i, bytes_per_s: 1e7 * (i + 1 + r), failed_per_s: 0, p50_ns: 1e6 * (i + 1), p95_ns: 2e6 * (i + 1), p99_ns: 3e6 * (i + 1) + 1e6 * r, max_ns: 9e7}))};
    if (points.length && points[points.length - 1].t_s === at) points[points.length - 1] = p; else points.push(p);
    const from = full ? 0 : Math.max(points.length - 2, 0);
    run.phases = [{name: 'run', kind: 'run', state: 'running', end: '', elapsed_s: t, limit_s: 86400, share: t / 86400, ok: t * 900, failed: 0, bytes: t * 1e7, has_series: true}];
    fake.on.live({data: JSON.stringify({job: location.pathname.slice(6), run, series: {phase: 0, width_s: width, classes, from, points: points.slice(from)}})});
    await new Promise(done => setTimeout(done));
  }
  return Number(document.body.dataset.points);
})()";

/// The page of a run of a day.
fn a_day(browser: &mut Browser, url: &str, picture: &Path) -> Result {
    submit(browser, url, SHORT)?;
    browser.wait("location.pathname.startsWith('/jobs/')")?;
    let page = browser.eval("location.href")?;
    browser.open_with(page.as_str().unwrap_or_default(), FAKE_EVENTS)?;
    browser.wait("window.fake !== undefined && 'live' in fake.on")?;
    let points = browser.eval(DAY)?.as_f64().unwrap_or(0.0);
    let heap = browser.heap()?;
    eprintln!("page of a day: {points} points, heap {:.1} MB", heap / 1e6);
    browser.pictures(picture)?;
    browser.eval("document.querySelector('#cancel').click()")?;
    browser.see("cancelled")?;
    if heap < MAX_HEAP && points <= 360.0 && points > 180.0 {
        Ok(())
    } else {
        Err(format!(
            "the page of a day holds {points} points and {heap} bytes"
        ))
    }
}

/// The commands against the same controller.
fn commands(url: &str, xml: &str) -> Result {
    let info = call(&mut bucketload(&["info", "--controller", url])?)?;
    info.expect_code(0)?;
    if !info.stdout.contains("FINISHED") || !info.stdout.contains("CANCELLED") {
        return Err(format!("{}: {}", info.shown, info.stdout));
    }
    let bomb =
        "<?xml version=\"1.0\"?>\n<!DOCTYPE w [<!ENTITY a \"aaa\">]>\n<workload name=\"&a;\"/>\n";
    std::fs::write(xml, bomb).map_err(|e| format!("{xml}: {e}"))?;
    let refused = call(&mut bucketload(&["submit", xml, "--controller", url])?)?;
    refused.expect_code(2)?;
    if refused.stderr.contains("line 2, column 1") {
        Ok(())
    } else {
        Err(format!("{}: {}", refused.shown, refused.stderr))
    }
}

fn closed_console(browser: &mut Browser, dir: &TempDir, pictures: &Path) -> Result {
    let (cert, key, token) = (dir.file("cert.pem"), dir.file("key.pem"), dir.file("token"));
    self_signed(&cert, &key)?;
    std::fs::write(&token, "a-token-for-conformance\n").map_err(|e| format!("{token}: {e}"))?;
    let tls = [
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
        "--token-file",
        &token,
    ];
    let controller = Controller::start(&dir.file("closed"), &tls)?;
    let url = controller.url.clone();
    browser.open(&format!("{url}/"))?;
    browser.wait("location.pathname === '/login'")?;
    browser.pictures(&pictures.join("login"))?;
    let enter = |browser: &mut Browser, token: &str| {
        browser.eval(&format!(
            "document.querySelector('#token').value = '{token}'; document.querySelector('form.login').submit()"
        ))
    };
    enter(browser, "this-is-a-wrong-token")?;
    browser.see("This is not the token of this controller")?;
    browser.pictures(&pictures.join("wrong-token"))?;
    enter(browser, "a-token-for-conformance")?;
    browser.see("Nothing runs and nothing waits")?;
    let visible = browser.eval("document.cookie")?;
    if visible != "" {
        return Err(format!("scripts can read the cookie: {visible}"));
    }
    browser.eval(
        "[...document.querySelectorAll('button')].find(b => b.textContent === 'Log out').click()",
    )?;
    browser.wait("location.pathname === '/login'")?;
    let refused = call(
        bucketload(&["info", "--controller", &url, "--ca-bundle", &cert])?
            .env_remove("BUCKETLOAD_TOKEN"),
    )?;
    refused.expect_code(2)?;
    call(&mut bucketload(&[
        "info",
        "--controller",
        &url,
        "--ca-bundle",
        &cert,
        "--token-file",
        &token,
    ])?)?
    .expect_code(0)
}
