//! A controller as a child process, and requests to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::common::agents::wait_for;
use crate::common::{Outcome, bucketload, call};

/// A controller; killed when dropped.
pub(crate) struct Controller {
    child: Child,
    pub(crate) url: String,
}

impl Controller {
    pub(crate) fn start(dir: &Path, args: &[&str]) -> Self {
        let own = ["controller", "--listen", "127.0.0.1:0", "--data", "data"];
        let mut child = bucketload(dir, &[&own, args].concat())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let url = line
            .split_whitespace()
            .find(|word| word.starts_with("http://"))
            .unwrap_or_else(|| panic!("{line}"));
        let url = url.trim_end_matches('/').to_owned();
        // Nobody reads further output, which must not end the controller.
        std::thread::spawn(move || lines.lines().for_each(drop));
        Self { child, url }
    }

    /// Submits a workload with these arguments.
    pub(crate) fn submit(&self, dir: &Path, args: &[&str]) -> Outcome {
        let line = [&["submit", "--controller", &self.url], args].concat();
        call(&mut bucketload(dir, &line))
    }

    /// Sends an HTTP request. Returns status and body.
    pub(crate) fn ask(&self, head: &str, body: &str) -> (u16, String) {
        let address = self.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!(
            "{head}\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// Fetches a path.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.ask(&format!("GET {path} HTTP/1.1"), "")
    }

    /// Waits until a job is over, and returns it.
    pub(crate) fn over(&self, dir: &Path, id: &str) -> serde_json::Value {
        self.until(dir, id, |job| job["ended_ms"] != 0);
        self.job(dir, id)
    }

    /// The state of a job, from `info --json`.
    pub(crate) fn job(&self, dir: &Path, id: &str) -> serde_json::Value {
        let info = call(&mut bucketload(
            dir,
            &["info", id, "--json", "--controller", &self.url],
        ));
        info.expect(0, &[]);
        info.json()[0].clone()
    }

    pub(crate) fn until(&self, dir: &Path, id: &str, done: impl Fn(&serde_json::Value) -> bool) {
        wait_for(&format!("job {id}"), || {
            done(&self.job(dir, id)).then_some(())
        });
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
