//! Writes the operation log from the batches of the load threads, on a separate thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use bucketload_core::oplog::Batch;
use bucketload_core::plan::Plan;

use super::columns::{Names, Value};
use super::csv::CsvFile;
use super::parquet::{GROUP_ROWS, Group, ParquetFile};
use super::{OpLogFacts, OpLogFormat, files};
use crate::error::ResultsError;

/// Rows after which a new file is started.
const FILE_ROWS: u64 = 1 << 20;
/// Time after which a new file is started; a killed run can lose this much.
const FILE_TIME: Duration = Duration::from_secs(60);

/// Facts about the run in the files' metadata.
#[derive(Clone, Debug)]
pub struct OpLogHeader {
    /// Identifier of the run.
    pub run_id: String,
    /// Bucket that the keys belong to.
    pub bucket: String,
    /// Wall-clock time of the run's epoch, nanoseconds since 1970.
    pub epoch_unix_ns: i64,
    /// Endpoint URLs.
    pub endpoints: Vec<String>,
}

/// Writes batches into files of format `format` in `dir` until the last sender is gone. `dropped` counts the operations
/// that the load threads could not log.
///
/// # Errors
/// When a file cannot be written. The load threads then drop and count further operations.
pub fn write(
    dir: &Path,
    format: OpLogFormat,
    header: &OpLogHeader,
    plan: &Plan,
    batches: &Receiver<Batch>,
    dropped: &Arc<AtomicU64>,
) -> Result<OpLogFacts, ResultsError> {
    write_with(dir, format, header, plan, batches, dropped, FILE_ROWS)
}

/// Like [`write`], with a given number of rows per file.
pub(super) fn write_with(
    dir: &Path,
    format: OpLogFormat,
    header: &OpLogHeader,
    plan: &Plan,
    batches: &Receiver<Batch>,
    dropped: &Arc<AtomicU64>,
    file_rows: u64,
) -> Result<OpLogFacts, ResultsError> {
    let mut log = Log {
        dir,
        format,
        header,
        names: Names::new(plan, &header.endpoints),
        dropped: Arc::clone(dropped),
        file: None,
        group: Group::new(),
        facts: OpLogFacts {
            format,
            ..OpLogFacts::default()
        },
    };
    loop {
        match batches.recv_timeout(Duration::from_millis(500)) {
            Ok(batch) => {
                log.add(&batch)?;
                batch.recycle();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let due = |file: &Open| file.rows >= file_rows || file.since.elapsed() >= FILE_TIME;
        if log.file.as_ref().is_some_and(due) {
            log.close()?;
        }
    }
    log.close()?;
    log.facts.dropped = dropped.load(Ordering::Relaxed);
    log.facts.complete = true;
    Ok(log.facts)
}

/// A file that is being written.
struct Open {
    path: PathBuf,
    body: Body,
    rows: u64,
    since: Instant,
}

enum Body {
    Parquet(Box<ParquetFile>),
    Csv(CsvFile),
}

struct Log<'a> {
    dir: &'a Path,
    format: OpLogFormat,
    header: &'a OpLogHeader,
    names: Names,
    dropped: Arc<AtomicU64>,
    file: Option<Open>,
    group: Group,
    facts: OpLogFacts,
}

impl Log<'_> {
    fn add(&mut self, batch: &Batch) -> Result<(), ResultsError> {
        if batch.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(self.dir, self.format, self.header, self.facts.files)?),
        };
        let origin = (batch.phase, batch.thread);
        for row in batch.rows() {
            match &mut file.body {
                Body::Parquet(_) => {
                    let put = |at, value: Value<'_>| self.group.put(at, value);
                    self.names.row(origin, row, put);
                }
                Body::Csv(csv) => {
                    let put = |at, value: Value<'_>| csv.put(at, value);
                    self.names.row(origin, row, put);
                }
            }
        }
        file.rows += batch.len() as u64;
        self.facts.rows += batch.len() as u64;
        let written = match &mut file.body {
            Body::Parquet(parquet) if self.group.rows() >= GROUP_ROWS => {
                parquet.write(&mut self.group).map_err(io::Error::other)
            }
            Body::Parquet(_) => Ok(()),
            Body::Csv(csv) => csv.write(),
        };
        written.map_err(ResultsError::io(&file.path, "write"))
    }

    fn close(&mut self) -> Result<(), ResultsError> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let dropped = self.dropped.load(Ordering::Relaxed).to_string();
        let ended = match file.body {
            Body::Parquet(mut parquet) => parquet
                .write(&mut self.group)
                .and_then(|()| parquet.finish(&[("bucketload.dropped_so_far", dropped)]))
                .map_err(io::Error::other),
            Body::Csv(csv) => csv.finish(),
        };
        ended
            .and_then(|()| files::complete(&file.path))
            .map_err(ResultsError::io(&file.path, "complete"))?;
        self.facts.files += 1;
        Ok(())
    }
}

fn open(
    dir: &Path,
    format: OpLogFormat,
    header: &OpLogHeader,
    number: u32,
) -> Result<Open, ResultsError> {
    let path = files::name(dir, number, format.extension());
    let facts = [
        ("bucketload.run_id", header.run_id.clone()),
        ("bucketload.bucket", header.bucket.clone()),
        ("bucketload.epoch_unix_ns", header.epoch_unix_ns.to_string()),
    ];
    let body = files::create(&path).and_then(|file| match format {
        OpLogFormat::Parquet => ParquetFile::new(file, &facts)
            .map(|parquet| Body::Parquet(Box::new(parquet)))
            .map_err(io::Error::other),
        OpLogFormat::CsvZst => CsvFile::new(file).map(Body::Csv),
    });
    Ok(Open {
        body: body.map_err(ResultsError::io(&path, "create"))?,
        path,
        rows: 0,
        since: Instant::now(),
    })
}

#[cfg(test)]
mod tests;
