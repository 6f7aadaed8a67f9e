//! The agent's side: opens the target of an assignment and generates its share of the load.

use std::path::{Path, PathBuf};

use bucketload_agents::{Assignment, Conductor, Executor, Problem};
use bucketload_run::{Cores, EarlierRun, RunOptions, Share, serve};

use super::setup::TargetSetup;
use crate::cosbench::local;
use crate::drivers;
use crate::exit::{Failure, OrFail as _};
use crate::job::failure;
use crate::setup;

/// Carries out assignments with the drivers of this program.
pub(crate) struct DriverHost {
    /// Where COSBench's `localwrite` may write on this machine.
    pub(crate) allow_local_writes: Option<PathBuf>,
}

impl Executor for DriverHost {
    fn execute(&self, assignment: Assignment, conductor: &mut Conductor) -> Result<(), Problem> {
        execute(assignment, conductor, self.allow_local_writes.as_deref()).map_err(|failure| {
            Problem {
                message: failure.message,
                exit_code: failure.exit.code(),
            }
        })
    }
}

fn execute(
    assignment: Assignment,
    conductor: &mut Conductor,
    allow_local_writes: Option<&Path>,
) -> Result<(), Failure> {
    let setup: TargetSetup = serde_json::from_value(assignment.setup).map_err(|_| {
        Failure::aborted("the coordinator's description of the target cannot be read")
    })?;
    let plan = assignment.plan;
    if let Some(files) = setup.local_files() {
        local::allow(files, allow_local_writes, &plan, setup.may_replace_files()).or_usage()?;
    }
    let (connection, load, _resources) = setup.open()?;
    let mut options = RunOptions {
        bucket: assignment.bucket,
        prefix: assignment.prefix,
        share: Share {
            index: assignment.index,
            of: assignment.of,
        },
        pins: assignment.pins,
        interval: std::time::Duration::from_nanos(assignment.interval_ns),
        data: assignment
            .data
            .map(|(run_id, prefix)| EarlierRun { run_id, prefix }),
        gate: Some(conductor.gate()),
        agreement: Some(conductor.agreement()),
        converged: Some(conductor.converged()),
        create_bucket: false,
        ..setup::options(&load, &assignment.run_id, &connection)
    };
    if let Some(threads) = assignment.threads {
        options.threads = Some(usize::from(threads));
    }
    match assignment.cores {
        Some(list) if list.is_empty() => options.cores = Cores::Unpinned,
        Some(list) => options.cores = Cores::List(list),
        None => {}
    }
    let threads = options.load_threads().map_err(|e| failure(&e, &[]))?;
    if assignment.op_log {
        let log = conductor
            .op_log(threads)
            .map_err(|e| Failure::aborted(format!("operation log: {e}")))?;
        options.op_log = Some(log);
    }
    let facts = connection.driver.facts();
    conductor.accepted(threads as u32, facts);
    let (null, stop) = (drivers::null(), conductor.stop());
    let (mut sink, mut orders) = conductor.parts();
    serve(
        &connection.driver,
        &null,
        &plan,
        &options,
        &mut sink,
        &stop,
        &mut orders,
    )
    .map_err(|e| failure(&e, &[]))
}
