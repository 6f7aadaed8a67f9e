//! A controller with simulated runs: the real queue, pages and event streams, with run directories written in
//! simulated time. `cargo xtask conformance console` uses it for the page of a day-long run, and for a comparison of
//! runs that do not depend on the load of the machine.
//!
//! A workload called `day` has a day of one-second intervals and then waits to be cancelled. Every other workload is
//! a minute at 200/s, judged by the ordinary rules; `slower…` takes 30 % longer per operation.
//!
//! The only argument is the data directory. The program prints its URL and exits when its standard input closes.

#[path = "../../bucketload-results/tests/support/mod.rs"]
mod support;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bucketload_console::controller::{Controller, ControllerConfig};
use bucketload_console::launcher::{BoxFuture, CheckResult, Launcher, RunningProcess, Task};
use bucketload_console::outcome;
use bucketload_console::queue::ProcessExit;
use bucketload_console::server::Server;
use bucketload_console::web::{Console, ConsoleConfig, router};
use bucketload_core::op::OpClass;
use bucketload_core::sink::{Event, PhaseEnd, RunSink as _};
use bucketload_core::tally::{Gauges, Interval, Tally};
use bucketload_results::rundir::{self, RunDirSink, RunEnd, Status};
use bucketload_results::{analyze, report};
use support::{SECOND, Shape, end, feed, manifest, plan};
use tokio::sync::watch;

/// A day, seconds.
const DAY: u64 = 86_400;

struct Simulated;

impl Launcher for Simulated {
    fn check<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<CheckResult, String>> {
        Box::pin(async move {
            let name = name_of(task)?;
            Ok(CheckResult {
                name,
                notes: Vec::new(),
            })
        })
    }

    fn start(&self, task: &Task) -> io::Result<Box<dyn RunningProcess>> {
        let (ended, stop) = (watch::Sender::new(None), Arc::new(AtomicBool::new(false)));
        let (tell, stopped) = (ended.clone(), Arc::clone(&stop));
        let name = name_of(task).map_err(io::Error::other)?;
        let run = task.dir.join("run");
        std::thread::spawn(move || {
            let code = match name.as_str() {
                "day" => a_day(&run, &stopped),
                name => a_minute(&run, name),
            };
            if let Err(e) = &code {
                eprintln!("{name}: {e}");
            }
            tell.send_replace(Some(ProcessExit::Code(code.unwrap_or(4))));
        });
        Ok(Box::new(Process { ended, stop }))
    }

    fn wait_until_unused<'a>(&'a self, _: &'a Path) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

/// Extracts the name from the workload file.
fn name_of(task: &Task) -> Result<String, String> {
    let text = std::fs::read_to_string(task.dir.join(&task.workload)).map_err(|e| e.to_string())?;
    let name = text.split('"').nth(1).ok_or("there is no name")?;
    Ok(name.to_owned())
}

struct Process {
    ended: watch::Sender<Option<ProcessExit>>,
    stop: Arc<AtomicBool>,
}

impl RunningProcess for Process {
    fn wait(&mut self) -> BoxFuture<'_, io::Result<ProcessExit>> {
        let mut ended = self.ended.subscribe();
        Box::pin(async move {
            let ended = ended.wait_for(Option::is_some).await;
            let ended = ended.map_err(io::Error::other)?;
            (*ended).ok_or_else(|| io::Error::other("no end"))
        })
    }

    fn interrupt(&mut self) {
        self.stop.store(true, Ordering::Release);
    }

    fn kill(&mut self) {
        self.interrupt();
    }
}

/// An interval of one second with eight classes.
fn second(latencies_ns: &[u64]) -> Interval {
    let mut tally = Tally::new();
    for &class in &OpClass::ALL[..8] {
        let cell = tally.cell_mut(0, class);
        cell.ok = 10;
        cell.bytes = 10 << 12;
        latencies_ns.iter().for_each(|&ns| cell.response.record(ns));
    }
    tally.offered = 80;
    Interval {
        phase: 1,
        index: 0,
        start_ns: 0,
        end_ns: 0,
        tally,
        gauges: Gauges::default(),
    }
}

/// Writes a day-long run as fast as possible, then waits to be cancelled.
fn a_day(run: &Path, stop: &AtomicBool) -> Result<i32, String> {
    let mut sink = RunDirSink::create(run, manifest(plan(80.0, DAY))).map_err(|e| e.to_string())?;
    sink.event(&Event::PhaseStarted { phase: 1, at_ns: 0 });
    // Every 256th second has latencies over five decades, which a long run would have in every second.
    let wide: Vec<u64> = (0..300).map(|n| 20_000 + n * n * n * 37).collect();
    let (mut few, mut rich) = (second(&[1_000_000, 1_200_000, 4_000_000]), second(&wide));
    for index in 0..DAY {
        let now = if index % 256 == 0 {
            &mut rich
        } else {
            &mut few
        };
        (now.index, now.start_ns, now.end_ns) = (index, index * SECOND, (index + 1) * SECOND);
        sink.interval(now);
        if stop.load(Ordering::Acquire) {
            return Ok(130);
        }
    }
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(130)
}

/// Writes a minute of measurement with verdict and report, like `bucketload run`.
fn a_minute(run: &Path, name: &str) -> Result<i32, String> {
    let told = |e: bucketload_results::ResultsError| e.to_string();
    let seed = name.bytes().fold(7, |sum: u64, byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    let slowness = if name.starts_with("slower") { 1.3 } else { 1.0 };
    let shape = Shape {
        // Runs differ by a few per cent, like real ones.
        slowness: slowness * (1.0 + 0.005 * (seed % 5) as f64),
        seed,
        ..Shape::default()
    };
    let mut manifest = manifest(plan(shape.rate, shape.seconds));
    manifest.run_id = name.to_owned();
    let mut sink = RunDirSink::create(run, manifest).map_err(told)?;
    feed(&mut sink, &shape);
    end(&mut sink, &shape, PhaseEnd::TimeLimit);
    sink.finish(RunEnd {
        status: Status::Finished,
        ended_unix_ns: 1_767_323_200 * SECOND,
        error: None,
    })
    .map_err(told)?;
    let result = analyze(run).map_err(told)?;
    rundir::write_verdict(run, &result.verdict).map_err(told)?;
    outcome::write(run, &result).map_err(|e| e.to_string())?;
    let page = report::html(&result);
    std::fs::write(run.join("report.html"), page).map_err(|e| e.to_string())?;
    Ok(0)
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

fn main() -> Result<(), String> {
    let data = std::env::args_os().nth(1).map(PathBuf::from);
    let controller = Controller::open(ControllerConfig {
        data: data.ok_or("the data directory is missing")?,
        launcher: Arc::new(Simulated),
        grace: Duration::from_secs(10),
        clock: Arc::new(unix_ms),
    })?;
    let loopback = ([127, 0, 0, 1], 0).into();
    let server = Server::bind(loopback, None)?;
    let address = server.address().map_err(|e| e.to_string())?;
    let console = Console::new(controller.clone(), ConsoleConfig::default())?;
    println!("console: http://{address}/");
    let stopper = controller.clone();
    std::thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        stopper.stop();
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let serving = tokio::spawn(server.serve(router(console), controller.stopping()));
        controller.drive().await;
        serving
            .await
            .map_err(|e| e.to_string())?
            .map_err(|e| e.to_string())
    })
}
