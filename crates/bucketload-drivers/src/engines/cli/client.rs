//! One worker's use of a command-line client: its files, processes and results.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use bucketload_core::driver::{
    Completion, ErrorKind, OpClass, OpError, OpResult, Probe, Request, WorkerId,
};
use bucketload_core::payload::Content;

use super::EngineShared;
use super::exit::to_op_error;
use super::line::{self, Operands};
use super::process::{self, ProcessOutcome};
use super::tool::Tool;
use crate::engines::{Client, driver::unsupported};
use crate::http::{Reading, Sink as _};

/// Bytes of a file that are read or written at a time.
const SLICE: usize = 256 * 1024;

/// One worker's command-line client.
pub struct CliClient {
    inner: Arc<EngineShared>,
    /// The worker's own directory.
    dir: PathBuf,
    /// The file to send, or to receive into.
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
        // Anything that remains is removed with the engine's directory.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl CliClient {
    pub(super) fn new(inner: Arc<EngineShared>, dir: PathBuf, worker: WorkerId) -> Self {
        Self {
            endpoint: worker.worker as usize % inner.invocation.len().max(1),
            file: dir.join("object"),
            inner,
            dir,
        }
    }

    fn tool(&self) -> Tool {
        self.inner.client.tool
    }

    fn command(&self, request: &Request<'_>) -> OpResult<Command> {
        let operands = self.operands(request);
        let class = request.op.class;
        let args = line::arguments(self.tool(), class, &operands).map_err(|why| {
            let tool = self.tool();
            let detail = format!("{tool} cannot {class} {:?}: {why}", request.key);
            OpError::new(ErrorKind::Unsupported, detail)
        })?;
        let invocation = &self.inner.invocation[self.endpoint];
        let mut command = Command::new(&self.inner.client.path);
        for name in &self.inner.hidden_variables {
            command.env_remove(name);
        }
        command
            .envs(invocation.env.iter().map(|(name, value)| (name, value)))
            .args(&invocation.args)
            .args(args)
            .current_dir(&self.dir);
        Ok(command)
    }

    fn operands<'a>(&'a self, request: &'a Request<'_>) -> Operands<'a> {
        Operands {
            bucket: request.bucket,
            key: request.key,
            recursive: request.delimiter.is_empty(),
            file: &self.file,
            region: &self.inner.region,
        }
    }

    /// Runs the client for `request`; passes each line of its output, except reports of failures, to
    /// `line`.
    async fn call(
        &self,
        request: &Request<'_>,
        probe: &mut Probe,
        line: &mut dyn FnMut(&str),
    ) -> OpResult<()> {
        let command = self.command(request)?;
        let tool = self.tool();
        let mut stdout_error = String::new();
        let mut sort = |text: &str| match tool == Tool::Mc && is_failure(text) {
            true => text.clone_into(&mut stdout_error),
            false => line(text),
        };
        let outcome = process::run(command, probe, &mut sort).await?;
        if outcome.status.success() && stdout_error.is_empty()
            || is_empty_listing(tool, request, &outcome)
        {
            return Ok(());
        }
        Err(to_op_error(
            tool,
            &outcome,
            &stdout_error,
            &self.inner.secrets,
        ))
    }

    async fn put(&self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let content = request.content.ok_or_else(|| {
            OpError::new(ErrorKind::Unsupported, "put was asked for without content")
        })?;
        write(&self.file, &content).map_err(|e| self.local_file_error(&e))?;
        self.call(request, probe, &mut |_| {}).await?;
        Ok(Completion::of_bytes(content.size()))
    }

    async fn get(&self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        match std::fs::remove_file(&self.file) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(self.local_file_error(&e)),
            _ => {}
        }
        self.call(request, probe, &mut |_| {}).await?;
        let mut reading = Reading::of(request);
        let received = match File::open(&self.file) {
            Ok(file) => read(file, &mut reading).map_err(|e| self.local_file_error(&e))?,
            // rclone treats a missing object as an empty folder.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let detail = format!("{} exited successfully but received nothing", self.tool());
                return Err(OpError::new(ErrorKind::NotFound, detail));
            }
            Err(e) => return Err(self.local_file_error(&e)),
        };
        reading.judge(0, received, None)
    }

    async fn list(&self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let (tool, operands) = (self.tool(), self.operands(request));
        let mut items = 0;
        let mut see = |text: &str| {
            if let Some(key) = line::listed(tool, &operands, text) {
                items += 1;
                if let Some(watch) = request.watch {
                    watch.listed(&key);
                }
            }
        };
        self.call(request, probe, &mut see).await?;
        Ok(Completion::of_items(items))
    }

    async fn head(&self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let tool = self.tool();
        let mut size = None;
        let mut see = |text: &str| size = size.or_else(|| line::size(tool, text));
        self.call(request, probe, &mut see).await?;
        let object_size = size.ok_or_else(|| {
            let detail = format!("{tool} printed no size");
            OpError::new(ErrorKind::Protocol, detail)
        })?;
        Ok(Completion::of_size(object_size))
    }

    async fn count(&self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut items = 0;
        let mut see = |text: &str| items += u64::from(!text.trim().is_empty());
        self.call(request, probe, &mut see).await?;
        Ok(Completion::of_items(items))
    }

    /// The error for a local file, which is not the store's fault.
    fn local_file_error(&self, error: &io::Error) -> OpError {
        let detail = format!(
            "{}: {error}; set TMPDIR to a directory with space",
            self.file.display()
        );
        OpError::new(ErrorKind::Rejected, detail)
    }
}

impl Client for CliClient {
    async fn execute(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
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

/// Whether a line of mc's output reports a failure; mc does so on standard output.
fn is_failure(line: &str) -> bool {
    line.contains(r#""status":"error""#)
}

/// Whether a failure means an empty listing: the AWS CLI then exits with code 1 without a message,
/// gsutil with the message below.
fn is_empty_listing(tool: Tool, request: &Request<'_>, outcome: &ProcessOutcome) -> bool {
    let stderr = outcome.stderr.trim();
    request.op.class == OpClass::List
        && outcome.status.code() == Some(1)
        && match tool {
            Tool::Aws => stderr.is_empty(),
            Tool::Gsutil => stderr.contains("One or more URLs matched no objects"),
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
