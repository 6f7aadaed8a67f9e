//! Ceph RGW ops log (docs/spec/traces.md section 2.5) from its file, its socket or the admin command line.
//! `time` is the start. The method comes from `uri`: reading metadata shows as `get_obj` too.

use bucketload_core::trace::TraceOp;

use serde::Deserialize;

use super::{Emit, Framing, Importer, MS};
use crate::hash::hash64;
use crate::parsed::{DropReason, ParsedRecord};
use crate::text::fields::{percent_decode, query, split_path};
use crate::text::json::{Int, Text};
use crate::text::time::rfc3339;

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, default)]
    bucket: Text<'a>,
    #[serde(borrow, default)]
    object: Option<Text<'a>>,
    #[serde(borrow)]
    time: Text<'a>,
    #[serde(borrow, default)]
    remote_addr: Text<'a>,
    #[serde(borrow)]
    operation: Text<'a>,
    #[serde(borrow)]
    uri: Text<'a>,
    #[serde(default)]
    http_status: Int,
    #[serde(default)]
    bytes_sent: Int,
    #[serde(default)]
    bytes_received: Int,
    #[serde(default)]
    object_size: Int,
    #[serde(default)]
    total_time: Int,
    #[serde(borrow, default)]
    trans_id: Text<'a>,
    #[serde(borrow, default)]
    op_data: Option<OpData<'a>>,
}

#[derive(Deserialize)]
struct OpData<'a> {
    #[serde(borrow, default)]
    objects: Vec<Deleted<'a>>,
}

#[derive(Deserialize)]
struct Deleted<'a> {
    #[serde(borrow, default)]
    key: Text<'a>,
}

/// The importer.
#[derive(Debug, Default)]
pub(super) struct Rgw {
    record: ParsedRecord,
}

/// Maps RGW's name and the HTTP method to the operation; writes with a part number are parts.
fn operation(name: &str, method: &[u8], part: bool) -> TraceOp {
    match (name, method) {
        ("get_obj" | "stat_obj", b"HEAD") | ("stat_obj", _) => TraceOp::Head,
        ("get_obj", _) => TraceOp::Get,
        ("put_obj" | "post_obj", _) if part => TraceOp::MpuPart,
        ("put_obj" | "post_obj", _) => TraceOp::Put,
        ("delete_obj", _) => TraceOp::Delete,
        ("copy_obj", _) => TraceOp::Copy,
        ("list_bucket", _) => TraceOp::List,
        ("init_multipart", _) => TraceOp::MpuInit,
        ("complete_multipart", _) => TraceOp::MpuComplete,
        ("abort_multipart", _) => TraceOp::MpuAbort,
        ("multi_object_delete", _) => TraceOp::MultiDelete,
        _ => TraceOp::Other,
    }
}

impl Importer for Rgw {
    fn read(&mut self, object: &[u8], emit: &mut Emit<'_>) -> Result<(), DropReason> {
        let entry: Entry<'_> = super::from_json(object)?;
        let r = &mut self.record;
        r.clear();
        r.ts_ns = rfc3339(entry.time.bytes()).ok_or(DropReason::BadTimestamp)?;
        let mut words = entry.uri.bytes().split(|&c| c == b' ');
        let (method, path) = (words.next().unwrap_or(b""), words.next().unwrap_or(b""));
        let (in_path_bucket, in_path_key, parameters) = split_path(path);
        let part = query(parameters, b"partNumber").is_some();
        r.op = operation(&entry.operation.0, method, part);
        match entry.bucket.bytes() {
            b"" => percent_decode(in_path_bucket, &mut r.bucket),
            name => r.bucket.extend_from_slice(name),
        }
        r.client.extend_from_slice(entry.remote_addr.bytes());
        r.status = entry.http_status.0.clamp(0, 999) as u16;
        if entry.total_time.0 >= 0 {
            r.dur_ns = entry.total_time.0.saturating_mul(MS);
        }
        let request = entry.trans_id.bytes();
        if r.op == TraceOp::MultiDelete {
            let data = entry.op_data.map(|data| data.objects).unwrap_or_default();
            let keys = data.iter().map(|deleted| deleted.key.0.as_ref());
            return r.emit_deleted(request, keys, emit);
        }
        if !request.is_empty() {
            r.id = hash64(&[request]);
        }
        match (&entry.object, r.op) {
            (_, TraceOp::List) => {
                percent_decode(query(parameters, b"prefix").unwrap_or(b""), &mut r.key);
            }
            (Some(key), _) if !key.0.is_empty() => r.key.extend_from_slice(key.0.as_bytes()),
            _ => percent_decode(in_path_key, &mut r.key),
        }
        r.need_key()?;
        r.set_part(parameters)?;
        match r.op {
            TraceOp::Put | TraceOp::MpuPart => {
                // Received bytes include the framing of signed chunks.
                let (size, received) = (entry.object_size.0, entry.bytes_received.0);
                r.size = if size > 0 || received < 0 {
                    size
                } else {
                    received
                };
            }
            TraceOp::Get => {
                r.size = entry.object_size.0;
                r.sent = entry.bytes_sent.0;
                if r.status == 206 {
                    r.set_unplaced_range(r.sent);
                }
            }
            TraceOp::Head | TraceOp::Copy => r.size = entry.object_size.0,
            _ => {}
        }
        emit(r);
        Ok(())
    }

    fn framing(&self) -> Framing {
        Framing::Json
    }
}
