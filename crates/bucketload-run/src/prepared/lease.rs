//! The session that prepares a data set leaves its name in the journal, so that no second one begins beside it.
//!
//! A holder raises `beat` with each entry. Others believe it alive as long as that changes, which needs no clock that
//! both share; only on the same machine is it known at once that a process has ended.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Who prepares the data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lease {
    /// Boot of the machine, namespace of its processes, the process, its start, and the session's number in it.
    session: String,
    host: String,
    pid: u32,
    /// Entries of this session so far.
    beat: u64,
    /// When the last one was written by the holder's wall clock, seconds since 1970; for people who read the journal.
    written_unix_s: u64,
}

impl Lease {
    /// A new session of this process.
    pub(super) fn new() -> Self {
        static SESSIONS: AtomicU32 = AtomicU32::new(0);
        let pid = std::process::id();
        let (boot, space) = place();
        let started = started(pid).unwrap_or_default();
        let number = SESSIONS.fetch_add(1, Relaxed);
        let host = rustix::system::uname();
        Self {
            session: format!("{boot} {space} {pid} {started} {number}"),
            host: host.nodename().to_string_lossy().into_owned(),
            pid,
            beat: 0,
            written_unix_s: unix_s(),
        }
    }

    /// The same lease, held on to.
    pub(super) fn renewed(&self) -> Self {
        Self {
            beat: self.beat + 1,
            written_unix_s: unix_s(),
            ..self.clone()
        }
    }

    /// Whether both are of the same session.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        self.session == other.session
    }

    /// Whether the holder is known to have ended: its process was on this machine and is no more.
    pub(super) fn is_gone(&self) -> bool {
        let parts: Vec<&str> = self.session.split(' ').collect();
        let (boot, space) = place();
        match parts[..] {
            [its_boot, its_space, pid, start, _] if !boot.is_empty() && !space.is_empty() => {
                let here = its_boot == boot && its_space == space;
                let pid: Option<u32> = pid.parse().ok();
                here && pid.is_some_and(|pid| started(pid).as_deref() != Some(start))
            }
            _ => false,
        }
    }

    /// The holder, in words.
    pub(super) fn holder(&self) -> String {
        format!("process {} on {}", self.pid, self.host)
    }
}

/// This boot of the machine, and the namespace of this process's number; empty if unknown.
fn place() -> (String, String) {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    (boot.trim().to_owned(), space.display().to_string())
}

/// When a process started, in ticks since the boot; `None` if it has ended.
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything. After it: the state, and as the 20th field the start (proc_pid_stat(5)).
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let state = fields.next()?;
    let ended = matches!(state, "Z" | "X");
    fields.nth(18).filter(|_| !ended).map(str::to_owned)
}

fn unix_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::{Lease, started};

    #[test]
    fn ended_processes_of_this_machine_are_recognised() {
        let mine = Lease::new();
        assert!(!mine.is_gone() && mine.is_of(&mine.renewed()));
        assert!(!mine.is_of(&Lease::new()), "another session");
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        let of = |session: String| Lease {
            session,
            ..mine.clone()
        };
        let begun = started(child.id()).unwrap();
        let own: Vec<&str> = mine.session.split(' ').collect();
        let line = |boot: &str| of(format!("{boot} {} {} {begun} 0", own[1], child.id()));
        let (here, elsewhere) = (line(own[0]), line("another-boot"));
        assert!(!here.is_gone());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(here.is_gone());
        assert!(!elsewhere.is_gone(), "nobody knows");
        let other = format!("{} {} {} 1 0", own[0], own[1], std::process::id());
        assert!(of(other).is_gone(), "the number belongs to another process");
    }
}
