//! `bucketload top` on a real terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Instant;

use crate::common::agents::{DEADLINE, wait_for};
use crate::common::{bucketload, call};

/// A pseudo-terminal of 100 × 40 characters: the controlling side, and the side of the program.
fn terminal() -> (File, OwnedFd) {
    let size = libc::winsize {
        ws_row: 40,
        ws_col: 100,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let (mut person, mut program) = (-1, -1);
    // SAFETY: the call writes both descriptors and reads the size; null means no name and default settings.
    let code = unsafe {
        libc::openpty(
            &raw mut person,
            &raw mut program,
            std::ptr::null_mut(),
            std::ptr::null(),
            &raw const size,
        )
    };
    assert_eq!(code, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the call succeeded, so both are open descriptors that nobody else owns.
    unsafe { (File::from_raw_fd(person), OwnedFd::from_raw_fd(program)) }
}

/// Local modes of the terminal: echo, line by line, signals.
fn modes(terminal: &OwnedFd) -> libc::tcflag_t {
    // SAFETY: zeroes are a valid value of a struct of integers, which the call fills in.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open and the struct is ours.
    let code = unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut settings) };
    assert_eq!(code, 0);
    settings.c_lflag
}

#[test]
fn the_screen_shows_a_run_takes_keys_and_is_restored() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let run = [
        "run",
        "get",
        "--ops=50",
        "--objects=10",
        "--size=1KiB",
        "--no-calibration",
        "--out=run",
        "--quiet",
    ];
    let done = call(&mut bucketload(dir, &run));
    assert!([0, 1].contains(&done.code), "{}", done.stderr);
    let (mut person, program) = terminal();
    let before = modes(&program);
    let side = || Stdio::from(program.try_clone().unwrap());
    let mut child = bucketload(dir, &["top", "run"])
        .env("TERM", "xterm-256color")
        .stdin(side())
        .stdout(side())
        .stderr(side())
        .spawn()
        .unwrap();
    let (tell, told) = mpsc::channel();
    let mut screen = person.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(n @ 1..) = screen.read(&mut bytes) {
            if tell
                .send(String::from_utf8_lossy(&bytes[..n]).into_owned())
                .is_err()
            {
                return;
            }
        }
    });
    let begin = Instant::now();
    let mut seen = String::new();
    let mut until = |words: &str| {
        while !seen.contains(words) {
            let left = DEADLINE.saturating_sub(begin.elapsed());
            match told.recv_timeout(left) {
                Ok(text) => seen += &text,
                Err(_) => panic!("no {words:?} in {seen:?}"),
            }
        }
        seen.clone()
    };
    // The alternate screen, the run, and the line of keys.
    until("\u{1b}[?1049h");
    until("q quit");
    assert_ne!(modes(&program), before, "keys arrive one by one");
    person.write_all(b"\x1b[D\x1b[Bq").unwrap();
    until("\u{1b}[?1049l");
    let status = wait_for("the end of `top`", || child.try_wait().unwrap());
    assert!(status.success());
    assert_eq!(modes(&program), before, "the terminal is as it was");
}
