//! Commands of the user that break, mend and check, each with a time limit.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// How often a running command is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// What a command learns from its environment.
pub(crate) struct Around<'a> {
    /// Name of the fault.
    pub(crate) fault: &'a str,
    /// `break`, `mend` or `check`.
    pub(crate) hook: &'a str,
    /// The target in words.
    pub(crate) target: &'a str,
    /// URLs of the endpoints.
    pub(crate) endpoints: &'a [String],
    /// The run directory.
    pub(crate) run: &'a Path,
}

/// Runs `command` by sh and waits for it, at most `limit`; then it is killed, with all that it started.
///
/// # Errors
/// How it failed.
pub(crate) fn run(command: &str, limit: Duration, around: &Around<'_>) -> Result<(), String> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("DRILL_FAULT", around.fault)
        .env("DRILL_HOOK", around.hook)
        .env("DRILL_TARGET", around.target)
        .env("DRILL_ENDPOINTS", around.endpoints.join(","))
        .env("DRILL_RUN", around.run)
        .stdin(Stdio::null())
        // Results go to standard output.
        .stdout(Stdio::null())
        // Ctrl-C must not end a command that mends.
        .process_group(0)
        .spawn()
        .map_err(|e| format!("sh: {e}"))?;
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(status.to_string()),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK),
            Ok(None) => {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    // Fails if the command ended just now.
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = child.wait();
                return Err(format!("not done within {} s", limit.as_secs_f64()));
            }
            Err(e) => return Err(e.to_string()),
        }
    }
}

/// Repeats `command` until it succeeds, at most `limit`.
///
/// # Errors
/// How it failed last.
pub(crate) fn until_ok(command: &str, limit: Duration, around: &Around<'_>) -> Result<(), String> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match run(command, left, around) {
            Err(_) if Instant::now() + 20 * LOOK < deadline => std::thread::sleep(20 * LOOK),
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::{Around, run, until_ok};

    const SECOND: Duration = Duration::from_secs(1);

    fn around() -> Around<'static> {
        Around {
            fault: "f",
            hook: "break",
            target: "t",
            endpoints: &[],
            run: Path::new("r"),
        }
    }

    #[test]
    fn commands_know_their_fault_and_end_in_time() {
        assert_eq!(
            run(
                "test \"$DRILL_FAULT $DRILL_HOOK\" = 'f break'",
                10 * SECOND,
                &around()
            ),
            Ok(())
        );
        assert!(
            run("exit 3", 10 * SECOND, &around())
                .unwrap_err()
                .contains('3')
        );
        let began = Instant::now();
        let late = run("sleep 60", SECOND / 10, &around()).unwrap_err();
        assert!(
            late.contains("not done within 0.1 s") && began.elapsed() < 30 * SECOND,
            "{late}"
        );
    }

    #[test]
    fn checks_are_repeated() {
        let dir = tempfile::tempdir().unwrap();
        let tries = dir.path().join("tries");
        let command = format!("echo x >> {0}; test $(wc -l < {0}) -ge 3", tries.display());
        assert_eq!(until_ok(&command, 20 * SECOND, &around()), Ok(()));
        assert!(until_ok("false", SECOND / 5, &around()).is_err());
    }
}
