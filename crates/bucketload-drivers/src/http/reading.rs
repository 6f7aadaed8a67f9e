//! Receives the body of a read and checks that it is the requested one.

use bucketload_core::driver::{Completion, ErrorKind, OpError, OpResult, Request};
use bucketload_core::op::{ByteRange, Op};
use bucketload_core::payload::Content;

use super::exchange::Reply;
use super::sink::Sink;

/// What is wrong with an answer that is not about the part.
pub(crate) const PART_IGNORED: &str = "the server ignored partNumber";

/// The sink for the body of a GET: compares it with the expected content, passes it to a watcher, or only counts it.
pub(crate) struct Reading<'a> {
    request: &'a Request<'a>,
    /// Object offset of the next byte.
    at: u64,
    /// Object offset of the first wrong byte.
    wrong: Option<u64>,
}

impl<'a> Reading<'a> {
    /// A sink for the response to `request`, a get, range-get or get-part.
    pub(crate) fn of(request: &'a Request<'a>) -> Self {
        let mut reading = Self {
            request,
            at: 0,
            wrong: None,
        };
        reading.at = reading.range().map_or(0, |r| r.offset);
        reading
    }

    /// The requested range, or that of the requested part; `None` for the whole object.
    pub(crate) fn range(&self) -> Option<ByteRange> {
        let op = &self.request.op;
        op.range.filter(|_| op.class.reads_range())
    }

    fn expected(&self) -> Option<&'a Content<'a>> {
        self.request
            .content
            .as_ref()
            .filter(|_| self.request.verify)
    }

    /// Size of the whole object, if known.
    fn known(&self) -> Option<u64> {
        let size = self.request.op.size;
        match self.expected() {
            Some(content) => Some(content.size()),
            None => (size != Op::UNKNOWN_SIZE).then_some(size),
        }
    }

    /// Checks a response that was received completely.
    ///
    /// # Errors
    /// `Corrupt` when bytes or their number are wrong, `Protocol` when the server ignored the range.
    pub(crate) fn finish(&self, reply: &Reply) -> OpResult {
        let whole = |r: ByteRange| r.offset == 0 && self.known().is_some_and(|size| r.len >= size);
        let by_part = self.request.op.class.by_part();
        // A server that does not know parts sends the whole object, whose bytes cannot be right.
        if (by_part || self.wrong.is_none())
            && let Some(range) = self.range()
            && reply.status != 206
            && !whole(range)
        {
            let ignored = match by_part {
                true => PART_IGNORED,
                false => "the server ignored the Range header",
            };
            return Err(OpError::with_status(
                ErrorKind::Protocol,
                reply.status,
                ignored,
            ));
        }
        self.judge(reply.status, reply.received, reply.range_start())
    }

    /// Checks `received` bytes that came with `status`; `start` is their offset according to the store.
    ///
    /// # Errors
    /// `Corrupt` when bytes or their number are wrong.
    pub(crate) fn judge(&self, status: u16, received: u64, start: Option<u64>) -> OpResult {
        let corrupt =
            |detail: String| Err(OpError::with_status(ErrorKind::Corrupt, status, detail));
        if let Some(at) = self.wrong {
            return corrupt(format!("the byte at offset {at} is not the byte written"));
        }
        let range = self.range();
        let offset = range.map_or(0, |r| r.offset);
        if range.is_some()
            && let Some(start) = start
            && start != offset
        {
            return corrupt(format!("the range begins at {start} instead of {offset}"));
        }
        let wanted = match (self.known(), range) {
            (Some(size), Some(range)) => Some(range.len.min(size.saturating_sub(offset))),
            (Some(size), None) => Some(size),
            (None, _) => None,
        };
        let most = wanted.or(range.map(|r| r.len)).unwrap_or(u64::MAX);
        if wanted.is_some_and(|n| n != received) || received > most {
            let wanted = wanted.unwrap_or(most);
            return corrupt(format!(
                "the size differs: received {received} bytes, expected {wanted}"
            ));
        }
        Ok(Completion {
            bytes: received,
            items: 0,
            object_size: 0,
        })
    }
}

impl Sink for Reading<'_> {
    fn wants_body(&self) -> bool {
        // After the first difference, the rest no longer matters.
        self.request.watch.is_some() || (self.expected().is_some() && self.wrong.is_none())
    }

    fn data(&mut self, bytes: &[u8]) {
        if let Some(watch) = self.request.watch {
            watch.body(bytes);
        } else if let (Some(content), None) = (self.expected(), self.wrong) {
            self.wrong = content.verify(self.at, bytes).err();
        }
        self.at += bytes.len() as u64;
    }
}
