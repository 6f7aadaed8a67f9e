//! Multipart uploads: one operation of the workload, several requests.
//!
//! An operation that fails half-way leaves its unfinished upload behind, because aborting it would be a request that the
//! workload did not ask for. Clean-up aborts such uploads (`Admin::abort_uploads`).

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::ops::Range;
use std::task::Poll;

use bucketload_core::driver::{Completion, DONE, content_of};
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::{Op, Request};
use bucketload_core::payload::Content;
use bucketload_core::record::Probe;

use super::config::ChecksumAlgorithm;
use super::keeping::Kind;
use super::ops_object::push_source;
use super::ops_versions::note_version;
use super::prepare::{ContentHashes, S3Call, Upload};
use super::session::S3Session;
use crate::http::answer::{MAX_DOCUMENT, as_text, unreadable};
use crate::http::pool::Buffer;
use crate::http::render::Render as _;
use crate::http::session::HttpSession as _;
use crate::http::sink::OneField;
use crate::http::span::Span;
use bucketload_s3::canonical::Header;
use bucketload_s3::encode;
use bucketload_s3::xml;

/// Maximum number of parts (Amazon S3 User Guide, "Amazon S3 multipart upload limits").
const MAX_PARTS: u64 = 10_000;

/// Divides `size` bytes into parts of `part` bytes (0 = one part). Returns the number of parts, at least one because an
/// upload needs one, and their size.
fn parts_of(size: u64, part: u64) -> OpResult<(u64, u64)> {
    let part = if part == 0 { size.max(1) } else { part };
    let count = size.div_ceil(part).max(1);
    if count > MAX_PARTS {
        return Err(OpError::new(
            ErrorKind::Rejected,
            format!(
                "{size} bytes in parts of {part} make {count} parts, more than the {MAX_PARTS} \
                 that S3 allows; raise the part size"
            ),
        ));
    }
    Ok((count, part))
}

fn begin_complete(document: &mut Vec<u8>) {
    document.extend_from_slice(
        b"<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">",
    );
}

fn push_part(
    document: &mut Vec<u8>,
    number: u64,
    etag: &[u8],
    checksum: Option<(ChecksumAlgorithm, &[u8])>,
) {
    document.extend_from_slice(b"<Part>");
    if let Some((algorithm, value)) = checksum {
        let name = algorithm.element().as_bytes();
        for piece in [b"<", name, b">", value, b"</", name, b">"] {
            document.extend_from_slice(piece);
        }
    }
    document.extend_from_slice(b"<ETag>");
    xml::push_escaped(document, as_text(etag));
    document.extend_from_slice(b"</ETag><PartNumber>");
    encode::push_decimal(document, number);
    document.extend_from_slice(b"</PartNumber></Part>");
}

fn part_query(query: &mut Vec<u8>, number: u64, upload: &[u8]) {
    query.clear();
    query.number("partNumber", number);
    query.parameter("uploadId", as_text(upload));
}

fn missing(what: &str) -> OpError {
    OpError::new(ErrorKind::Protocol, format!("the response has no {what}"))
}

/// The parts of an upload, of which each can be sent by any session.
struct PartsToSend<'a> {
    request: &'a Request<'a>,
    upload: &'a [u8],
    content: &'a Content<'a>,
    /// Size of a part, bytes.
    part: u64,
    each: &'a [(ContentHashes, Range<usize>)],
    digests: &'a [u8],
}

impl PartsToSend<'_> {
    /// The checksum of part `number`, if it has one.
    fn sum(
        &self,
        number: u64,
        algorithm: Option<ChecksumAlgorithm>,
    ) -> Option<(ChecksumAlgorithm, &[u8])> {
        let (hashes, _) = &self.each[number as usize - 1];
        let sum = algorithm.zip(hashes.sum.as_ref());
        sum.map(|(algorithm, sum)| (algorithm, sum.as_bytes()))
    }

    /// Sends part `number` and stores its entity tag in `etag`.
    async fn send(
        &self,
        session: &mut S3Session,
        number: u64,
        etag: &mut Vec<u8>,
        probe: &mut Probe,
    ) -> Result<(), OpError> {
        let (hashes, chunks) = &self.each[number as usize - 1];
        let mut query = Buffer::take();
        part_query(&mut query, number, self.upload);
        let mut prepared = {
            let offset = (number - 1) * self.part;
            let content = Upload {
                span: Span {
                    content: self.content,
                    offset,
                    len: self.part.min(self.content.size() - offset),
                },
                hashes: *hashes,
                digests: &self.digests[chunks.clone()],
            };
            let call = S3Call::new("PUT", self.request.bucket, self.request.key);
            let call = call.query(&query).kind(Kind::Content);
            session.prepare(&call.content(content))
        };
        etag.clear();
        let mut sink = OneField {
            name: "etag",
            value: etag,
        };
        session.perform(&mut prepared, &mut sink, probe).await?;
        match etag.is_empty() {
            true => Err(missing("ETag of the part")),
            false => Ok(()),
        }
    }

    /// Sends all parts over `lanes` at the same time; each takes the next part when it is free. Returns their entity tags.
    /// The first failure ends all.
    async fn together(
        &self,
        lanes: &mut [S3Session],
        probe: &mut Probe,
    ) -> Result<Vec<Vec<u8>>, OpError> {
        let tags = RefCell::new(vec![Vec::new(); self.each.len()]);
        let (next, requests) = (Cell::new(1), Cell::new(0));
        let lane = async |session: &mut S3Session| {
            // Instants of single parts are not those of the operation.
            let mut unseen = Probe::untimed();
            let mut etag = Buffer::take();
            while next.get() <= self.each.len() as u64 {
                let number = next.replace(next.get() + 1);
                self.send(session, number, &mut etag, &mut unseen).await?;
                tags.borrow_mut()[number as usize - 1].extend_from_slice(&etag);
            }
            requests.set(requests.get() + unseen.requests());
            Ok::<(), OpError>(())
        };
        let mut running: Vec<_> = lanes
            .iter_mut()
            .map(|session| Some(Box::pin(lane(session))))
            .collect();
        poll_fn(|cx| {
            let mut waiting = false;
            for slot in &mut running {
                match slot.as_mut().map(|lane| lane.as_mut().poll(cx)) {
                    Some(Poll::Pending) => waiting = true,
                    Some(Poll::Ready(Ok(()))) => *slot = None,
                    Some(Poll::Ready(Err(error))) => return Poll::Ready(Err(error)),
                    None => {}
                }
            }
            match waiting {
                true => Poll::Pending,
                false => Poll::Ready(Ok(())),
            }
        })
        .await?;
        drop(running);
        probe.add_requests(requests.get());
        Ok(tags.into_inner())
    }
}

impl S3Session {
    pub(crate) async fn multipart_put(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let content = content_of(request)?;
        let (count, part) = parts_of(content.size(), request.op.count)?;
        let span_of = |number: u64| {
            let offset = (number - 1) * part;
            let len = part.min(content.size() - offset);
            Span {
                content,
                offset,
                len,
            }
        };
        // Hashing and connecting are not part of the operation, so both come before the first request.
        let mut digests = Buffer::take();
        let mut parts = self.parts.take().unwrap_or_default();
        parts.each.clear();
        for number in 1..=count {
            let from = digests.len();
            let hashes = ContentHashes::of(self.shared.config(), span_of(number), &mut digests);
            parts.each.push((hashes, from..digests.len()));
        }
        let lanes = u64::from(request.op.pages.max(1)).min(count) as usize;
        if lanes > 1 {
            parts
                .lanes
                .resize_with(lanes.max(parts.lanes.len()), || self.another());
            for lane in &mut parts.lanes[..lanes] {
                lane.connect(probe).await?;
            }
        }
        let checksum = self.shared.config().checksum;
        let mut upload = Buffer::take();
        self.create_upload(request, checksum, &mut upload, probe)
            .await?;
        let mut document = Buffer::take();
        begin_complete(&mut document);
        let sent = PartsToSend {
            request,
            upload: &upload,
            content,
            part,
            each: &parts.each,
            digests: &digests,
        };
        if lanes > 1 {
            let tags = sent.together(&mut parts.lanes[..lanes], probe).await?;
            for (number, tag) in (1..=count).zip(&tags) {
                push_part(&mut document, number, tag, sent.sum(number, checksum));
            }
        } else {
            let mut etag = Buffer::take();
            for number in 1..=count {
                sent.send(self, number, &mut etag, probe).await?;
                push_part(&mut document, number, &etag, sent.sum(number, checksum));
            }
        }
        self.parts = Some(parts);
        self.complete_upload(request, &upload, &mut document, probe)
            .await?;
        Ok(Completion {
            bytes: content.size(),
            items: count,
            ..DONE
        })
    }

    pub(crate) async fn multipart_copy(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let op = &request.op;
        // An object of unknown size is copied as one part: a part without a range is the whole object.
        let whole = op.size == Op::UNKNOWN_SIZE || op.size == 0;
        let (count, part) = if whole {
            (1, 0)
        } else {
            parts_of(op.size, op.count)?
        };
        let mut upload = Buffer::take();
        self.create_upload(request, None, &mut upload, probe)
            .await?;
        let mut source = Buffer::take();
        push_source(&mut source, request);
        let mut query = Buffer::take();
        let mut range = Buffer::take();
        let mut document = Buffer::take();
        let mut body = Buffer::take();
        let mut etag = Buffer::take();
        begin_complete(&mut document);
        for number in 1..=count {
            part_query(&mut query, number, &upload);
            range.clear();
            if !whole {
                let offset = (number - 1) * part;
                range.extend_from_slice(b"bytes=");
                encode::push_decimal(&mut range, offset);
                range.push(b'-');
                encode::push_decimal(&mut range, (offset + part).min(op.size) - 1);
            }
            let headers = [
                Header {
                    name: "x-amz-copy-source",
                    value: &source,
                },
                Header {
                    name: "x-amz-copy-source-range",
                    value: &range,
                },
            ];
            let headers = if whole { &headers[..1] } else { &headers };
            let call = S3Call::new("PUT", request.bucket, request.key);
            let call = call.query(&query).kind(Kind::PartCopy).headers(headers);
            let mut prepared = self.prepare(&call);
            self.conclude(&mut prepared, &mut body, MAX_DOCUMENT, probe)
                .await?;
            etag.clear();
            xml::leaves(&body, |path, text| {
                if path.last() == Some(&"ETag") {
                    etag.clear();
                    text.push_to(&mut etag);
                }
            })
            .map_err(|e| unreadable("response to the part's copy", e))?;
            if etag.is_empty() {
                return Err(missing("ETag of the copied part"));
            }
            push_part(&mut document, number, &etag, None);
        }
        self.complete_upload(request, &upload, &mut document, probe)
            .await?;
        Ok(Completion {
            items: count,
            ..DONE
        })
    }

    pub(crate) async fn multipart_abort(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let mut upload = Buffer::take();
        self.create_upload(request, None, &mut upload, probe)
            .await?;
        self.abort_upload(request.bucket, request.key, &upload, probe)
            .await
    }

    /// Creates an upload and stores its id in `upload`.
    async fn create_upload(
        &mut self,
        request: &Request<'_>,
        checksum: Option<ChecksumAlgorithm>,
        upload: &mut Vec<u8>,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let headers = [
            Header {
                name: "x-amz-checksum-algorithm",
                value: checksum.map_or("", ChecksumAlgorithm::api_name).as_bytes(),
            },
            // CRC64NVME supports only this type for multipart objects.
            Header {
                name: "x-amz-checksum-type",
                value: b"FULL_OBJECT",
            },
        ];
        let headers = match checksum {
            None => &[],
            Some(ChecksumAlgorithm::Crc64Nvme) => &headers[..],
            Some(_) => &headers[..1],
        };
        let call = S3Call::new("POST", request.bucket, request.key);
        let call = call.query(b"uploads=").kind(Kind::Object).headers(headers);
        let mut prepared = self.prepare(&call);
        let mut body = Buffer::take();
        self.document(&mut prepared, &mut body, MAX_DOCUMENT, probe)
            .await?;
        xml::leaves(&body, |path, text| {
            if matches!(path, [_, "UploadId"]) {
                upload.clear();
                text.push_to(upload);
            }
        })
        .map_err(|e| unreadable("response to the upload's creation", e))?;
        if upload.is_empty() {
            return Err(missing("UploadId"));
        }
        Ok(())
    }

    async fn complete_upload(
        &mut self,
        request: &Request<'_>,
        upload: &[u8],
        document: &mut Vec<u8>,
        probe: &mut Probe,
    ) -> OpResult<()> {
        document.extend_from_slice(b"</CompleteMultipartUpload>");
        let mut query = Buffer::take();
        query.parameter("uploadId", as_text(upload));
        let call = S3Call::new("POST", request.bucket, request.key);
        let call = call.query(&query).kind(Kind::Content).document(document);
        let mut prepared = self.prepare(&call);
        let (mut body, mut id) = (Buffer::take(), Buffer::take());
        let wanted = request.version.filter(|_| request.op.class.writes_body());
        match wanted {
            None => {
                self.conclude(&mut prepared, &mut body, MAX_DOCUMENT, probe)
                    .await?;
            }
            Some(version) => {
                self.conclude_noting(&mut prepared, (&mut body, &mut id), probe)
                    .await?;
                note_version(version, &id)?;
            }
        }
        Ok(())
    }

    pub(crate) async fn abort_upload(
        &mut self,
        bucket: &str,
        key: &str,
        upload: &[u8],
        probe: &mut Probe,
    ) -> OpResult {
        let mut query = Buffer::take();
        query.parameter("uploadId", as_text(upload));
        let mut prepared = self.prepare(&S3Call::new("DELETE", bucket, key).query(&query));
        self.complete(&mut prepared, probe).await
    }
}

#[cfg(test)]
mod tests {
    use super::parts_of;

    #[test]
    fn parts_cover_the_object() {
        assert_eq!(parts_of(0, 5).unwrap(), (1, 5));
        assert_eq!(parts_of(10, 5).unwrap(), (2, 5));
        assert_eq!(parts_of(11, 5).unwrap(), (3, 5));
        assert_eq!(parts_of(11, 0).unwrap(), (1, 11));
        assert!(parts_of(10_001, 1).is_err());
    }
}
