//! Prepares traces from text and reads them back.

use std::path::PathBuf;

use bucketload_core::trace::{Batch, RecordStream, TraceRecord};
use bucketload_trace::{CanonicalTrace, PrepareOptions, Summary, TraceError, prepare};

/// A record with its key and other keys.
pub(crate) type Row = (TraceRecord, String, Vec<String>);

/// A prepared trace.
pub(crate) struct Prepared {
    pub(crate) records: Vec<Row>,
    pub(crate) preload: Vec<Row>,
    pub(crate) summary: Summary,
    pub(crate) canonical: CanonicalTrace,
    pub(crate) dir: tempfile::TempDir,
}

/// Reads a stream to its end.
pub(crate) fn rows(mut stream: impl RecordStream) -> Vec<Row> {
    rows_of(&mut stream)
}

/// Reads a stream to its end.
pub(crate) fn rows_of(stream: &mut dyn RecordStream) -> Vec<Row> {
    let (mut batch, mut rows) = (Batch::new(), Vec::new());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    while stream.next_batch(&mut batch).unwrap() {
        rows.extend(
            batch
                .iter()
                .map(|r| (r.record, text(r.key), r.more().map(text).collect())),
        );
    }
    rows
}

/// Prepares `files`, each a name and its contents.
pub(crate) fn prepared(
    files: &[(&str, &[u8])],
    change: impl FnOnce(&mut PrepareOptions),
) -> Result<Prepared, TraceError> {
    let dir = tempfile::tempdir().unwrap();
    let mut paths: Vec<PathBuf> = Vec::new();
    for (name, bytes) in files {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        paths.push(path);
    }
    let mut options = PrepareOptions::new(dir.path().to_owned());
    change(&mut options);
    let canonical = prepare(&paths, &options, &dir.path().join("trace.bltrace"))?;
    let mut preload = rows(canonical.preload().unwrap());
    preload.sort_by(|a, b| a.1.cmp(&b.1));
    Ok(Prepared {
        records: rows(canonical.records().unwrap()),
        preload,
        summary: canonical.summary().clone(),
        canonical,
        dir,
    })
}

/// Native CSV rows `ts_ns,op,bucket,key,size,off,len,client,status` with their header.
pub(crate) fn native(rows: &[&str]) -> Vec<u8> {
    let header = "ts_ns,op,bucket,key,size,off,len,client,status";
    format!("{header}\n{}\n", rows.join("\n")).into_bytes()
}
