//! One worker's use of a command-line client: the files around a process, and what its end means.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use bucketload_core::driver::{Completion, WorkerId};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::op::{OpClass, Request};
use bucketload_core::payload::Content;
use bucketload_core::record::Probe;

use super::Inner;
use super::complaint::meaning;
use super::line::{self, Subject};
use super::process::{self, Ended};
use super::tool::Tool;
use crate::engines::{Client, driver::unsupported};
use crate::http::reading::Reading;
use crate::http::sink::Sink as _;

/// Bytes that a received file is read in.
const SLICE: usize = 256 * 1024;

/// One worker's command-line client.
pub struct CliClient {
    inner: Arc<Inner>,
    /// The worker's own directory.
    dir: PathBuf,
    /// What is sent, or received.
    file: PathBuf,
    endpoint: usize,
}

impl std::fmt::Debug for CliClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CliClient")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

impl Drop for CliClient {
    fn drop(&mut self) {
        // What remains goes with the engine's directory.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl CliClient {
    pub(super) fn new(inner: Arc<Inner>, dir: PathBuf, worker: WorkerId) -> Self {
        Self {
            endpoint: worker.worker as usize % inner.access.len().max(1),
            file: dir.join("object"),
            inner,
            dir,
        }
    }

    fn tool(&self) -> Tool {
        self.inner.client.tool
    }

    fn command(&self, request: &Request<'_>) -> Result<Command, OpError> {
        let subject = self.subject(request);
        let class = request.op.class;
        let args = line::arguments(self.tool(), class, &subject).map_err(|why| {
            let tool = self.tool();
            let detail = format!("{tool} cannot be asked to {class} {:?}: {why}", request.key);
            OpError::new(ErrorKind::Unsupported, detail)
        })?;
        let access = &self.inner.access[self.endpoint];
        let mut command = Command::new(&self.inner.client.path);
        for name in &self.inner.foreign {
            command.env_remove(name);
        }
        command
            .envs(access.env.iter().map(|(name, value)| (name, value)))
            .args(&access.args)
            .args(args)
            .current_dir(&self.dir);
        Ok(command)
    }

    fn subject<'a>(&'a self, request: &'a Request<'_>) -> Subject<'a> {
        Subject {
            bucket: request.bucket,
            key: request.key,
            recursive: request.delimiter.is_empty(),
            file: &self.file,
            region: &self.inner.region,
        }
    }

    /// Runs the client for `request`; `line` sees its output but for what it says about failures.
    async fn call(
        &self,
        request: &Request<'_>,
        probe: &mut Probe,
        line: &mut dyn FnMut(&str),
    ) -> Result<(), OpError> {
        let command = self.command(request)?;
        let tool = self.tool();
        let mut told = String::new();
        let mut sort = |text: &str| match tool == Tool::Mc && is_failure(text) {
            true => text.clone_into(&mut told),
            false => line(text),
        };
        let ended = process::run(command, probe, &mut sort).await?;
        if ended.status.success() && told.is_empty() || is_empty_listing(tool, request, &ended) {
            return Ok(());
        }
        Err(meaning(tool, &ended, &told, &self.inner.secrets))
    }

    async fn put(&self, request: &Request<'_>, probe: &mut Probe) -> Result<Completion, OpError> {
        let content = request.content.ok_or_else(|| {
            OpError::new(ErrorKind::Unsupported, "put was asked for without content")
        })?;
        write(&self.file, &content).map_err(|e| self.own_file(&e))?;
        self.call(request, probe, &mut |_| {}).await?;
        Ok(Completion {
            bytes: content.size(),
            ..Completion::default()
        })
    }

    async fn get(&self, request: &Request<'_>, probe: &mut Probe) -> Result<Completion, OpError> {
        match std::fs::remove_file(&self.file) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(self.own_file(&e)),
            _ => {}
        }
        self.call(request, probe, &mut |_| {}).await?;
        let mut reading = Reading::of(request);
        let received = match File::open(&self.file) {
            Ok(file) => read(file, &mut reading).map_err(|e| self.own_file(&e))?,
            // rclone takes an absent object for a folder without anything in it.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let detail = format!("{} ended well, but received nothing", self.tool());
                return Err(OpError::new(ErrorKind::NotFound, detail));
            }
            Err(e) => return Err(self.own_file(&e)),
        };
        reading.judge(0, received, None)
    }

    async fn list(&self, request: &Request<'_>, probe: &mut Probe) -> Result<Completion, OpError> {
        let (tool, subject) = (self.tool(), self.subject(request));
        let mut items = 0;
        let mut see = |text: &str| {
            if let Some(key) = line::listed(tool, &subject, text) {
                items += 1;
                if let Some(watch) = request.watch {
                    watch.listed(&key);
                }
            }
        };
        self.call(request, probe, &mut see).await?;
        Ok(Completion {
            items,
            ..Completion::default()
        })
    }

    async fn head(&self, request: &Request<'_>, probe: &mut Probe) -> Result<Completion, OpError> {
        let tool = self.tool();
        let mut size = None;
        let mut see = |text: &str| size = size.or_else(|| line::size(tool, text));
        self.call(request, probe, &mut see).await?;
        let object_size = size.ok_or_else(|| {
            let detail = format!("{tool} told no size");
            OpError::new(ErrorKind::Protocol, detail)
        })?;
        Ok(Completion {
            object_size,
            ..Completion::default()
        })
    }

    async fn count(&self, request: &Request<'_>, probe: &mut Probe) -> Result<Completion, OpError> {
        let mut items = 0;
        let mut see = |text: &str| items += u64::from(!text.trim().is_empty());
        self.call(request, probe, &mut see).await?;
        Ok(Completion {
            items,
            ..Completion::default()
        })
    }

    /// A failure of our own file, which says nothing about the store.
    fn own_file(&self, error: &io::Error) -> OpError {
        let detail = format!(
            "{}: {error}; set TMPDIR to a directory with space",
            self.file.display()
        );
        OpError::new(ErrorKind::Rejected, detail)
    }
}

impl Client for CliClient {
    async fn execute(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        match request.op.class {
            OpClass::Put => self.put(request, probe).await,
            OpClass::Get => self.get(request, probe).await,
            OpClass::List => self.list(request, probe).await,
            OpClass::Head => self.head(request, probe).await,
            OpClass::ListBuckets => self.count(request, probe).await,
            OpClass::Delete | OpClass::MakeBucket | OpClass::DeleteBucket => self
                .call(request, probe, &mut |_| {})
                .await
                .map(|()| Completion::default()),
            class => Err(unsupported(self.tool().program(), class)),
        }
    }
}

/// Whether a line of mc's output reports a failure: it does so on standard output.
fn is_failure(line: &str) -> bool {
    line.contains(r#""status":"error""#)
}

/// The AWS CLI ends with code 1 and says nothing when a listing is empty, gsutil says what follows.
fn is_empty_listing(tool: Tool, request: &Request<'_>, ended: &Ended) -> bool {
    let complaint = ended.complaint.trim();
    request.op.class == OpClass::List
        && ended.status.code() == Some(1)
        && match tool {
            Tool::Aws => complaint.is_empty(),
            Tool::Gsutil => complaint.contains("One or more URLs matched no objects"),
            _ => false,
        }
}

fn write(path: &std::path::Path, content: &Content<'_>) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(SLICE, File::create(path)?);
    let mut at = 0;
    while at < content.size() {
        let segment = content.segment(at, usize::MAX);
        file.write_all(segment.as_bytes())?;
        at += segment.as_bytes().len() as u64;
    }
    file.flush()
}

fn read(mut file: File, reading: &mut Reading<'_>) -> io::Result<u64> {
    let mut received = 0;
    if !reading.wants_body() {
        return file.metadata().map(|meta| meta.len());
    }
    let mut buffer = vec![0; SLICE];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(received),
            n => {
                reading.data(&buffer[..n]);
                received += n as u64;
            }
        }
    }
}
