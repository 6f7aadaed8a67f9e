//! What is compared: our program, foreign tools and the floor clients, each as "do this for a
//! moment and say what CPU time it cost".

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::own::{Serve, TempDir, bucketload, bucketload_with_engines, call, run_phase};
use crate::sh::{Result, show};

/// Core that clients are pinned to; servers take the next one.
pub(super) const CLIENT_CORE: usize = 0;

/// What one repetition of a candidate did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// CPU time, nanoseconds.
    pub(super) cpu_ns: f64,
    /// Wall-clock time, nanoseconds.
    pub(super) wall_ns: f64,
    /// Requests.
    pub(super) ops: f64,
    /// Object bytes.
    pub(super) bytes: f64,
}

/// Something that can be measured for a number of seconds.
pub(super) enum Candidate {
    /// Our program: arguments after `run`.
    Own(Vec<String>),
    /// Our program with another client engine: arguments after `run`.
    Engine(Vec<String>),
    /// wrk with these arguments.
    Wrk(Vec<String>),
    /// iperf3 client with these arguments.
    Iperf(Vec<String>),
    /// One of the floor clients.
    Floor(Vec<String>),
}

impl Candidate {
    /// Measures it once.
    pub(super) fn sample(&self, seconds: u32, server: &Serve) -> Result<Sample> {
        match self {
            Self::Own(args) => own(bucketload, args, seconds, server),
            Self::Engine(args) => own(bucketload_with_engines, args, seconds, server),
            Self::Wrk(args) => wrk(args, seconds),
            Self::Iperf(args) => iperf(args, seconds),
            Self::Floor(args) => floor(args, seconds),
        }
    }
}

fn own(
    program: fn(&[&str]) -> Result<Command>,
    args: &[String],
    seconds: u32,
    server: &Serve,
) -> Result<Sample> {
    let dir = TempDir::new("bench")?;
    let (out, duration) = (dir.file("run"), format!("{seconds}s"));
    let core = CLIENT_CORE.to_string();
    let mut line: Vec<&str> = vec!["run"];
    line.extend(args.iter().map(String::as_str));
    line.extend([
        "--duration",
        &duration,
        "--threads",
        "1",
        "--cores",
        &core,
        "--out",
        &out,
        "--output",
        "json",
    ]);
    let outcome = call(program(&line)?.envs(server.aws_env()))?;
    outcome.expect_code(0)?;
    let result = outcome.json()?;
    let phase = run_phase(&result)?;
    let number = |value: &Value| {
        value
            .as_f64()
            .ok_or_else(|| format!("no figure in {phase}"))
    };
    let window = number(&phase["window"]["end_ns"])? - number(&phase["window"]["start_ns"])?;
    let ops = number(&phase["rates"]["ops_per_s"]["mean"])? * window / 1e9;
    Ok(Sample {
        cpu_ns: number(&phase["client"]["cpu_us_per_op"])? * 1e3 * ops,
        wall_ns: window,
        ops,
        bytes: number(&phase["rates"]["bytes_per_s"]["mean"])? * window / 1e9,
    })
}

fn wrk(args: &[String], seconds: u32) -> Result<Sample> {
    let mut command = pinned("wrk", CLIENT_CORE);
    command.args(args).arg(format!("-d{seconds}s"));
    let (text, cpu_ns, wall_ns) = timed(&mut command)?;
    // "  241234 requests in 2.00s, 1.05GB read"
    let ops = text
        .lines()
        .find(|line| line.contains(" requests in "))
        .and_then(|line| line.split_whitespace().next())
        .and_then(|word| word.parse::<f64>().ok())
        .ok_or_else(|| format!("wrk: {text}"))?;
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        return Err(format!("wrk met errors: {text}"));
    }
    Ok(Sample {
        cpu_ns,
        wall_ns,
        ops,
        bytes: 0.0,
    })
}

fn iperf(args: &[String], seconds: u32) -> Result<Sample> {
    let mut command = pinned("iperf3", CLIENT_CORE);
    command.args(args).args(["-J", "-t", &seconds.to_string()]);
    let (text, cpu_ns, wall_ns) = timed(&mut command)?;
    let result: Value = serde_json::from_str(&text).map_err(|e| format!("iperf3: {e}: {text}"))?;
    let bytes = result["end"]["sum_received"]["bytes"]
        .as_f64()
        .ok_or_else(|| format!("iperf3: {text}"))?;
    Ok(Sample {
        cpu_ns,
        wall_ns,
        ops: 0.0,
        bytes,
    })
}

fn floor(args: &[String], seconds: u32) -> Result<Sample> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = pinned(&program.to_string_lossy(), CLIENT_CORE);
    command.arg("floor").args(args).arg(seconds.to_string());
    let (text, _, _) = timed(&mut command)?;
    let result: Value = serde_json::from_str(&text).map_err(|e| format!("floor: {e}: {text}"))?;
    let number = |key: &str| result[key].as_f64().ok_or_else(|| format!("floor: {text}"));
    Ok(Sample {
        cpu_ns: number("cpu_ns")?,
        wall_ns: number("wall_ns")?,
        ops: number("ops")?,
        bytes: number("bytes")?,
    })
}

/// A command whose process is pinned to `core`.
pub(super) fn pinned(program: &str, core: usize) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    // SAFETY: only sched_setaffinity is called between fork and exec, with a mask on the stack.
    unsafe {
        command.pre_exec(move || {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(core, &mut set);
            if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0 {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        });
    }
    command
}

/// Standard output, CPU time and wall time of a command that must succeed.
fn timed(command: &mut Command) -> Result<(String, f64, f64)> {
    let shown = show(command);
    let start = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{shown}: {e}"))?;
    let mut text = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        std::io::Read::read_to_string(&mut stdout, &mut text)
            .map_err(|e| format!("{shown}: {e}"))?;
    }
    let cpu_ns = reap(&child).map_err(|e| format!("{shown}: {e}\n{text}"))?;
    Ok((text, cpu_ns, start.elapsed().as_nanos() as f64))
}

/// Waits for `child` and returns the CPU time it used, nanoseconds.
fn reap(child: &Child) -> Result<f64> {
    let mut status = 0;
    // SAFETY: an all-zero rusage is valid; the pointers are to live locals and the pid is our own
    // child, which nobody else waits for.
    let (pid, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let pid = libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage);
        (pid, usage)
    };
    if pid < 0 || !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
        return Err(format!("ended with status {status}"));
    }
    let ns = |t: libc::timeval| t.tv_sec as f64 * 1e9 + t.tv_usec as f64 * 1e3;
    Ok(ns(usage.ru_utime) + ns(usage.ru_stime))
}
