//! What this client could drive: the calibration of a run, as one line.

use bucketload_results::rundir::host::HostFacts;
use bucketload_results::units;
use bucketload_run::{RunError, StopHandle, calibrate};
use bucketload_target::doctor::{Finding, State};
use bucketload_workload::resolve::{Overrides, resolve};
use bucketload_workload::spec::WorkloadFile;

use crate::cli::run::LoadArgs;
use crate::connection::Connection;
use crate::exit::{Failure, OrFail};
use crate::target::Target;
use crate::{drivers, setup};

/// The workload whose operations are performed, against a target that does nothing: a closed loop, which takes half a
/// second.
const WORKLOAD: &str = "get";
/// Size of its objects, bytes.
const SIZE: f64 = 65_536.0;
/// Share of its cores that the load threads get when nothing else needs them.
const UNDISTURBED: f64 = 0.9;

/// Measures what this client could drive towards `connection`, which itself sees none of it.
///
/// # Errors
/// When this machine cannot start load threads.
pub(super) fn measure(connection: &Connection) -> Result<Finding, Failure> {
    let file = WorkloadFile::builtin(WORKLOAD).or_usage()?;
    let context = connection.target.resolve_context();
    let plan = resolve(&file, &Overrides::default(), &context)
        .or_usage()?
        .plan;
    let phase = setup::calibrated_phase(&plan).unwrap_or(0);
    let options = setup::options(&LoadArgs::default(), "doctor", connection);
    let failed = |e: RunError| Failure::aborted(format!("calibration: {e}"));
    let threads = options.load_threads().map_err(failed)?;
    let stop = StopHandle::new();
    let found = calibrate(&drivers::null(), &plan, phase, &options, &stop).map_err(failed)?;
    let here = connection.is_local() || matches!(connection.target, Target::Files(_));
    let nic = match here {
        true => 0,
        false => HostFacts::collect().nic_bits_per_s / 8,
    };
    Ok(Finding::new(
        "client",
        "what this client could drive here",
        State::Ok,
        words(found.null_ops_per_s, found.null_cpu_ns_per_op, threads, nic),
    ))
}

/// The line. `cpu_ns` is the load threads' CPU time per operation, `line_rate` the bytes per second of the network
/// interface, 0 if none is in the way or if it is not known.
fn words(per_s: f64, cpu_ns: f64, threads: usize, line_rate: u64) -> String {
    let used = per_s * cpu_ns / 1e9 / threads.max(1) as f64;
    let limit = match used < UNDISTURBED {
        true => "machine, because other programs have the cores for a part of the time",
        false => "core",
    };
    let threads = match threads {
        1 => "1 load thread".to_owned(),
        n => format!("{n} load threads"),
    };
    let most = format!(
        "at most {} operations a second without a store: {threads}, {} of CPU each (limit: {limit}); protocol and bytes \
         come on top",
        units::count(per_s as u64),
        units::ns(cpu_ns),
    );
    match line_rate {
        0 => most,
        rate => format!(
            "{most}; the network carries {}/s, {} objects of 64 KiB a second (limit: network)",
            units::bytes(rate as f64),
            units::count((rate as f64 / SIZE) as u64),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn the_limit_is_named() {
        let quiet = words(1e6, 980.0, 1, 0);
        assert!(
            quiet.contains("1,000,000 operations a second") && quiet.contains("limit: core)"),
            "{quiet}"
        );
        assert!(!quiet.contains("network"), "{quiet}");
        let disturbed = words(1e6, 980.0, 2, 125_000_000);
        assert!(
            disturbed.contains("2 load threads") && disturbed.contains("limit: machine"),
            "{disturbed}"
        );
        assert!(
            disturbed.contains("119 MiB/s") && disturbed.contains("limit: network"),
            "{disturbed}"
        );
    }
}
