//! The fault line seen from the run: a child process, told what to break by lines on its standard input.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use bucketload_core::drill::DrillPlan;
use bucketload_faultline::{Order, Report, Setup};
use bucketload_wire::hosts::split_port;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;

/// The first argument of the process that is a fault line.
pub(crate) const VERB: &str = "fault-line";

/// Is the fault line until standard input ends.
///
/// # Errors
/// When the run that started it sent something else than orders, or the kernel refuses sockets.
pub(crate) fn serve() -> std::io::Result<()> {
    // Not locked: a lock would buffer orders where epoll does not see them.
    let input = std::fs::File::from(rustix::io::dup(std::io::stdin())?);
    bucketload_faultline::serve(input, std::io::stdout())
}

/// A running fault line, which ends with this value.
pub(crate) struct FaultLine {
    child: Child,
    orders: ChildStdin,
    reports: BufReader<ChildStdout>,
    /// Where the client has to connect instead of the endpoints.
    pub(crate) detours: BTreeMap<(String, u16), SocketAddr>,
}

impl FaultLine {
    /// Starts the process before `endpoints`, the URLs of the target. `places` says where the file names the endpoints of
    /// each fault.
    ///
    /// # Errors
    /// When a fault names an endpoint that the target does not have, a name cannot be resolved, or the process does not
    /// start.
    pub(crate) fn start(
        drill: &DrillPlan,
        places: &[String],
        seed: u64,
        endpoints: &[String],
    ) -> Result<Self, String> {
        let struck = struck(drill, places, endpoints)?;
        let hosts = endpoints.iter().map(|url| host_and_port(url));
        let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
        let addresses = hosts.iter().map(address).collect::<Result<Vec<_>, _>>()?;
        let failed = |e: std::io::Error| format!("fault line: {e}");
        let mut child = Command::new(std::env::current_exe().map_err(failed)?)
            .arg(VERB)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C must reach the run only, which needs its connections to clean up.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (Some(orders), Some(reports)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("fault line: the process has no pipes".to_owned());
        };
        keep_off(&child);
        let mut line = Self {
            child,
            orders,
            reports: BufReader::new(reports),
            detours: BTreeMap::new(),
        };
        let setup = Setup {
            seed,
            endpoints: addresses,
            faults: drill.faults.clone(),
            struck,
        };
        match line.ask(&setup)? {
            Report::Listening(at) => line.detours = hosts.into_iter().zip(at).collect(),
            other => return Err(format!("fault line: unexpected answer {other:?}")),
        }
        Ok(line)
    }

    fn ask(&mut self, question: &impl Serialize) -> Result<Report, String> {
        let failed = |e: std::io::Error| format!("fault line: {e}");
        let mut text = serde_json::to_vec(question).map_err(|e| failed(e.into()))?;
        text.push(b'\n');
        self.orders.write_all(&text).map_err(failed)?;
        let mut answer = String::new();
        self.reports.read_line(&mut answer).map_err(failed)?;
        serde_json::from_str(&answer).map_err(|_| "fault line: the process ended".to_owned())
    }

    /// The URL of the fault line before the endpoint `url`.
    pub(crate) fn url_before(&self, url: &str) -> Option<String> {
        let place = host_and_port(url).ok()?;
        Some(format!("http://{}", self.detours.get(&place)?))
    }

    /// Begins or ends a fault. Returns when that was, on the run's clock.
    ///
    /// # Errors
    /// When the process is gone.
    pub(crate) fn order(&mut self, order: Order) -> Result<u64, String> {
        match self.ask(&order)? {
            Report::Done { at_ns } => Ok(on_our_clock(at_ns)),
            other => Err(format!("fault line: unexpected answer {other:?}")),
        }
    }

    /// CPU time (nanoseconds), bytes and connections so far.
    ///
    /// # Errors
    /// When the process is gone.
    pub(crate) fn cost(&mut self) -> Result<(u64, u64, u64), String> {
        match self.ask(&Order::Cost)? {
            Report::Cost {
                cpu_ns,
                bytes,
                connections,
            } => Ok((cpu_ns, bytes, connections)),
            other => Err(format!("fault line: unexpected answer {other:?}")),
        }
    }
}

impl Drop for FaultLine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An instant of `CLOCK_MONOTONIC` as nanoseconds since the run's epoch.
fn on_our_clock(at_ns: u64) -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // The clock is never negative.
    let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    bucketload_run::now_ns()
        .saturating_sub(now.saturating_sub(at_ns))
        .max(1)
}

/// Gives the process the last core, which load threads use last.
fn keep_off(child: &Child) {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if cores > 1 && pid.is_some() {
        let mut set = CpuSet::new();
        set.set(cores - 1);
        // A machine that does not allow it schedules the process as it likes.
        let _ = sched_setaffinity(pid, &set);
    }
}

/// The endpoints that each fault strikes, by index; empty for all.
fn struck(
    drill: &DrillPlan,
    places: &[String],
    endpoints: &[String],
) -> Result<Vec<Vec<usize>>, String> {
    let index = |name: &String, place: &String| {
        let plain = |url: &str| url.trim_end_matches('/').to_owned();
        let found = endpoints.iter().position(|url| {
            plain(url) == plain(name)
                || url
                    .split("://")
                    .nth(1)
                    .is_some_and(|rest| plain(rest) == plain(name))
        });
        found.ok_or_else(|| {
            format!(
                "{place}: fault.endpoints: the target has no endpoint {name:?}\n  help: its endpoints are {}",
                endpoints.join(", ")
            )
        })
    };
    let each = drill.faults.iter().enumerate().map(|(i, fault)| {
        let place = places.get(i).cloned().unwrap_or_default();
        fault
            .endpoints
            .iter()
            .map(|name| index(name, &place))
            .collect()
    });
    each.collect()
}

/// Host and port of an endpoint's URL.
fn host_and_port(url: &str) -> Result<(String, u16), String> {
    let odd = || format!("{url}: the fault line needs an endpoint such as http://HOST:PORT");
    let (scheme, rest) = url.split_once("://").ok_or_else(odd)?;
    let authority = rest.split('/').next().unwrap_or(rest);
    let (host, port) = split_port(authority).ok_or_else(odd)?;
    let default = if scheme == "https" { 443 } else { 80 };
    Ok((host.to_owned(), port.unwrap_or(default)))
}

/// The first address of a host.
fn address((host, port): &(String, u16)) -> Result<SocketAddr, String> {
    let failed = |why: String| format!("{host}: {why}");
    let mut all = (host.as_str(), *port)
        .to_socket_addrs()
        .map_err(|e| failed(e.to_string()))?;
    all.next()
        .ok_or_else(|| failed("the name has no address".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::host_and_port;

    #[test]
    fn endpoints_have_a_host_and_a_port() {
        let of = |url| host_and_port(url).map_err(drop);
        assert_eq!(of("http://h:9000/x"), Ok(("h".to_owned(), 9000)));
        assert_eq!(of("https://h"), Ok(("h".to_owned(), 443)));
        assert_eq!(of("http://[::1]:80"), Ok(("::1".to_owned(), 80)));
        assert_eq!(of("h:9000"), Err(()));
    }
}
