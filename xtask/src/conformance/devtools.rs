//! Drives headless Chromium over the DevTools protocol through a pipe: no port and no additional program.
//!
//! Messages are JSON and end with a zero byte. Chromium reads them from descriptor 3 and writes to 4; a shell
//! connects those to our pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::files::{self, TempDir};
use crate::process::Process;
use crate::program::{items, text};
use crate::sh::{Result, cmd, ensure, words};

/// Window widths in pixels: a desktop and a telephone.
const WIDE: u32 = 1280;
const NARROW: u32 = 390;
/// Longest wait for something to appear on a page; generous, as the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page.
pub(crate) struct Browser {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    session: String,
    /// Script errors and policy violations of the page.
    pub(crate) complaints: Vec<String>,
    // Declared before the profile, so that it ends first.
    _process: Process,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser with an empty page.
    pub(crate) fn start() -> Result<Self> {
        let profile = TempDir::new("devtools")?;
        let user_data = format!("--user-data-dir={}", profile.file("profile"));
        // The test's certificate is self-signed.
        let line = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run \
                    --disable-background-networking --disable-component-update --disable-sync \
                    --ignore-certificate-errors --window-size=1280,1000 --remote-debugging-pipe";
        let shell = "exec chromium \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null";
        let mut command = cmd("sh", ["-c", shell, "sh"]);
        command.args(words(line)).args([&user_data, "about:blank"]);
        let mut process = Process::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let (input, output) = (process.child.stdin.take(), process.child.stdout.take());
        let input = input.ok_or("chromium: no pipe")?;
        let output = output.ok_or("chromium: no pipe")?;
        let mut browser = Self {
            _process: process,
            input,
            output: BufReader::new(output),
            next: 0,
            session: String::new(),
            complaints: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))?;
        let attached = browser.call(
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        )?;
        browser.session = text(&attached["sessionId"]).to_owned();
        ensure(!browser.session.is_empty(), || "chromium: no session")?;
        for domain in ["Page", "Runtime", "Log", "Performance", "DOM"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(browser)
    }

    /// Calls a method of the protocol and returns its result.
    fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let at = |e: std::io::Error| format!("chromium: {method}: {e}");
        self.input.write_all(&bytes).map_err(at)?;
        loop {
            let mut bytes = Vec::new();
            let read = self.output.read_until(0, &mut bytes).map_err(at)?;
            ensure(read > 0, || format!("chromium ended during {method}"))?;
            bytes.pop();
            let answer: Value =
                serde_json::from_slice(&bytes).map_err(|e| format!("chromium: {method}: {e}"))?;
            if answer["id"] == json!(self.next) {
                return match answer.get("error") {
                    Some(error) => Err(format!("chromium: {method}: {error}")),
                    None => Ok(answer["result"].clone()),
                };
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        let complaint = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => &params["exceptionDetails"],
            Some("Log.entryAdded") if params["entry"]["source"] == "security" => {
                &params["entry"]["text"]
            }
            _ => return,
        };
        self.complaints.push(complaint.to_string());
    }

    /// Opens a page and waits until it has loaded.
    pub(crate) fn open(&mut self, url: &str) -> Result {
        self.call("Page.navigate", json!({"url": url}))?;
        self.wait(&format!(
            "document.readyState === 'complete' && location.href.startsWith({})",
            json!(url.split('?').next().unwrap_or(url))
        ))
        .or_else(|_| self.wait("document.readyState === 'complete'"))
    }

    /// Evaluates an expression in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Result<Value> {
        let answer = self.call(
            "Runtime.evaluate",
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true}),
        )?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(format!("{expression}: {details}")),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Evaluates an expression in the page to a text.
    pub(crate) fn text(&mut self, expression: &str) -> Result<String> {
        Ok(text(&self.eval(expression)?).to_owned())
    }

    /// Clicks the element that matches the selector.
    pub(crate) fn click(&mut self, selector: &str) -> Result {
        let expression = format!("document.querySelector({}).click()", json!(selector));
        self.eval(&expression).map(drop)
    }

    /// Waits until an expression in the page is true. An expression fails while the page is being replaced; that
    /// counts as not true.
    pub(crate) fn wait(&mut self, expression: &str) -> Result {
        self.wait_for(expression, PATIENCE)
    }

    /// Like [`Browser::wait`], for at most `patience`.
    pub(crate) fn wait_for(&mut self, expression: &str, patience: Duration) -> Result {
        let end = Instant::now() + patience;
        while !self
            .eval(expression)
            .is_ok_and(|value| value == json!(true))
        {
            if Instant::now() > end {
                let page = self.text("location.href + '\\n' + document.body.innerText")?;
                return Err(format!(
                    "{expression} did not become true; the page:\n{page}"
                ));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    /// Waits until the page shows a text.
    pub(crate) fn see(&mut self, text: &str) -> Result {
        self.wait(&format!(
            "document.body.innerText.includes({})",
            json!(text)
        ))
    }

    /// Chooses a file in a form.
    pub(crate) fn choose_file(&mut self, selector: &str, file: &str) -> Result {
        let object = self.call(
            "Runtime.evaluate",
            json!({"expression": format!("document.querySelector({})", json!(selector))}),
        )?;
        let params = json!({"files": [file], "objectId": object["result"]["objectId"]});
        self.call("DOM.setFileInputFiles", params).map(drop)
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: &str, code: u32) -> Result {
        for kind in ["keyDown", "keyUp"] {
            let mut params =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if key == "Enter" && kind == "keyDown" {
                params["text"] = json!("\r");
            }
            self.call("Input.dispatchKeyEvent", params)?;
        }
        Ok(())
    }

    /// Types a text into the focused element.
    pub(crate) fn type_text(&mut self, text: &str) -> Result {
        self.call("Input.insertText", json!({"text": text}))
            .map(drop)
    }

    /// Bytes in use of the page's JavaScript heap, after a garbage collection.
    pub(crate) fn heap(&mut self) -> Result<f64> {
        self.call("HeapProfiler.collectGarbage", json!({}))?;
        let metrics = self.call("Performance.getMetrics", json!({}))?;
        let mut used = items(&metrics["metrics"]).filter(|m| m["name"] == "JSHeapUsedSize");
        let used = used.find_map(|m| m["value"].as_f64());
        used.ok_or_else(|| "chromium: no JSHeapUsedSize".to_owned())
    }

    /// Writes two pictures of the page, light and wide (`PATH-light.png`) and dark and narrow (`PATH-dark.png`).
    /// Fails if the page is wider than its window or a control has no name.
    pub(crate) fn pictures(&mut self, path: &Path) -> Result {
        self.call("Emulation.setScrollbarsHidden", json!({"hidden": true}))?;
        for (scheme, width) in [("light", WIDE), ("dark", NARROW)] {
            let feature = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
            self.call("Emulation.setEmulatedMedia", feature)?;
            let screen =
                json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
            self.call("Emulation.setDeviceMetricsOverride", screen)?;
            self.check_page(path)?;
            // Another process draws frames, in its own time.
            if self.eval("document.querySelector('iframe') !== null")? == true {
                std::thread::sleep(Duration::from_secs(2));
            }
            let shot = self.call(
                "Page.captureScreenshot",
                json!({"format": "png", "captureBeyondViewport": true}),
            )?;
            let bytes = STANDARD.decode(text(&shot["data"]));
            let bytes = bytes.map_err(|e| format!("chromium: a picture: {e}"))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            files::write(path.with_file_name(format!("{name}-{scheme}.png")), bytes)?;
        }
        self.call("Emulation.clearDeviceMetricsOverride", json!({}))?;
        self.call("Emulation.setEmulatedMedia", json!({"features": []}))
            .map(drop)
    }

    /// Checks the page's accessibility as far as a program can.
    fn check_page(&mut self, path: &Path) -> Result {
        let wrong = self.text(
            "(() => { const wrong = [], root = document.documentElement; \
             if (root.scrollWidth > innerWidth) wrong.push(`wider than the window: ${root.scrollWidth} > ${innerWidth}`); \
             for (const e of document.querySelectorAll('input:not([type=hidden]), select, textarea, button, a, iframe')) \
               if (e.checkVisibility() && !(e.labels && e.labels.length) && !e.getAttribute('aria-label') && !e.title && !e.innerText.trim()) wrong.push('no name: ' + e.outerHTML.slice(0, 80)); \
             for (const e of document.querySelectorAll('[aria-labelledby], [aria-describedby]')) \
               for (const id of (e.getAttribute('aria-labelledby') || e.getAttribute('aria-describedby')).split(' ')) \
                 if (!document.getElementById(id)) wrong.push('no such label: ' + id); \
             if (document.querySelectorAll('h1').length !== 1 || !root.lang) wrong.push('no heading or language'); \
             return wrong.join('\\n'); })()",
        )?;
        ensure(wrong.is_empty(), || format!("{}: {wrong}", path.display()))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Closing the browser lets its child processes end.
        let _ = self.call("Browser.close", json!({}));
    }
}
