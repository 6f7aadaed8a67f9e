//! The web console as users see it, in headless Chromium: submit, watch, cancel, compare, a wrong token, an empty
//! history, COSBench workloads, agents, a run of a day. Pictures of every page, light and dark, wide and narrow, go
//! to `target/console/` for people to look at. The program itself checks that nothing is wider than the window and
//! that every control has a name.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::Stdio;

mod simulated;

use super::devtools::Browser;
use crate::files::{self, TempDir};
use crate::process::Process;
use crate::program::{bucketload, call, self_signed, try_bucketload};
use crate::sh::{Result, ensure, need_programs, no_faults, root};

/// A controller; ended when dropped.
struct Controller {
    _process: Process,
    url: String,
}

impl Controller {
    fn start(data: &str, args: &str) -> Result<Self> {
        let line = format!("controller --listen 127.0.0.1:0 --data {data} --grace 20s {args}");
        let mut process = Process::start(bucketload(&line)?.stderr(Stdio::piped()))?;
        let stderr = process.child.stderr.take();
        let (first, rest) = process.first_line(stderr)?;
        let mut words = first.split_whitespace();
        let url = words.find(|word| word.starts_with("http"));
        let url = url.ok_or_else(|| format!("controller: unexpected output {first:?}"))?;
        // Forward its later messages to our standard error.
        std::thread::spawn(move || {
            let lines = rest.into_iter().flat_map(BufRead::lines);
            lines
                .map_while(std::result::Result::ok)
                .for_each(|line| eprintln!("{line}"))
        });
        Ok(Self {
            _process: process,
            url: url.trim_end_matches('/').to_owned(),
        })
    }
}

/// All flows.
pub(crate) fn all() -> Result {
    need_programs(&[("chromium", "chromium"), ("openssl", "openssl")])?;
    let pictures = root().join("target/console");
    files::make_dir(&pictures)?;
    let dir = TempDir::new("console")?;
    let mut browser = Browser::start()?;
    simulated::flows(&mut browser, &dir, &pictures)?;
    agents_console(&mut browser, &dir, &pictures)?;
    open_console(&mut browser, &dir, &pictures)?;
    closed_console(&mut browser, &dir, &pictures)?;
    no_faults("complaints of pages", &browser.complaints)?;
    eprintln!("pictures: {}", pictures.display());
    Ok(())
}

/// Fills in the form for a run of a built-in workload and submits it.
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
const LONG: &str = "{builtin: 'get', duration: '300s', objects: '50', size: '1KiB'}";
/// True once a run has ended: its page shows the result by itself.
const OVER: &str = "document.querySelector('#result') !== null";

/// Uploads a file and submits the form.
fn upload(browser: &mut Browser, url: &str, file: &str, text: &str) -> Result {
    files::write(file, text)?;
    browser.open(&format!("{url}/submit"))?;
    browser.choose_file("#file", file)?;
    browser.click("#submit")
}

fn open_console(browser: &mut Browser, dir: &TempDir, pictures: &Path) -> Result {
    let data = dir.file("open");
    let controller = Controller::start(&data, "")?;
    let url = controller.url.clone();
    let picture = |name: &str| -> PathBuf { pictures.join(name) };
    // Empty pages.
    for (path, name, words) in [
        ("/", "empty-overview", "No workload is running or waiting"),
        ("/history", "empty-history", "No workload has finished yet"),
        (
            "/compare",
            "empty-compare",
            "There are no runs to compare yet",
        ),
        ("/agents", "agents", "No agents are configured"),
        ("/submit", "submit", "Built-in workload"),
        ("/matrix", "matrix", "one mix per line"),
    ] {
        browser.open(&format!("{url}{path}"))?;
        browser.see(words)?;
        browser.pictures(&picture(name))?;
    }
    // Keyboard: the first tab stop skips the navigation.
    browser.open(&format!("{url}/"))?;
    browser.press("Tab", 9)?;
    browser.wait("document.activeElement.className === 'skip'")?;
    browser.press("Enter", 13)?;
    browser.wait("document.activeElement.id === 'main'")?;
    // The matrix by keyboard; it puts a workload into the form.
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
    // An error names its line, and the form keeps its input.
    let wrong = "{text: 'name = \"x\"\\nbogus = 1\\n', size: '1KiB'}";
    submit(browser, &url, wrong)?;
    browser.see("Not accepted")?;
    browser.see("workload.toml:2")?;
    browser.wait("document.querySelector('#f-size').value === '1KiB'")?;
    browser.pictures(&picture("refused"))?;
    // The same in a file, reported under the file's name.
    let file = dir.file("mine.toml");
    upload(browser, &url, &file, "name = \"x\"\n\nbogus = 1\n")?;
    browser.see("mine.toml:3")?;
    // Submit, watch.
    submit(browser, &url, SHORT)?;
    browser.wait("location.pathname.startsWith('/jobs/')")?;
    let first = browser.text("location.pathname.slice(6)")?;
    browser.wait("Number(document.body.dataset.points) >= 5 && document.querySelectorAll('#live-charts svg[role=img] path').length > 4")?;
    browser.wait("document.querySelector('#live-table tbody tr') !== null")?;
    browser.pictures(&picture("live"))?;
    // Two more wait; one is cancelled in the list, the other moved and cancelled.
    submit(browser, &url, LONG)?;
    browser.wait("document.querySelector('#cancel') !== null")?;
    let second = browser.text("location.pathname.slice(6)")?;
    submit(browser, &url, SHORT)?;
    browser.wait("location.pathname.startsWith('/jobs/')")?;
    browser.open(&format!("{url}/"))?;
    browser.see("queuing")?;
    browser.wait("Number(document.body.dataset.points) >= 1")?;
    browser.pictures(&picture("overview"))?;
    // Each click loads a page; a mark identifies the old one. Cancelling asks first.
    for button in [
        format!("#down-{second}"),
        format!("#cancel-{second}"),
        "#confirm".to_owned(),
    ] {
        browser.eval(&format!(
            "window.old = true; document.querySelector('{button}').click()"
        ))?;
        browser.wait("window.old === undefined && document.readyState === 'complete'")?;
    }
    browser.open(&format!("{url}/jobs/{second}"))?;
    browser.see("cancelled")?;
    // When the first run ends, the page shows the result and links to the report.
    browser.open(&format!("{url}/jobs/{first}"))?;
    browser.wait(OVER)?;
    browser.see("finished")?;
    browser.see("operations per second")?;
    browser.pictures(&picture("result"))?;
    browser.click("#report")?;
    browser.wait(
        "location.pathname.endsWith('/report') && document.querySelector('svg.chart') !== null",
    )?;
    browser.pictures(&picture("report"))?;
    cosbench(browser, &url, dir, pictures)?;
    // The third is cancelled while it runs, from its page.
    submit(browser, &url, SHORT)?;
    browser.wait(OVER)?;
    submit(browser, &url, LONG)?;
    browser.wait("document.body.dataset.live === 'yes'")?;
    browser.click("#cancel")?;
    browser.wait("document.querySelector('#confirm') !== null")?;
    browser.click("#confirm")?;
    browser.see("cancelled")?;
    // Compare two runs of the list.
    browser.open(&format!("{url}/compare"))?;
    browser.eval(
        "(() => { const all = [...document.querySelectorAll('tbody tr')].filter(r => r.innerText.includes('finished')); \
         document.querySelectorAll('[type=checkbox]').forEach(box => { box.checked = false; }); all[all.length - 1].querySelector('[name=a]').checked = true; all[0].querySelector('[name=b]').checked = true; \
         document.querySelector('[name=differ]').checked = true; document.querySelector('#compare').click(); })()",
    )?;
    // On a busy machine the runs are CLIENT-BOUND; comparisons refuse those and the page says so. The simulated runs
    // cover a comparison of VALID runs.
    browser.wait(
        "document.querySelector('#report') !== null && document.querySelector('#comparison') !== null \
         || document.body.innerText.includes('is CLIENT-BOUND')",
    )?;
    browser.pictures(&picture("compare-real"))?;
    browser.open(&format!("{url}/history"))?;
    browser.pictures(&picture("history"))?;
    commands(&url, &dir.file("bad.xml"))
}

/// Uploads a COSBench workload: the page names ignored attributes and offers COSBench's files.
fn cosbench(browser: &mut Browser, url: &str, dir: &TempDir, pictures: &Path) -> Result {
    upload(browser, url, &dir.file("cosbench.xml"), XML)?;
    browser.wait("location.pathname.startsWith('/jobs/')")?;
    browser.see("Runtime")?;
    let page = browser.text("location.href")?;
    browser.wait(OVER)?;
    browser.open(&page)?;
    browser.see("COSBench's archive")?;
    browser.see("finished")?;
    browser.wait("document.body.innerText.includes('s2-main-worker.csv')")?;
    let figures = browser.text(
        "fetch([...document.querySelectorAll('.files a')].find(a => a.textContent.endsWith('-web.csv')).href).then(r => r.text())",
    )?;
    let right = figures.starts_with("Stage,Op-Name,Op-Type,") && figures.contains("s2-main,");
    ensure(right, || format!("COSBench's figures: {figures}"))?;
    browser.pictures(&pictures.join("cosbench"))
}

/// A COSBench workload; `Runtime` is not a valid attribute.
const XML: &str = "<workload name=\"web\"><storage type=\"mock\"/><workflow>
<workstage name=\"init\"><work type=\"init\" workers=\"1\" config=\"cprefix=web;containers=r(1,1)\"/></workstage>
<workstage name=\"main\"><work name=\"main\" workers=\"2\" totalOps=\"40\" Runtime=\"5\">
<operation type=\"write\" config=\"cprefix=web;containers=c(1);objects=s(1,40);sizes=c(4)KB\"/></work></workstage>
<workstage name=\"cleanup\"><work type=\"cleanup\" workers=\"1\" config=\"cprefix=web;containers=r(1,1);objects=r(1,40)\"/></workstage>
<workstage name=\"dispose\"><work type=\"dispose\" workers=\"1\" config=\"cprefix=web;containers=r(1,1)\"/></workstage>
</workflow></workload>\n";

/// Two agents, one of which goes away.
fn agents_console(browser: &mut Browser, dir: &TempDir, pictures: &Path) -> Result {
    let agent = || {
        let line = "agent --listen 127.0.0.1:0 --announce --quiet";
        Process::announced(&mut bucketload(line)?)
    };
    let ((first, a), (_second, b)) = (agent()?, agent()?);
    let both = format!("--agents {a},{b}");
    let controller = Controller::start(&dir.file("agents"), &both)?;
    let url = controller.url.clone();
    browser.open(&format!("{url}/agents"))?;
    browser.wait("document.querySelectorAll('#fleet .finished').length === 2")?;
    submit(browser, &url, SHORT)?;
    browser.wait("document.body.dataset.live === 'yes'")?;
    browser.see("finished")?;
    browser.open(&format!("{url}/agents"))?;
    browser.see("As seen by the coordinator of w1")?;
    // The page is told without being loaded again.
    drop(first);
    browser.wait("document.querySelectorAll('#fleet .failed').length === 1")?;
    browser.pictures(&pictures.join("agents-configured"))
}

/// The program's commands against the same controller.
fn commands(url: &str, xml: &str) -> Result {
    let info = try_bucketload(&format!("info --controller {url}"))?;
    info.expect(0, &["FINISHED", "CANCELLED"])?;
    let bomb =
        "<?xml version=\"1.0\"?>\n<!DOCTYPE w [<!ENTITY a \"aaa\">]>\n<workload name=\"&a;\"/>\n";
    files::write(xml, bomb)?;
    let refused = try_bucketload(&format!("submit {xml} --controller {url}"))?;
    refused.complains(2, &["line 2, column 1"])
}

fn closed_console(browser: &mut Browser, dir: &TempDir, pictures: &Path) -> Result {
    let (cert, key, token) = (dir.file("cert.pem"), dir.file("key.pem"), dir.file("token"));
    self_signed(&cert, &key)?;
    files::write(&token, "a-token-for-conformance\n")?;
    let tls = format!("--tls-cert {cert} --tls-key {key} --token-file {token}");
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
    browser.see("The token is wrong")?;
    browser.pictures(&pictures.join("wrong-token"))?;
    enter(browser, "a-token-for-conformance")?;
    browser.see("No workload is running or waiting")?;
    let visible = browser.text("document.cookie")?;
    ensure(visible.is_empty(), || {
        format!("scripts can read the cookie: {visible}")
    })?;
    browser.eval(
        "[...document.querySelectorAll('button')].find(b => b.textContent === 'Log out').click()",
    )?;
    browser.wait("location.pathname === '/login'")?;
    let info = format!("info --controller {url} --ca-bundle {cert}");
    call(bucketload(&info)?.env_remove("BUCKETLOAD_TOKEN"))?.expect_code(2)?;
    try_bucketload(&format!("{info} --token-file {token}"))?.expect_code(0)
}
