//! Drives headless Chromium over the DevTools protocol, through a pipe: no port, no further program.
//!
//! Messages are JSON that ends with a zero byte. Chromium reads them from its descriptor 3 and writes to 4; a
//! shell connects these with our pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::own::TempDir;
use crate::sh::{Result, root};

/// Widths of windows, pixels: a desk and a telephone.
const WIDE: u32 = 1280;
const NARROW: u32 = 390;
/// Longest wait for something to appear on a page; the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    session: String,
    /// Complaints of the page: errors of scripts, violations of its policy.
    pub(crate) complaints: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser with an empty page.
    pub(crate) fn start() -> Result<Self> {
        let profile = TempDir::new("devtools")?;
        let user_data = format!("--user-data-dir={}", profile.file("profile"));
        let mut child = Command::new("sh")
            .args([
                "-c",
                "exec chromium \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null",
                "sh",
            ])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                // The certificate of the test is nobody's.
                "--ignore-certificate-errors",
                "--window-size=1280,1000",
                "--remote-debugging-pipe",
                &user_data,
                "about:blank",
            ])
            .current_dir(root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("chromium: {e}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("chromium: no pipes".to_owned());
        };
        let mut browser = Self {
            child,
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
        browser.session = attached["sessionId"]
            .as_str()
            .ok_or("chromium: no session")?
            .to_owned();
        for domain in [
            "Page.enable",
            "Runtime.enable",
            "Log.enable",
            "Performance.enable",
            "DOM.enable",
        ] {
            browser.call(domain, json!({}))?;
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
        self.input
            .write_all(&bytes)
            .map_err(|e| format!("chromium: {method}: {e}"))?;
        loop {
            let mut bytes = Vec::new();
            let read = self
                .output
                .read_until(0, &mut bytes)
                .map_err(|e| format!("chromium: {method}: {e}"))?;
            if read == 0 {
                return Err(format!("chromium ended during {method}"));
            }
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

    /// Opens a page and waits until it was loaded.
    pub(crate) fn open(&mut self, url: &str) -> Result {
        self.call("Page.navigate", json!({"url": url}))?;
        self.wait(&format!(
            "document.readyState === 'complete' && location.href.startsWith({})",
            json!(url.split('?').next().unwrap_or(url))
        ))
        .or_else(|_| self.wait("document.readyState === 'complete'"))
    }

    /// The value of an expression in the page.
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

    /// Waits until an expression in the page is true; a page that is being replaced has none.
    pub(crate) fn wait(&mut self, expression: &str) -> Result {
        self.wait_for(expression, PATIENCE)
    }

    /// As [`Browser::wait`], for at most `patience`.
    pub(crate) fn wait_for(&mut self, expression: &str, patience: Duration) -> Result {
        let begin = Instant::now();
        loop {
            if self
                .eval(expression)
                .is_ok_and(|value| value == json!(true))
            {
                return Ok(());
            }
            if begin.elapsed() > patience {
                let text = self.eval("location.href + '\\n' + document.body.innerText")?;
                return Err(format!(
                    "{expression} did not become true; the page:\n{}",
                    text.as_str().unwrap_or_default()
                ));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Waits for a text on the page.
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

    /// Types a text where the focus is.
    pub(crate) fn type_text(&mut self, text: &str) -> Result {
        self.call("Input.insertText", json!({"text": text}))
            .map(drop)
    }

    /// Bytes of the page's JavaScript heap in use, after a collection.
    pub(crate) fn heap(&mut self) -> Result<f64> {
        self.call("HeapProfiler.collectGarbage", json!({}))?;
        let metrics = self.call("Performance.getMetrics", json!({}))?;
        let used = metrics["metrics"].as_array().into_iter().flatten();
        let used = used
            .filter(|m| m["name"] == "JSHeapUsedSize")
            .find_map(|m| m["value"].as_f64());
        used.ok_or_else(|| "chromium: no JSHeapUsedSize".to_owned())
    }

    /// Writes pictures of the page, light and wide and dark and narrow (`PATH-light.png`, `PATH-dark.png`),
    /// and fails where a page is wider than its window or a control has no name.
    pub(crate) fn pictures(&mut self, path: &Path) -> Result {
        self.call("Emulation.setScrollbarsHidden", json!({"hidden": true}))?;
        for (scheme, width) in [("light", WIDE), ("dark", NARROW)] {
            let feature = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
            self.call("Emulation.setEmulatedMedia", feature)?;
            let screen =
                json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
            self.call("Emulation.setDeviceMetricsOverride", screen)?;
            self.check_page(path)?;
            // A frame is drawn by another process, in its own time.
            if self.eval("document.querySelector('iframe') !== null")? == true {
                std::thread::sleep(Duration::from_secs(2));
            }
            let shot = self.call(
                "Page.captureScreenshot",
                json!({"format": "png", "captureBeyondViewport": true}),
            )?;
            let bytes = base64(shot["data"].as_str().unwrap_or_default());
            let file = path.with_file_name(format!(
                "{}-{scheme}.png",
                path.file_name().unwrap_or_default().to_string_lossy()
            ));
            std::fs::write(&file, bytes).map_err(|e| format!("{}: {e}", file.display()))?;
        }
        self.call("Emulation.clearDeviceMetricsOverride", json!({}))?;
        self.call("Emulation.setEmulatedMedia", json!({"features": []}))
            .map(drop)
    }

    /// What a program can see of a page's accessibility.
    fn check_page(&mut self, path: &Path) -> Result {
        let wrong = self.eval(
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
        match wrong.as_str() {
            Some("") => Ok(()),
            other => Err(format!(
                "{}: {}",
                path.display(),
                other.unwrap_or("not checked")
            )),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Closing lets the browser's own children end.
        let _ = self.call("Browser.close", json!({}));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Decodes base64 (RFC 4648 section 4); what is no digit is passed over.
fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut held, mut out) = (0u32, 0u32, Vec::new());
    for digit in text
        .bytes()
        .filter_map(|b| DIGITS.iter().position(|&d| d == b))
    {
        bits = bits << 6 | digit as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_is_decoded() {
        assert_eq!(super::base64("Zm9vYmE="), b"fooba");
        assert_eq!(super::base64("Zm9vYmFy"), b"foobar");
    }
}
