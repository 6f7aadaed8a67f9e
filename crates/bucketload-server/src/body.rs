//! Decoding the framing of request bodies: plain length, chunked transfer coding, the `aws-chunked`
//! encoding, or `aws-chunked` inside chunked transfer coding.
//!
//! After a payload error (a bad signature, a full store) the reader consumes and drops the rest of the
//! body, so the connection stays usable and the client sees the response. Only broken framing ends
//! the reading.

use bucketload_wire::http::{self, ChunkedDecoder, Event};

use super::aws_chunked::AwsChunked;
use super::error::{Code, S3Error, S3Result};

/// Reads one request body.
pub(crate) struct BodyReader {
    outer: Outer,
    aws: Option<Box<AwsChunked>>,
    /// Payload bytes announced in the head, if any.
    announced: Option<u64>,
    /// Payload bytes received.
    seen: u64,
    /// The first payload error.
    failed: Option<S3Error>,
}

enum Outer {
    /// Bytes still to come.
    Length(u64),
    Chunked(ChunkedDecoder),
    Done,
}

impl BodyReader {
    /// A reader for a body with the framing `body`. `aws` decodes an `aws-chunked` payload, and
    /// `announced` is the payload's decoded length.
    pub(crate) fn new(body: http::Body, aws: Option<AwsChunked>, announced: Option<u64>) -> Self {
        let outer = match body {
            http::Body::Empty | http::Body::UntilClose => Outer::Done,
            http::Body::Length(n) => Outer::Length(n),
            http::Body::Chunked => Outer::Chunked(ChunkedDecoder::new()),
        };
        Self {
            outer,
            aws: aws.map(Box::new),
            announced,
            seen: 0,
            failed: None,
        }
    }

    /// Whether the last byte of the body has been consumed.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.outer, Outer::Done)
    }

    /// Drops the rest of the payload because of `error`.
    pub(crate) fn fail(&mut self, error: S3Error) {
        self.failed.get_or_insert(error);
    }

    /// Whether the payload is being dropped.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Bytes still to come, if the reader only counts them: no framing inside needs decoding.
    pub(crate) fn plain_rest(&self) -> Option<u64> {
        match self.outer {
            Outer::Length(n) if self.aws.is_none() || self.failed.is_some() => Some(n),
            _ => None,
        }
    }

    /// Records that the plain rest was received elsewhere.
    pub(crate) fn skip_rest(&mut self) {
        if let Outer::Length(n) = self.outer {
            self.seen += n;
            self.outer = Outer::Done;
        }
    }

    /// Consumes `bytes` up to the end of the body and passes their payload to `sink`. Returns how
    /// many bytes were consumed.
    ///
    /// # Errors
    /// `InvalidRequest` for broken transfer coding: the connection is no longer usable.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn FnMut(&[u8]) -> S3Result<()>,
    ) -> S3Result<usize> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            match &mut self.outer {
                Outer::Done => return Ok(used),
                Outer::Length(left) => {
                    let take = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= take as u64;
                    if *left == 0 {
                        self.outer = Outer::Done;
                    }
                    self.payload(&rest[..take], sink);
                    return Ok(used + take);
                }
                Outer::Chunked(decoder) => {
                    let (n, event) = decoder.decode(rest)?;
                    used += n;
                    match event {
                        Event::NeedMore => return Ok(used),
                        Event::Data { len } => self.payload(&rest[n - len..n], sink),
                        Event::Chunk { .. } | Event::ChunkEnd => {}
                        Event::End => self.outer = Outer::Done,
                    }
                }
            }
        }
    }

    fn payload(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(&[u8]) -> S3Result<()>) {
        if self.failed.is_some() {
            return;
        }
        let Some(aws) = &mut self.aws else {
            self.seen += bytes.len() as u64;
            if let Err(error) = sink(bytes) {
                self.fail(error);
            }
            return;
        };
        loop {
            match aws.next(&mut bytes) {
                Ok(Some(data)) => {
                    self.seen += data.len() as u64;
                    if let Err(error) = sink(data) {
                        return self.fail(error);
                    }
                }
                Ok(None) => break,
                Err(error) => return self.fail(error),
            }
        }
        if !bytes.is_empty() {
            self.fail(S3Error::new(
                Code::InvalidRequest,
                "There are bytes after the last chunk.",
            ));
        }
    }

    /// Ends the body and returns its trailer lines.
    ///
    /// # Errors
    /// The first payload error; `IncompleteBody` if the payload does not have the announced length.
    pub(crate) fn finish(self) -> S3Result<Vec<(String, String)>> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let complete = self.aws.as_ref().is_none_or(|aws| aws.is_done());
        if !complete
            || self
                .announced
                .is_some_and(|announced| announced != self.seen)
        {
            return Err(Code::IncompleteBody.into());
        }
        Ok(self
            .aws
            .map(|aws| aws.trailers().to_vec())
            .unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reader: &mut BodyReader, bytes: &[u8], piece: usize) -> S3Result<(Vec<u8>, usize)> {
        let (mut out, mut used) = (Vec::new(), 0);
        while !reader.is_done() && used < bytes.len() {
            let end = bytes.len().min(used + piece);
            used += reader.feed(&bytes[used..end], &mut |data| {
                out.extend_from_slice(data);
                Ok(())
            })?;
        }
        Ok((out, used))
    }

    #[test]
    fn every_framing_gives_the_payload_and_leaves_the_rest() {
        let aws = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let mut both = Vec::new();
        for chunk in aws.chunks(4) {
            both.extend(format!("{:x}\r\n", chunk.len()).bytes());
            both.extend(chunk);
            both.extend(b"\r\n");
        }
        both.extend(b"0\r\n\r\n");
        let new_aws = || Some(AwsChunked::new(None, true));
        for piece in [1, 2, 5, 1000] {
            for (mut reader, body) in [
                (
                    BodyReader::new(http::Body::Length(5), None, None),
                    b"abcde".to_vec(),
                ),
                (
                    BodyReader::new(http::Body::Chunked, None, None),
                    aws.to_vec(),
                ),
                (
                    BodyReader::new(http::Body::Length(aws.len() as u64), new_aws(), Some(5)),
                    aws.to_vec(),
                ),
                (
                    BodyReader::new(http::Body::Chunked, new_aws(), Some(5)),
                    both.clone(),
                ),
            ] {
                let bytes = [&body[..], b"GET /"].concat();
                let (out, used) = read(&mut reader, &bytes, piece).unwrap();
                assert_eq!((out.as_slice(), used), (&b"abcde"[..], body.len()));
                assert_eq!(reader.finish(), Ok(Vec::new()));
            }
        }
    }

    #[test]
    fn payload_errors_keep_the_framing_in_step() {
        let body = b"zz\r\nabcde";
        let mut reader = BodyReader::new(
            http::Body::Length(9),
            Some(AwsChunked::new(None, false)),
            None,
        );
        assert_eq!(read(&mut reader, body, 3).unwrap(), (Vec::new(), 9));
        assert_eq!(reader.finish().unwrap_err().code, Code::InvalidRequest);

        let mut reader = BodyReader::new(http::Body::Length(4), None, None);
        let mut calls = 0;
        for piece in [b"ab", b"cd"] {
            reader
                .feed(piece, &mut |_| {
                    calls += 1;
                    Err(Code::StorageFull.into())
                })
                .unwrap();
        }
        assert_eq!((calls, reader.is_done()), (1, true));
        assert_eq!(reader.finish().unwrap_err().code, Code::StorageFull);
    }

    #[test]
    fn wrong_lengths_are_detected() {
        let aws = b"3\r\nabc\r\n0\r\n\r\n";
        for (len, announced, code) in [
            (aws.len(), Some(4), Code::IncompleteBody),
            (aws.len() - 2, Some(3), Code::IncompleteBody),
            (aws.len() + 1, Some(3), Code::InvalidRequest),
        ] {
            let framing = http::Body::Length(len as u64);
            let mut reader =
                BodyReader::new(framing, Some(AwsChunked::new(None, false)), announced);
            read(&mut reader, &[&aws[..], b"x"].concat(), 100).unwrap();
            assert_eq!(reader.finish().unwrap_err().code, code);
        }
        let mut reader = BodyReader::new(http::Body::Chunked, None, None);
        assert!(read(&mut reader, b"zz\r\n", 10).is_err());
    }
}
