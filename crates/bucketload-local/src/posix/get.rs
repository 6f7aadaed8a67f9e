//! Reading: get and range-get.
//!
//! A get reads as many bytes as the plan expects, and requests one more to detect a longer file without
//! another call.

use bucketload_core::driver::{Completion, ErrorKind, OpClass, OpError, OpResult, Probe, Request};
use bucketload_core::op::Op;

use super::config::PosixConfig;
use super::errors::Intent;
use super::session::PosixSession;
use super::work::Task;

const ALIGNMENT: u64 = PosixConfig::ALIGNMENT;

/// The part of the object to read.
struct Extent {
    /// Offset of its first byte.
    from: u64,
    /// Expected number of bytes; `None` if the object's size is unknown.
    wanted: Option<u64>,
    /// Most bytes to read.
    most: u64,
}

impl Extent {
    fn of(request: &Request<'_>) -> Self {
        let op = &request.op;
        let range = op.range.filter(|_| op.class == OpClass::RangeGet);
        let known = match request.content.filter(|_| request.verify) {
            Some(content) => Some(content.size()),
            None => (op.size != Op::UNKNOWN_SIZE).then_some(op.size),
        };
        let from = range.map_or(0, |range| range.offset);
        let left = known.map(|size| size.saturating_sub(from));
        let wanted = match range {
            Some(range) => left.map(|left| left.min(range.len)),
            None => left,
        };
        Self {
            from,
            wanted,
            most: range.map_or(u64::MAX, |range| range.len),
        }
    }
}

impl PosixSession {
    pub(super) async fn get(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let extent = Extent::of(request);
        // A file with several reads stays open.
        let several = request.op.class == OpClass::RangeGet && request.op.count > 0;
        let held = several && !self.is_shared();
        let shared = self.is_shared() || held;
        let mut base = 0;
        let mut work;
        if self.is_shared() {
            let end = extent.wanted.map(|wanted| extent.from + wanted);
            let found;
            (work, found) = self.begin_shared(request, probe, end)?;
            if !found {
                work = self.open_shared(work, request).await?;
            }
            base = work.offset;
        } else {
            work = self.begin_object(request, probe)?;
            if held {
                work = self.hold(work, false).await?;
            }
        }
        let block = self.config().block;
        let (direct, mut open) = (work.direct, !shared);
        let expected = request.content.filter(|_| request.verify);
        let (mut received, mut wrong) = (0, None);
        let error = loop {
            // One byte more detects a file that is too long. In a shared file the next byte belongs to
            // another object.
            let left = match extent.wanted {
                Some(wanted) if extent.most == u64::MAX && !shared => wanted + 1 - received,
                Some(wanted) => wanted - received,
                None => extent.most - received,
            };
            let at = base + extent.from + received;
            let skip = if direct { at % ALIGNMENT } else { 0 };
            // One byte more than a block avoids a separate call for it.
            let take = if left <= block + 1 { left } else { block };
            let len = if direct {
                (skip + take).next_multiple_of(ALIGNMENT)
            } else {
                take
            };
            let enough = extent
                .wanted
                .map_or(u64::MAX, |wanted| skip + wanted - received);
            let room = (skip + take).next_multiple_of(ALIGNMENT);
            work.buffer.renew(room as usize);
            work.offset = at - skip;
            work.len = len as usize;
            work.enough = usize::try_from(enough).unwrap_or(usize::MAX).max(1);
            let close = !shared && take == left;
            let task = Task::Read { open, close };
            open = false;
            if !self.step_at_once(&mut work, task, None) {
                work = self.step(work, task, None).await;
            }
            if work.result.is_err() {
                break None;
            }
            let skip = skip as usize;
            let moved = work.moved.saturating_sub(skip).min(take as usize);
            let bytes = &work.buffer[skip..skip + moved];
            match (request.watch, expected) {
                (Some(watch), _) => watch.body(bytes),
                (None, Some(content)) if wrong.is_none() => {
                    wrong = content.verify(extent.from + received, bytes).err();
                }
                _ => {}
            }
            received += moved as u64;
            let ended = moved < take as usize;
            if ended || received >= extent.wanted.unwrap_or(extent.most) {
                break check(&extent, received, wrong);
            }
        };
        self.name(&mut work, request);
        self.end(work, Intent::Find, probe)?;
        match error {
            Some(error) => Err(error),
            None => Ok(Completion::of_bytes(received)),
        }
    }
}

/// The error if the received bytes are not the expected ones; `wrong` is the offset of the first wrong byte.
fn check(extent: &Extent, received: u64, wrong: Option<u64>) -> Option<OpError> {
    let error = |kind, text: String| Some(OpError::new(kind, text));
    if extent.wanted.is_none() && received == 0 && extent.most != u64::MAX {
        return error(
            ErrorKind::Rejected,
            format!("the file ends before byte {}", extent.from),
        );
    }
    match (extent.wanted, wrong) {
        (Some(wanted), _) if received > wanted => error(
            ErrorKind::Corrupt,
            format!("the file is longer than the {wanted} bytes of the object"),
        ),
        (_, Some(at)) => error(
            ErrorKind::Corrupt,
            format!("the byte at offset {at} is not the byte written"),
        ),
        (Some(wanted), None) if received < wanted => error(
            ErrorKind::Corrupt,
            format!("{received} bytes came instead of {wanted}"),
        ),
        _ => None,
    }
}
