//! The first hour of a newcomer: the program alone in an empty home, a store that somebody else runs, and the five
//! commands of `docs/howto/first-hour.md`, typed on a terminal of 80 columns.
//!
//! The page shows three such sessions as they happened. This part types the page's commands, and fails if one ends
//! otherwise, if a session takes five minutes, if something of ours is left or something foreign is gone.
//! `UPDATE_GOLDEN=1` puts the new sessions into the page.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::small_servers::{curl, keys_of};
use crate::files::{self, TempDir};
use crate::process::Process;
use crate::program::program;
use crate::server::Server;
use crate::sh::{Result, ensure, line, need_programs, none_of, root, step, write_between};

/// A session may take less than this.
const LIMIT: Duration = Duration::from_secs(300);
/// The address that the page shows in place of the server's.
const SHOWN: &str = "127.0.0.1:9000";
/// Objects that somebody else wrote.
const FOREIGN: [&str; 2] = ["first-hour/notes.txt", "theirs"];
const CONTENT: &str = "not the runs' business";

/// What is typed, and the exit code that follows.
type Typed = (&'static str, i32);

/// A session on one server.
struct Session {
    server: &'static str,
    /// The bucket that exists before, with the foreign objects.
    bucket: &'static str,
    /// Answers to the questions of the first command.
    answers: &'static [&'static str],
    commands: [Typed; 5],
}

const RUN: &str = "bucketload run online-service --objects 2000 --target @desk";
const INIT: &str =
    "bucketload init desk --target s3://bench/first-hour --endpoint-url http://127.0.0.1:9000";
const DOCTOR: &str = "bucketload doctor @desk";
const REPORT: &str = "bucketload report";
const CLEANUP: &str = "bucketload cleanup --target @desk";

const SESSIONS: [Session; 3] = [
    Session {
        server: "minio",
        bucket: "bench",
        answers: &["", "http://127.0.0.1:9000", "bench/first-hour", ""],
        commands: [
            ("bucketload init", 0),
            (DOCTOR, 0),
            (RUN, 0),
            (REPORT, 0),
            (CLEANUP, 0),
        ],
    },
    // The bucket does not exist: the run makes it, and `cleanup` removes what was kept, and the bucket.
    Session {
        server: "versitygw",
        bucket: "others",
        answers: &[],
        commands: [
            (INIT, 0),
            ("bucketload doctor @desk --create-bucket", 1),
            (
                "bucketload run online-service --objects 2000 --target @desk --create-bucket --keep",
                0,
            ),
            (REPORT, 0),
            (CLEANUP, 0),
        ],
    },
    // Tags overwrite objects: a dialect.
    Session {
        server: "gofakes3",
        bucket: "bench",
        answers: &[],
        commands: [(INIT, 0), (DOCTOR, 1), (RUN, 0), (REPORT, 0), (CLEANUP, 0)],
    },
];

/// All sessions; one failure does not hide the next.
pub(super) fn all() -> Result {
    need_programs(&[("script", "bsdutils"), ("curl", "curl")])?;
    let failures = SESSIONS
        .iter()
        .filter_map(|session| step(session.server, || session.run()).err());
    none_of(&failures.collect::<Vec<_>>())
}

fn page() -> PathBuf {
    root().join("docs/howto/first-hour.md")
}

impl Session {
    fn run(&self) -> Result {
        let server = Server::start(self.server)?;
        let bucket = self.bucket;
        curl(&server, "PUT", bucket, None)?;
        for key in FOREIGN {
            curl(&server, "PUT", &format!("{bucket}/{key}"), Some(CONTENT))?;
        }
        let home = TempDir::new("first-hour")?;
        files::copy(program()?, &home.path().join("bin/bucketload"))?;
        let begun = Instant::now();
        let mut text = String::new();
        let mut before = String::new();
        for (n, (command, code)) in self.commands.iter().enumerate() {
            let answers = if n == 0 { self.answers } else { &[] };
            let (screen, ended) = typed(&server, &home, command, answers)?;
            eprintln!("$ {command}\n{screen}");
            ensure(ended == *code, || {
                format!("{command}: exit code {ended} instead of {code}\n{screen}")
            })?;
            // Writing to a text cannot fail.
            let _ = writeln!(text, "$ {command}");
            text += &without_repetition(&screen, &before);
            before = screen;
        }
        let took = begun.elapsed();
        ensure(took < LIMIT, || format!("the session took {took:?}"))?;
        eprintln!("{}: five commands in {took:?}", self.server);
        self.only_foreign(&server)?;
        self.publish(&text)
    }

    /// Fails unless the server holds the foreign objects, unchanged, and nothing of the runs.
    fn only_foreign(&self, server: &Server) -> Result {
        let bucket = self.bucket;
        let (_, listing) = curl(server, "GET", bucket, None)?;
        let keys = keys_of(&listing);
        ensure(keys == FOREIGN, || {
            format!("{bucket} holds {keys:?} after the session")
        })?;
        for key in FOREIGN {
            let (_, body) = curl(server, "GET", &format!("{bucket}/{key}"), None)?;
            ensure(body == CONTENT, || format!("{bucket}/{key} reads {body:?}"))?;
        }
        let (status, _) = curl(server, "GET", "bench", None)?;
        let wanted = if bucket == "bench" { 200 } else { 404 };
        ensure(status == wanted, || {
            format!("GET bench: {status} instead of {wanted}")
        })
    }

    /// Puts the session into the page, or fails unless the page shows these commands.
    fn publish(&self, text: &str) -> Result {
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            return write_between(&page(), self.server, &format!("```text\n{text}```"));
        }
        let shown = files::read(page())?;
        let section = shown.split_once(&format!("<!-- {} -->", self.server));
        let section = section.and_then(|(_, rest)| rest.split_once("<!-- end"));
        let section = section.map_or("", |(section, _)| section);
        let shown: Vec<&str> = section
            .lines()
            .filter_map(|line| line.strip_prefix("$ "))
            .collect();
        let wanted: Vec<&str> = self.commands.iter().map(|(command, _)| *command).collect();
        ensure(shown == wanted, || {
            format!("docs/howto/first-hour.md shows {shown:?}; write it with UPDATE_GOLDEN=1")
        })
    }
}

/// Types `command` and the `answers` to its questions on a terminal; what stays on the screen, and the exit code.
fn typed(
    server: &Server,
    home: &TempDir,
    command: &str,
    answers: &[&str],
) -> Result<(String, i32)> {
    let (id, secret) = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY");
    let endpoint = server.get("ENDPOINT")?;
    let address = endpoint.trim_start_matches("http://");
    let there = |text: &str| text.replace(SHOWN, address);
    // The shell sets the window's size; the program finds nothing else on its PATH.
    let typed = format!(
        "stty cols 80 rows 40; export PATH={}; exec {}",
        home.file("bin"),
        there(command)
    );
    let mut script = line(&format!("timeout {} script -qefc", LIMIT.as_secs()));
    script
        .args([&typed, "/dev/null"])
        .current_dir(home.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .env("LC_ALL", "C.UTF-8")
        .env(id, server.get(id)?)
        .env(secret, server.get(secret)?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut process = Process::start(&mut script)?;
    let (input, output) = (process.child.stdin.take(), process.child.stdout.take());
    let (Some(mut input), Some(mut output)) = (input, output) else {
        return Err(format!("{command}: no pipes"));
    };
    let failed = |e: std::io::Error| format!("{command}: {e}");
    let (mut answers, mut bytes, mut part) = (answers.iter(), Vec::new(), [0; 4096]);
    loop {
        let read = output.read(&mut part).map_err(failed)?;
        if read == 0 {
            break;
        }
        bytes.extend_from_slice(&part[..read]);
        if bytes.ends_with(b": ")
            && let Some(answer) = answers.next()
        {
            writeln!(input, "{}", there(answer)).map_err(failed)?;
        }
    }
    let status = process.child.wait().map_err(failed)?;
    let screen = screen(&String::from_utf8_lossy(&bytes)).replace(address, SHOWN);
    ensure(!screen.contains(server.get(secret)?), || {
        format!("{command} shows the secret key")
    })?;
    Ok((screen, status.code().unwrap_or(-1)))
}

/// What a terminal shows after `output`: lines that are written again replace what they showed; colours are left out.
fn screen(output: &str) -> String {
    let mut lines = vec![String::new()];
    let mut at = 0;
    let mut chars = output.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => {
                at += 1;
                if at == lines.len() {
                    lines.push(String::new());
                }
            }
            '\r' if chars.peek() != Some(&'\n') => lines[at].clear(),
            '\r' => {}
            '\u{1b}' => {
                let mut code = String::new();
                for c in chars.by_ref().skip_while(|c| *c == '[') {
                    code.push(c);
                    if c.is_ascii_alphabetic() {
                        break;
                    }
                }
                match code.split_at(code.len().saturating_sub(1)) {
                    (count, "A") => {
                        at = at.saturating_sub(count.parse().unwrap_or(1));
                    }
                    ("" | "0", "J") => {
                        lines.truncate(at + 1);
                        lines[at].clear();
                    }
                    ("" | "0" | "2", "K") => lines[at].clear(),
                    _ => {}
                }
            }
            other => lines[at].push(other),
        }
    }
    let mut text = lines.join("\n");
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// `screen`, with a note in place of a longer part that the screen `before` showed too, to its end.
fn without_repetition(screen: &str, before: &str) -> String {
    let (lines, old): (Vec<&str>, Vec<&str>) = (screen.lines().collect(), before.lines().collect());
    let same = lines
        .iter()
        .position(|first| old.contains(first))
        .map(|from| {
            let start = old.iter().position(|line| *line == lines[from]);
            let start = start.unwrap_or_default();
            let pairs = lines[from..].iter().zip(&old[start..]);
            (from, pairs.take_while(|(a, b)| a == b).count())
        });
    match same {
        Some((from, count)) if count > 10 => {
            let mut text = lines[..from + 1].join("\n");
            let _ = write!(text, "\n[{} more lines, as above]\n", count - 1);
            text += &lines[from + count..].join("\n");
            format!("{}\n", text.trim_end())
        }
        _ => screen.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{screen, without_repetition};

    #[test]
    fn lines_that_are_written_again_replace_what_they_showed() {
        let output = "one\r\nwait 1\r\n\u{1b}[1A\u{1b}[Jwait 2\r\n\u{1b}[1A\u{1b}[J\u{1b}[1mdone\u{1b}[0m\r\n\r\n";
        assert_eq!(screen(output), "one\ndone\n");
        assert_eq!(screen("10 %\r20 %\r\n"), "20 %\n");
    }

    #[test]
    fn what_the_screen_before_showed_is_not_shown_twice() {
        let table: String = (0..20).map(|n| format!("row {n}\n")).collect();
        let before = format!("calibrating\n{table}report: a\n");
        let now = format!("{table}report: b\n");
        assert_eq!(
            without_repetition(&now, &before),
            "row 0\n[19 more lines, as above]\nreport: b\n"
        );
        assert_eq!(without_repetition("short\n", "short\n"), "short\n");
    }
}
