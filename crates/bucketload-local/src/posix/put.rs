//! Writing: put, put-if-absent, append and the parts of a multipart put.

use bucketload_core::driver::{Completion, ErrorKind, OpClass, OpError, OpResult, Probe, Request};
use rustix::io::Errno;

use super::config::{PosixConfig, Write};
use super::errors::{Failure, Intent};
use super::fill::Source;
use super::session::{DONE, PosixSession};
use super::work::{Finish, OpenMode, Task, Work};

const ALIGNMENT: u64 = PosixConfig::ALIGNMENT;

impl PosixSession {
    pub(super) async fn put(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let class = request.op.class;
        let Some(content) = request.content else {
            let text = format!("{class} was asked for without content");
            return Err(OpError::new(ErrorKind::Unsupported, text));
        };
        if class == OpClass::Append && self.config().direct {
            let text = "O_DIRECT cannot append: the ends of objects are not multiples of a block";
            return Err(OpError::new(ErrorKind::Unsupported, text));
        }
        let size = content.size();
        let mut work = match self.is_shared() {
            true => match self.begin_shared(request, probe, Some(size))? {
                (work, true) => work,
                (work, false) => self.open_shared(work, request).await?,
            },
            false => self.begin_object(request, probe)?,
        };
        let mode = match (class, self.config().write) {
            _ if self.is_shared() => None,
            (OpClass::PutIfAbsent, _) => Some(OpenMode::New),
            (OpClass::Append, _) => Some(OpenMode::End),
            (_, Write::InPlace) => Some(OpenMode::Replace),
            (_, Write::Rename) => {
                self.name_beside(&mut work);
                Some(OpenMode::Beside)
            }
        };
        let mut work = self.write(work, Source::Content(content), mode).await;
        self.name(&mut work, request);
        let exists = Err(Failure::new("open", Errno::EXIST));
        if class == OpClass::PutIfAbsent && work.result == exists {
            work.result = Ok(());
            self.end(work, Intent::Make, probe)?;
            return Ok(DONE);
        }
        self.end(work, Intent::Make, probe)?;
        let items = match class {
            OpClass::PutIfAbsent => 1,
            OpClass::MultipartPut => {
                let parts = size.div_ceil(request.op.count.max(1)).max(1);
                // Count begin, parts and complete as requests, as with other drivers.
                (0..=parts).for_each(|_| probe.started());
                parts
            }
            _ => 0,
        };
        Ok(Completion::of_parts(size, items))
    }

    /// Writes all of `source`, into a file opened with `mode` or into the open one from the work's offset on.
    pub(super) async fn write(
        &self,
        mut work: Box<Work>,
        source: Source<'_>,
        mut mode: Option<OpenMode>,
    ) -> Box<Work> {
        let (size, block) = (source.len(), self.config().block);
        let (base, direct) = (work.offset, work.direct);
        let borrows = self.local.engine.is_immediate() && !direct;
        let in_file = mode.is_some();
        let rename = mode == Some(OpenMode::Beside);
        let mut at = 0;
        loop {
            let take = block.min(size - at);
            let len = if direct {
                take.next_multiple_of(ALIGNMENT)
            } else {
                take
            };
            work.offset = base + at;
            work.content_at = at;
            work.len = len as usize;
            if !borrows {
                work.buffer.renew(len as usize);
                let filled = source.copy(at, &mut work.buffer[..take as usize]);
                work.buffer[filled..len as usize].fill(0);
            }
            at += take;
            let end = (at == size).then_some(Finish {
                // In a shared file the rest of the block belongs to the object's slot.
                truncate: (in_file && direct && size % ALIGNMENT != 0).then_some(size),
                rename,
            });
            let task = Task::Write {
                open: mode.take(),
                end,
            };
            let direct_source = borrows.then_some(source);
            if !self.step_at_once(&mut work, task, direct_source) {
                work = self.step(work, task, direct_source).await;
            }
            if end.is_some() || work.result.is_err() {
                return work;
            }
        }
    }
}
