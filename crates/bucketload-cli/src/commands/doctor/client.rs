//! What this client could drive: the calibration of a run, on the wire for services, as one line.

use bucketload_core::driver::AnyDriver;
use bucketload_core::sink::Calibration;
use bucketload_results::rundir::host::HostFacts;
use bucketload_results::units;
use bucketload_run::{RunError, RunOptions, StopHandle, calibrate};
use bucketload_target::Settings;
use bucketload_target::doctor::{Finding, State};
use bucketload_workload::resolve::{Overrides, resolve};
use bucketload_workload::spec::WorkloadFile;

use crate::cli::run::LoadArgs;
use crate::connection::Connection;
use crate::embedded::EmbeddedServer;
use crate::exit::{Failure, OrFail};
use crate::target::Target;
use crate::{drivers, setup};

/// The workload whose operations are performed, against a target that does nothing: a closed loop, which takes half a
/// second.
const WORKLOAD: &str = "get";
/// Size of its objects, bytes.
const SIZE: u64 = 65_536;
/// Share of its cores that the load threads get when nothing else needs them.
const UNDISTURBED: f64 = 0.9;

/// Measures what this client could drive towards `connection`, which itself sees none of it. Where the target is
/// reached by HTTP, a server of this program takes its place, which keeps nothing and has a process of its own: the
/// load threads then do all that they do in a run. Otherwise it is a driver that does nothing.
///
/// # Errors
/// When this machine cannot start load threads or the server.
pub(super) fn measure(connection: &Connection) -> Result<Finding, Failure> {
    let options = setup::options(&LoadArgs::default(), "doctor", connection);
    let threads = options.load_threads().map_err(failed)?;
    let here = connection.is_local() || matches!(connection.target, Target::Files(_));
    let nic = match here {
        true => 0,
        false => HostFacts::collect().nic_bits_per_s / 8,
    };
    let by_http = connection
        .endpoints()
        .iter()
        .any(|url| url.starts_with("http"));
    let words = if by_http {
        let server = ["--store", "null", "--null-size", &SIZE.to_string()].map(str::to_owned);
        let server = EmbeddedServer::start(&server).map_err(Failure::aborted)?;
        let wire = drivers::embedded(&server, &Settings::default())?;
        let beside = RunOptions {
            local_target: true,
            ..options
        };
        let found = driven(&wire.driver, connection, &beside)?;
        on_the_wire(found.null_cpu_ns_per_op, threads, nic)
    } else {
        let found = driven(&drivers::null(), connection, &options)?;
        without_a_store(&found, threads, nic)
    };
    let what = "what this client could drive here";
    Ok(Finding::new("client", what, State::Ok, words))
}

fn failed(e: RunError) -> Failure {
    Failure::aborted(format!("calibration: {e}"))
}

/// What the load threads do when `driver` takes no time.
fn driven(
    driver: &AnyDriver,
    connection: &Connection,
    options: &RunOptions,
) -> Result<Calibration, Failure> {
    let file = WorkloadFile::builtin(WORKLOAD).or_usage()?;
    let context = connection.target.resolve_context();
    let plan = resolve(&file, &Overrides::default(), &context)
        .or_usage()?
        .plan;
    let phase = setup::calibrated_phase(&plan).unwrap_or(0);
    calibrate(driver, &plan, phase, options, &StopHandle::new()).map_err(failed)
}

/// The line where the target is reached by HTTP. `cpu_ns` is the load threads' CPU time per read, `line_rate` the
/// bytes per second of the network interface, 0 if none is in the way or if it is not known. Both programs share the
/// machine, so what was reached says less than what it cost.
fn on_the_wire(cpu_ns: f64, threads: usize, line_rate: u64) -> String {
    let by_cores = threads as f64 * 1e9 / cpu_ns.max(1.0);
    let by_network = match line_rate {
        0 => f64::INFINITY,
        rate => rate as f64 / SIZE as f64,
    };
    let limit = match by_network < by_cores {
        true => "network",
        false => "core",
    };
    format!(
        "at most {} reads of 64 KiB a second: {}, {} of CPU each by HTTP without TLS, tried on a server of this program \
         (limit: {limit})",
        units::count(by_cores.min(by_network) as u64),
        load_threads(threads),
        units::ns(cpu_ns),
    )
}

/// The line for files and libraries.
fn without_a_store(found: &Calibration, threads: usize, line_rate: u64) -> String {
    let (per_s, cpu_ns) = (found.null_ops_per_s, found.null_cpu_ns_per_op);
    let used = per_s * cpu_ns / 1e9 / threads.max(1) as f64;
    let limit = match used < UNDISTURBED {
        true => "machine, because other programs have the cores for a part of the time",
        false => "core",
    };
    let most = format!(
        "at most {} operations a second without a store: {}, {} of CPU each (limit: {limit}); system calls and bytes \
         come on top",
        units::count(per_s as u64),
        load_threads(threads),
        units::ns(cpu_ns),
    );
    match line_rate {
        0 => most,
        rate => format!(
            "{most}; the network carries {}/s, {} objects of 64 KiB a second (limit: network)",
            units::bytes(rate as f64),
            units::count(rate / SIZE),
        ),
    }
}

fn load_threads(threads: usize) -> String {
    match threads {
        1 => "1 load thread".to_owned(),
        n => format!("{n} load threads"),
    }
}

#[cfg(test)]
mod tests {
    use bucketload_core::sink::Calibration;

    use super::{on_the_wire, without_a_store};

    fn found(null_ops_per_s: f64) -> Calibration {
        Calibration {
            offered_ops_per_s: 0.0,
            null_ops_per_s,
            null_p99_ns: 0,
            null_cpu_ns_per_op: 980.0,
            age_s: None,
        }
    }

    #[test]
    fn the_limit_is_named() {
        let quiet = without_a_store(&found(1e6), 1, 0);
        assert!(
            quiet.contains("1,000,000 operations a second") && quiet.contains("limit: core)"),
            "{quiet}"
        );
        assert!(!quiet.contains("network"), "{quiet}");
        let disturbed = without_a_store(&found(1e6), 2, 125_000_000);
        assert!(
            disturbed.contains("2 load threads") && disturbed.contains("limit: machine"),
            "{disturbed}"
        );
        assert!(
            disturbed.contains("119 MiB/s") && disturbed.contains("limit: network"),
            "{disturbed}"
        );
    }

    #[test]
    fn cores_and_network_bound_what_the_wire_carries() {
        let cores = on_the_wire(25_000.0, 2, 0);
        assert!(
            cores.starts_with("at most 80,000 reads") && cores.ends_with("(limit: core)"),
            "{cores}"
        );
        let network = on_the_wire(25_000.0, 2, 125_000_000);
        assert!(
            network.starts_with("at most 1,907 reads") && network.ends_with("(limit: network)"),
            "{network}"
        );
    }
}
