//! MinIO audit logs (docs/spec/traces.md section 2.4 a). `time` is the end of a request; durations are decimal
//! strings of nanoseconds.

use bucketload_core::trace::TraceOp;

use std::collections::BTreeMap;

use serde::Deserialize;

use super::minio_ops::operation;
use super::{Emit, Framing, Importer};
use crate::hash::hash64;
use crate::parsed::{DropReason, ParsedRecord};
use crate::text::fields::copy_source;
use crate::text::json::{Int, Text};
use crate::text::time::rfc3339;

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    time: Text<'a>,
    #[serde(borrow)]
    api: Api<'a>,
    #[serde(borrow, default, alias = "remoteHost")]
    remotehost: Text<'a>,
    #[serde(borrow, default, rename = "requestID")]
    request_id: Text<'a>,
    #[serde(borrow, default, rename = "requestQuery")]
    query: Option<BTreeMap<&'a str, Text<'a>>>,
    #[serde(borrow, default, rename = "requestHeader")]
    header: Option<BTreeMap<&'a str, Text<'a>>>,
}

#[derive(Deserialize)]
struct Api<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default)]
    bucket: Text<'a>,
    #[serde(borrow, default)]
    object: Text<'a>,
    #[serde(borrow, default)]
    objects: Option<Vec<Object<'a>>>,
    #[serde(default, rename = "statusCode")]
    status: Int,
    #[serde(default)]
    rx: Int,
    #[serde(default)]
    tx: Int,
    #[serde(default, rename = "timeToResponseInNS")]
    response_ns: Int,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow, default, rename = "objectName")]
    name: Text<'a>,
}

/// The importer.
#[derive(Debug, Default)]
pub(super) struct MinioAudit {
    record: ParsedRecord,
}

/// The value of a header or parameter; its name is case-insensitive.
fn value<'m>(map: &'m Option<BTreeMap<&str, Text<'_>>>, name: &str) -> &'m [u8] {
    let found = map
        .iter()
        .flatten()
        .find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map_or(b"", |(_, value)| value.bytes())
}

impl Importer for MinioAudit {
    fn read(&mut self, object: &[u8], emit: &mut Emit<'_>) -> Result<(), DropReason> {
        let entry: Entry<'_> = super::from_json(object)?;
        let r = &mut self.record;
        r.clear();
        let end = rfc3339(entry.time.bytes()).ok_or(DropReason::BadTimestamp)?;
        r.dur_ns = entry.api.response_ns.0;
        r.started_before(end);
        r.op = operation(&entry.api.name.0);
        r.bucket.extend_from_slice(entry.api.bucket.bytes());
        r.client.extend_from_slice(entry.remotehost.bytes());
        r.status = entry.api.status.0.clamp(0, 999) as u16;
        let request = entry.request_id.bytes();
        if !request.is_empty() {
            r.id = hash64(&[request]);
        }
        if r.op == TraceOp::MultiDelete {
            let objects = entry.api.objects.unwrap_or_default();
            let keys = objects.iter().map(|object| object.name.0.as_ref());
            return r.emit_deleted(request, keys, emit);
        }
        r.key.extend_from_slice(match r.op {
            TraceOp::List => value(&entry.query, "prefix"),
            _ => entry.api.object.0.as_bytes(),
        });
        r.need_key()?;
        let part = crate::text::fields::optional(value(&entry.query, "partNumber"));
        r.part = u16::try_from(part.ok_or(DropReason::BadNumber)?.max(0))
            .map_err(|_| DropReason::BadNumber)?;
        let upload = value(&entry.query, "uploadId");
        if !upload.is_empty() {
            r.upload = hash64(&[upload]);
        }
        copy_source(value(&entry.header, "X-Amz-Copy-Source"), &mut r.source);
        match r.op {
            TraceOp::Put | TraceOp::MpuPart => r.size = entry.api.rx.0,
            TraceOp::Get => {
                r.sent = entry.api.tx.0;
                r.set_requested_range(value(&entry.header, "Range"));
            }
            _ => {}
        }
        emit(r);
        Ok(())
    }

    fn framing(&self) -> Framing {
        Framing::Json
    }
}
