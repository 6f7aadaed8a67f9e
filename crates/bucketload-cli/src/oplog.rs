//! The operation log of a run: a thread writes the records that the load threads pass on.

use std::path::Path;
use std::thread::JoinHandle;

use bucketload_core::oplog::OpLog;
use bucketload_results::ResultsError;
use bucketload_results::oplog::{OpLogFacts, OpLogFormat, OpLogHeader, write};
use bucketload_results::rundir::Manifest;
use bucketload_run::{RunOptions, now_ns};

use crate::exit::{Failure, OrFail};
use crate::job::unix_ns;

/// The thread that writes an operation log.
pub(crate) struct OpLogWriter {
    writer: JoinHandle<Result<OpLogFacts, ResultsError>>,
    format: OpLogFormat,
}

impl OpLogWriter {
    /// Starts to log every operation of a run with `options` into `dir`, which must exist before the first operation.
    pub(crate) fn start(
        dir: &Path,
        format: OpLogFormat,
        manifest: &Manifest,
        options: &mut RunOptions,
    ) -> Result<Self, Failure> {
        let threads = options.load_threads().or_usage()?;
        let (log, batches) = OpLog::new(threads);
        let dropped = log.dropped();
        options.op_log = Some(log);
        let header = OpLogHeader {
            run_id: manifest.run_id.clone(),
            bucket: options.bucket.clone(),
            epoch_unix_ns: i64::try_from(unix_ns().saturating_sub(now_ns())).unwrap_or(i64::MAX),
            endpoints: manifest.driver.endpoints.clone(),
        };
        let (dir, plan) = (dir.to_owned(), manifest.plan.clone());
        let writer = std::thread::Builder::new()
            .name("op-log".to_owned())
            .spawn(move || write(&dir, format, &header, &plan, &batches, &dropped))
            .or_aborted()?;
        Ok(Self { writer, format })
    }

    /// Waits until everything is written; the run must have ended. Returns facts about the log, and why it is
    /// incomplete if it is.
    pub(crate) fn finish(self, options: &mut RunOptions) -> (OpLogFacts, Option<String>) {
        // Drops the last sender, which ends the writer.
        options.op_log = None;
        let incomplete = OpLogFacts {
            format: self.format,
            ..OpLogFacts::default()
        };
        match self.writer.join() {
            Ok(Ok(facts)) => (facts, None),
            Ok(Err(error)) => (incomplete, Some(error.to_string())),
            Err(_) => (incomplete, Some("its writer panicked".to_owned())),
        }
    }
}
