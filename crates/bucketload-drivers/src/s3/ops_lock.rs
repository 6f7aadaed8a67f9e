//! Object lock, access control lists and attributes of objects. Each operation is one request on the current version.

use bucketload_core::driver::{Completion, DONE};
use bucketload_core::error::OpResult;
use bucketload_core::op::Request;
use bucketload_core::record::Probe;
use bucketload_wire::clock::wall_seconds;

use super::keeping::Kind;
use super::ops_list::set;
use super::prepare::S3Call;
use super::session::S3Session;
use crate::http::answer::{MAX_DOCUMENT, as_text, unreadable};
use crate::http::pool::Buffer;
use crate::http::session::HttpSession as _;
use bucketload_s3::canonical::Header;
use bucketload_s3::{date, xml};

/// Maximum size of the attributes of an object, in bytes: 1000 parts with their checksums.
const MAX_ATTRIBUTES: usize = 1 << 20;
/// Seconds of a day.
const DAY: u64 = 86_400;

/// The attributes that the operation asks for: all.
const ATTRIBUTES: [Header<'static>; 1] = [Header {
    name: "x-amz-object-attributes",
    value: b"ETag,Checksum,ObjectParts,StorageClass,ObjectSize",
}];
/// The list that the operation sets. It never opens an object to others.
const ACL: [Header<'static>; 1] = [Header {
    name: "x-amz-acl",
    value: b"private",
}];
pub(super) const HOLD_ON: &[u8] = b"<LegalHold xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
    <Status>ON</Status></LegalHold>";
pub(super) const HOLD_OFF: &[u8] = b"<LegalHold xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
    <Status>OFF</Status></LegalHold>";

impl S3Session {
    /// PutObjectRetention in governance mode, which the clean-up can lift, until `count` days from now.
    pub(crate) async fn put_retention(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let until = wall_seconds().saturating_add(request.op.count.saturating_mul(DAY));
        let mut document = Buffer::take();
        document.extend_from_slice(
            b"<Retention xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Mode>GOVERNANCE</Mode><RetainUntilDate>",
        );
        document.extend_from_slice(&date::iso(until));
        document.extend_from_slice(b"</RetainUntilDate></Retention>");
        self.put_document(request, b"retention=", &document, probe)
            .await
    }

    /// PutObjectLegalHold.
    pub(crate) async fn put_legal_hold(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        self.put_document(request, b"legal-hold=", HOLD_ON, probe)
            .await
    }

    async fn put_document(
        &mut self,
        request: &Request<'_>,
        query: &'static [u8],
        document: &[u8],
        probe: &mut Probe,
    ) -> OpResult {
        let call = S3Call::new("PUT", request.bucket, request.key);
        let mut prepared = self.prepare(&call.query(query).document(document));
        self.complete(&mut prepared, probe).await
    }

    /// GetObjectRetention, GetObjectLegalHold or GetObjectAcl, according to `query`. Counts the elements `item`.
    pub(crate) async fn get_facts(
        &mut self,
        request: &Request<'_>,
        (query, item): (&'static [u8], &'static str),
        probe: &mut Probe,
    ) -> OpResult {
        let call = S3Call::new("GET", request.bucket, request.key);
        let mut prepared = self.prepare(&call.query(query));
        let mut body = Buffer::take();
        self.document(&mut prepared, &mut body, MAX_DOCUMENT, probe)
            .await?;
        let mut items = 0;
        xml::leaves(&body, |path, _| {
            items += u64::from(path.last() == Some(&item));
        })
        .map_err(|e| unreadable("response", e))?;
        Ok(Completion { items, ..DONE })
    }

    /// PutObjectAcl with the canned list `private`.
    pub(crate) async fn put_acl(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let call = S3Call::new("PUT", request.bucket, request.key);
        let mut prepared = self.prepare(&call.query(b"acl=").headers(&ACL));
        self.complete(&mut prepared, probe).await
    }

    /// GetObjectAttributes. Counts the parts, if the server names them.
    pub(crate) async fn get_attributes(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> OpResult {
        let call = S3Call::new("GET", request.bucket, request.key).kind(Kind::Content);
        let mut prepared = self.prepare(&call.query(b"attributes=").headers(&ATTRIBUTES));
        let mut body = Buffer::take();
        self.document(&mut prepared, &mut body, MAX_ATTRIBUTES, probe)
            .await?;
        let (mut done, mut size) = (DONE, Buffer::take());
        xml::leaves(&body, |path, text| match *path {
            [_, "ObjectSize"] => set(&mut size, text),
            [_, "ObjectParts", "Part", "PartNumber"] => done.items += 1,
            _ => {}
        })
        .map_err(|e| unreadable("attributes", e))?;
        done.object_size = as_text(&size).parse().unwrap_or(0);
        Ok(done)
    }
}
