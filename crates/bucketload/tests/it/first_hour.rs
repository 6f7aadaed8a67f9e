//! The mistakes of the first hour: each is made by running the program, which must say what happened, where, and what
//! to do.
//!
//! `tests/data/first_hour.txt` holds situation, command, message and exit code; the manual's page on errors shows it.
//! `UPDATE_GOLDEN=1` writes what the program says now. Commands run in a shell, in an empty directory, with the
//! addresses of [`Stage`] in place of those that the file shows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{ACCESS_KEY, SECRET_KEY, Serve, bucketload, call};

/// The table.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/first_hour.txt");

/// What stands for the directory that a command runs in.
const DIR: &str = "/DIR";

/// A mistake.
struct Row<'a> {
    situation: &'a str,
    command: &'a str,
    /// What follows the command in the table: the exit code and the message.
    expected: String,
}

/// A line of the table that is no row, or a row.
enum Part<'a> {
    Heading(&'a str),
    Row(Row<'a>),
}

fn parse(table: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut situation = "";
    for line in table.lines() {
        if line.starts_with("# ") {
            parts.push(Part::Heading(line));
        } else if let Some(rest) = line.strip_prefix("= ") {
            situation = rest;
        } else if let Some(command) = line.strip_prefix("$ ") {
            parts.push(Part::Row(Row {
                situation,
                command,
                expected: String::new(),
            }));
        } else if let Some(Part::Row(row)) = parts.last_mut() {
            row.expected += line;
            row.expected.push('\n');
        }
    }
    parts
}

/// The servers of the mistakes, by the ports that the table shows.
struct Stage {
    _servers: Vec<Serve>,
    /// The actual port of each.
    ports: BTreeMap<u16, u16>,
    certificates: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let certificates = tempfile::tempdir().unwrap();
        let mut stage = Self {
            _servers: Vec::new(),
            ports: BTreeMap::new(),
            certificates,
        };
        stage.serve(9000, &[]);
        stage.serve(9004, &["--fault", "status=403,op=put"]);
        stage.serve(9005, &["--fault", "status=403,op=list"]);
        stage.serve(9006, &["--fault", "full,after=20KiB"]);
        stage.serve(9016, &["--fault", "full,after=20KiB"]);
        stage.serve(9009, &["--fault", "status=403,op=get"]);
        stage.serve(9010, &["--fault", "status=403,op=delete+delete-many"]);
        stage.serve(9012, &["--fault", "reset"]);
        stage.tls(9443, "self", "localhost", 2099);
        stage.tls(9444, "expired", "localhost", 2021);
        stage.tls(9445, "other", "store.example", 2099);
        stage.answer(
            9001,
            "200 OK",
            "text/html",
            "<!doctype html><title>Console</title>",
        );
        stage.answer(
            9020,
            "400 Bad Request",
            "text/plain",
            "Client sent an HTTP request to an HTTPS server.\n",
        );
        stage.refuse(
            9003,
            403,
            "RequestTimeTooSkewed",
            "The difference between the request time and the server's time is too large.",
        );
        stage.refuse(9007, 403, "AccessDenied", "Access Denied.");
        stage.refuse(9008, 503, "SlowDown", "Please reduce your request rate.");
        stage.refuse(
            9011,
            301,
            "PermanentRedirect",
            "The bucket must be addressed using the specified endpoint.",
        );
        stage.refuse(9013, 400, "ExpiredToken", "The provided token has expired.");
        stage.refuse(
            9014,
            403,
            "QuotaExceeded",
            "The quota of this user is used up.",
        );
        stage.listen(9002, |mut stream| {
            // Reads until the client gives up.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        stage.listen(9022, |mut stream| {
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
            let _ = stream.read_to_end(&mut Vec::new());
        });
        // Closed at once, so that nothing listens there.
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        stage
            .ports
            .insert(9999, closed.local_addr().unwrap().port());
        stage
    }

    fn add(&mut self, shown: u16, server: Serve) {
        let (_, port) = server.address.rsplit_once(':').unwrap();
        self.ports.insert(shown, port.parse().unwrap());
        self._servers.push(server);
    }

    /// The embedded server, with the bucket `bench`.
    fn serve(&mut self, shown: u16, more: &[&str]) {
        let root = self.certificates.path().join(shown.to_string());
        std::fs::create_dir_all(&root).unwrap();
        let store = format!("posix:{}", root.display());
        let plain = Serve::start(&["--store", &store]);
        let make = [
            "run",
            "put",
            "--ops",
            "1",
            "--no-calibration",
            "--create-bucket",
            "--keep",
            "--target",
            "s3://bench/t",
        ];
        let url = plain.url();
        call(bucketload(self.certificates.path(), &make).env("AWS_ENDPOINT_URL", url))
            .expect(0, &[]);
        match more {
            [] => self.add(shown, plain),
            more => {
                drop(plain);
                let server = Serve::start(&[&["--store", &store], more].concat());
                self.add(shown, server);
            }
        }
    }

    /// The embedded server with a certificate, which is `NAME.pem`.
    fn tls(&mut self, shown: u16, name: &str, host: &str, until: i32) {
        let names = match host {
            "localhost" => vec![host.to_owned(), "127.0.0.1".to_owned()],
            _ => vec![host.to_owned()],
        };
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(until, 2, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let dir = self.certificates.path();
        let paths = [format!("{name}.pem"), format!("{name}.key")].map(|file| dir.join(file));
        std::fs::write(&paths[0], params.self_signed(&key).unwrap().pem()).unwrap();
        std::fs::write(&paths[1], key.serialize_pem()).unwrap();
        let paths = paths.map(|path| path.to_string_lossy().into_owned());
        let args = [
            "--store",
            "memory",
            "--tls-cert",
            &paths[0],
            "--tls-key",
            &paths[1],
        ];
        self.add(shown, Serve::start(&args));
    }

    /// A server that handles each connection with `handle`. Its thread ends with the process.
    fn listen(&mut self, shown: u16, handle: impl Fn(TcpStream) + Send + Sync + Clone + 'static) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        self.ports
            .insert(shown, listener.local_addr().unwrap().port());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let handle = handle.clone();
                std::thread::spawn(move || handle(stream));
            }
        });
    }

    /// A server with one answer to everything.
    fn answer(&mut self, shown: u16, status: &str, kind: &str, body: &str) {
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let body = body.to_owned();
        self.listen(shown, move |mut stream| {
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut piece) {
                    Ok(n) if n > 0 => request.extend_from_slice(&piece[..n]),
                    _ => return,
                }
            }
            let has_body = !request.starts_with(b"HEAD ");
            let body = if has_body { body.as_str() } else { "" };
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        });
    }

    /// A server that refuses everything with an error document of S3.
    fn refuse(&mut self, shown: u16, status: u16, code: &str, message: &str) {
        let body = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
        self.answer(shown, &format!("{status} No"), "application/xml", &body);
    }

    /// `text` with the ports of this process, or back with those of the table.
    fn ported(&self, text: &str, back: bool) -> String {
        // In two steps: a port of one list may also be in the other.
        let mut out = text.to_owned();
        for (shown, actual) in &self.ports {
            let from = if back { actual } else { shown };
            out = out.replace(&format!(":{from}"), &format!(":\u{1}{shown}\u{1}"));
        }
        for (shown, actual) in &self.ports {
            let to = if back { shown } else { actual };
            out = out.replace(&format!("\u{1}{shown}\u{1}"), &to.to_string());
        }
        out
    }

    /// Runs a row: the exit code, and what the program said, with stand-ins for what differs between machines.
    fn run(&self, row: &Row<'_>) -> String {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for name in ["self", "expired", "other"] {
            let file = format!("{name}.pem");
            std::fs::copy(self.certificates.path().join(&file), home.join(file)).unwrap();
        }
        let program = PathBuf::from(env!("CARGO_BIN_EXE_bucketload"));
        let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
        let home_text = home.to_string_lossy();
        let line = self.ported(row.command, false).replace(DIR, &home_text);
        // The limit ends a command that succeeds although it should not, such as a server.
        let launcher = launcher(row);
        if launcher.first() == Some(&"setpriv") {
            std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let out = Command::new("timeout")
            .args(["--kill-after=1", "30"])
            .args(launcher)
            .args(["sh", "-c", &line])
            .current_dir(&home)
            .env_clear()
            .env("PATH", path)
            .env("HOME", &home)
            .env("LC_ALL", "C")
            .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
            .env("AWS_REGION", "us-east-1")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env(
                "AWS_ENDPOINT_URL",
                self.ported("http://127.0.0.1:9000", false),
            )
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(
            !said.contains(SECRET_KEY),
            "{}: the secret is shown",
            row.situation
        );
        let said = self.ported(&said, true).replace(&*home_text, DIR);
        format!(
            "exit {}\n{}",
            out.status.code().unwrap_or(-1),
            masked(&said)
        )
    }
}

/// `text` without what differs from run to run: identifiers, dates, durations, the words of the resolver.
fn masked(text: &str) -> String {
    let resolver = [
        "Name or service not known",
        "Temporary failure in name resolution",
        "No address associated with hostname",
    ];
    let mut text = text.to_owned();
    for words in resolver {
        text = text.replace(words, resolver[0]);
    }
    // A build with all features has one more driver.
    text = text.replace(" hdfs://BUCKET/PREFIX,", "");
    if let Some((before, rest)) = text.split_once("affinity mask [")
        && let Some((_, behind)) = rest.split_once(']')
    {
        text = format!("{before}affinity mask [CORES]{behind}");
    }
    let mut out = String::new();
    // A row of the table ends with an empty line.
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let shown = words.iter().enumerate().map(|(at, word)| {
            let next = words.get(at + 1).copied().unwrap_or_default();
            let is_number = word.trim_start_matches('(').parse::<u64>().is_ok();
            match word {
                _ if is_number && matches!(next, "days" | "others") => "(N".to_owned(),
                _ => without_run_id(word),
            }
        });
        let line = shown.collect::<Vec<_>>().join(" ");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// `word` with `N` in place of an object's number, which has 13 digits, and `RUN` in place of a run's identifier (`bucketload-1795624454-0a1b2c3d`) and time
/// (`put-20261125T163245Z`).
fn without_run_id(word: &str) -> String {
    let is_time = |part: &str| part.len() == 16 && part.ends_with('Z') && part.contains('T');
    let is_seconds = |part: &str| part.len() == 10 && part.parse::<u64>().is_ok();
    let mut out = Vec::new();
    let mut parts = word.split('-').peekable();
    while let Some(part) = parts.next() {
        let head: String = part.chars().take(16).collect();
        if is_time(&head) {
            out.push(format!("TIME{}", &part[16..]));
        } else if is_seconds(part) && parts.peek().is_some_and(|next| next.len() >= 8) {
            let random = parts.next().unwrap_or_default();
            out.push(format!("RUN{}", &random[8..]));
        } else {
            out.push(part.to_owned());
        }
    }
    let word = out.join("-");
    let number = |part: &str| part.len() >= 13 && part[..13].bytes().all(|b| b.is_ascii_digit());
    let parts = word.split('/').map(|part| match number(part) {
        true => format!("N{}", &part[13..]),
        false => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// The user and group `nobody`.
const NOBODY: u32 = 65_534;

/// What starts the shell of a row that needs another host or user: a network of its own, which has no routes; a user whom
/// the mode of a directory binds.
fn launcher(row: &Row<'_>) -> &'static [&'static str] {
    let is_root = rustix::process::getuid().is_root();
    match row.command {
        command if command.contains("[2001:db8::1]") => &["unshare", "-rn"],
        command if command.contains("chmod") && is_root => &[
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ],
        _ => &[],
    }
}

/// Whether this system lets the test start the program in that way.
fn can_launch(launcher: &[&str]) -> bool {
    let mut words = launcher
        .iter()
        .chain(&[env!("CARGO_BIN_EXE_bucketload"), "--version"]);
    let mut command = Command::new(words.next().unwrap());
    let quiet = command
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

#[test]
fn each_mistake_gets_the_message_that_the_manual_shows() {
    let table = std::fs::read_to_string(TABLE).unwrap();
    let parts = parse(&table);
    let stage = Stage::new();
    let filter = std::env::var("FIRST_HOUR").unwrap_or_default();
    let rows: Vec<&Row<'_>> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Row(row) => Some(row),
            Part::Heading(_) => None,
        })
        .collect();
    let said: Mutex<BTreeMap<usize, String>> = Mutex::default();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let index = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(row) = rows.get(index)
                {
                    let kept = !can_launch(launcher(row)) || !row.command.contains(&filter);
                    let text = if kept {
                        row.expected.trim().to_owned()
                    } else {
                        stage.run(row)
                    };
                    said.lock().unwrap().insert(index, text);
                }
            });
        }
    });
    let said = said.into_inner().unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(TABLE, rewritten(&parts, &said)).unwrap();
        return;
    }
    let mut wrong = String::new();
    for (index, row) in rows.iter().enumerate() {
        let (now, expected) = (said[&index].trim(), row.expected.trim());
        if now != expected {
            let _ = writeln!(
                wrong,
                "= {}\n$ {}\n--- expected\n{expected}\n--- said\n{now}\n",
                row.situation, row.command
            );
        }
    }
    assert!(
        wrong.is_empty(),
        "UPDATE_GOLDEN=1 writes the table anew\n{wrong}"
    );
}

fn rewritten(parts: &[Part<'_>], said: &BTreeMap<usize, String>) -> String {
    let mut out = String::new();
    let mut said = said.values();
    for part in parts {
        let _ = match part {
            Part::Heading(line) => writeln!(out, "{line}\n"),
            Part::Row(row) => writeln!(
                out,
                "= {}\n$ {}\n{}\n",
                row.situation,
                row.command,
                said.next().unwrap().trim()
            ),
        };
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}
