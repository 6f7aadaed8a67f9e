//! The web console as users meet it, in headless Chromium: submit, watch, cancel, compare, a wrong token, an
//! empty history, workloads of COSBench, agents, a run of a day. Pictures of every page, light and dark, wide
//! and narrow, are written to `target/console/` for people to look at; each is checked for what can be
//! checked by a program: nothing wider than the window, no control without a name.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

mod simulated;

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
    simulated::flows(&mut browser, &dir, &pictures)?;
    agents_console(&mut browser, &dir, &pictures)?;
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
        ("/matrix", "one mix per line", "matrix"),
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
    // The matrix by keyboard: its result is a workload in the form.
    browser.open(&format!("{url}/matrix"))?;
    browser.eval(
        "document.querySelector('#workers').focus(); document.querySelector('#workers').select()",
    )?;
    browser.type_text("2, 4")?;
    browser.press("Enter", 13)?;
    browser.see("18 phases of 30s each")?;
    browser
        .wait("document.querySelector('#text').value.includes('[phases.64KiB-w4-get80-put20]')")?;
    browser.pictures(&picture("matrix-made"))?;
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
    browser.wait("location.pathname.startsWith('/jobs/')")?;
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
    // Each click loads the page anew; a mark tells the old one.
    for button in ["down", "cancel"] {
        browser.eval(&format!(
            "window.old = true; document.querySelector('#{button}-{second}').click()"
        ))?;
        browser.wait("window.old === undefined && document.readyState === 'complete'")?;
    }
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
    cosbench(browser, &url, dir, pictures)?;
    // The third is cancelled while it runs, from its page.
    submit(browser, &url, SHORT)?;
    browser.wait("document.querySelector('#over') !== null && !document.querySelector('#over').hidden || document.querySelector('iframe.report') !== null")?;
    submit(
        browser,
        &url,
        "{builtin: 'get', duration: '300s', objects: '50', size: '1KiB'}",
    )?;
    browser.wait("document.body.dataset.live === 'yes'")?;
    browser.eval("document.querySelector('#cancel').click()")?;
    browser.see("cancelled")?;
    // Compare two runs of the list.
    browser.open(&format!("{url}/compare"))?;
    browser.eval(
        "(() => { const all = [...document.querySelectorAll('tbody tr')].filter(r => r.innerText.includes('finished')); \
         all[all.length - 1].querySelector('[name=a]').checked = true; all[0].querySelector('[name=b]').checked = true; \
         document.querySelector('[name=differ]').checked = true; document.querySelector('#compare').click(); })()",
    )?;
    // On a busy machine the runs are CLIENT-BOUND, which no comparison takes; the page says so then. The
    // comparison of VALID runs is looked at with simulated ones.
    browser.wait(
        "document.querySelector('iframe.report') !== null && document.querySelector('#comparison') !== null \
         || document.body.innerText.includes('is CLIENT-BOUND')",
    )?;
    browser.pictures(&picture("compare-real"))?;
    browser.open(&format!("{url}/history"))?;
    browser.pictures(&picture("history"))?;
    commands(&url, &dir.file("bad.xml"))
}

/// A workload of COSBench by upload: what is ignored is said, and its files are there.
fn cosbench(browser: &mut Browser, url: &str, dir: &TempDir, pictures: &Path) -> Result {
    let file = dir.file("cosbench.xml");
    std::fs::write(&file, XML).map_err(|e| format!("{file}: {e}"))?;
    browser.open(&format!("{url}/submit"))?;
    browser.choose_file("#file", &file)?;
    browser.eval("document.querySelector('#submit').click()")?;
    browser.wait("location.pathname.startsWith('/jobs/')")?;
    browser.see("Runtime")?;
    let page = browser.eval("location.href")?;
    let page = page.as_str().unwrap_or_default().to_owned();
    browser.wait("document.querySelector('iframe.report') !== null || (document.querySelector('#over') && !document.querySelector('#over').hidden)")?;
    browser.open(&page)?;
    browser.see("COSBench's archive")?;
    browser.see("finished")?;
    browser.wait("document.body.innerText.includes('s2-main-worker.csv')")?;
    let figures = browser.eval(
        "fetch([...document.querySelectorAll('.files a')].find(a => a.textContent.endsWith('-web.csv')).href).then(r => r.text())",
    )?;
    let figures = figures.as_str().unwrap_or_default();
    if !figures.starts_with("Stage,Op-Name,Op-Type,") || !figures.contains("s2-main,") {
        return Err(format!("COSBench's figures: {figures}"));
    }
    browser.pictures(&pictures.join("cosbench"))
}

/// A workload of COSBench; `Runtime` is none of its attributes.
const XML: &str = "<workload name=\"web\"><storage type=\"mock\"/><workflow>
<workstage name=\"init\"><work type=\"init\" workers=\"1\" config=\"cprefix=web;containers=r(1,1)\"/></workstage>
<workstage name=\"main\"><work name=\"main\" workers=\"2\" totalOps=\"40\" Runtime=\"5\">
<operation type=\"write\" config=\"cprefix=web;containers=c(1);objects=s(1,40);sizes=c(4)KB\"/></work></workstage>
<workstage name=\"cleanup\"><work type=\"cleanup\" workers=\"1\" config=\"cprefix=web;containers=r(1,1);objects=r(1,40)\"/></workstage>
<workstage name=\"dispose\"><work type=\"dispose\" workers=\"1\" config=\"cprefix=web;containers=r(1,1)\"/></workstage>
</workflow></workload>\n";

/// A process that is ended when this is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two agents, of which one goes, and an address where there never was one.
fn agents_console(browser: &mut Browser, dir: &TempDir, pictures: &Path) -> Result {
    let agent = || -> Result<(Ended, String)> {
        let mut child = bucketload(&["agent", "--listen", "127.0.0.1:0", "--announce", "--quiet"])?
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("agent: {e}"))?;
        let stdout = child.stdout.take().ok_or("agent: no output")?;
        let agent = Ended(child);
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .map_err(|e| format!("agent: {e}"))?;
        let announced: serde_json::Value =
            serde_json::from_str(&line).map_err(|e| format!("agent: {line:?}: {e}"))?;
        let address = announced["listening"].as_str().unwrap_or_default();
        Ok((agent, address.to_owned()))
    };
    let ((first, a), (_second, b)) = (agent()?, agent()?);
    let both = format!("{a},{b}");
    let controller = Controller::start(&dir.file("agents"), &["--agents", &both])?;
    let url = controller.url.clone();
    browser.open(&format!("{url}/agents"))?;
    browser.wait("document.querySelectorAll('#fleet .finished').length === 2")?;
    submit(browser, &url, SHORT)?;
    browser.wait("document.body.dataset.live === 'yes'")?;
    browser.see("finished")?;
    browser.open(&format!("{url}/agents"))?;
    browser.see("As the coordinator of w1 saw them")?;
    // The page is told without being loaded again.
    drop(first);
    browser.wait("document.querySelectorAll('#fleet .failed').length === 1")?;
    browser.pictures(&pictures.join("agents-configured"))
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
