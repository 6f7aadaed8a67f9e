//! S3 server access logs as JSON, as delivered to CloudWatch Logs (docs/spec/traces.md section 2.2): the fields of the
//! text form by name, with milliseconds in `request_time`.

use serde::Deserialize;

use super::s3_access::finish;
use super::s3_ops::operation;
use super::{Emit, Framing, Importer, MS};
use crate::parsed::{DropReason, ParsedRecord};
use crate::text::fields::split_path;
use crate::text::json::{Int, Text};
use crate::text::time::{common_log, rfc3339};

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    bucket_name: Text<'a>,
    #[serde(borrow, alias = "time")]
    request_time: Text<'a>,
    #[serde(borrow, default)]
    remote_ip: Text<'a>,
    #[serde(borrow, default)]
    requester: Text<'a>,
    #[serde(borrow, default)]
    request_id: Text<'a>,
    #[serde(borrow)]
    operation: Text<'a>,
    #[serde(borrow, default)]
    key: Text<'a>,
    #[serde(borrow, default)]
    request_uri: Text<'a>,
    #[serde(default)]
    http_status: Int,
    #[serde(default)]
    bytes_sent: Int,
    #[serde(default)]
    object_size: Int,
    #[serde(default)]
    total_time: Int,
}

/// The importer.
#[derive(Debug, Default)]
pub(super) struct S3AccessJson {
    record: ParsedRecord,
}

impl Importer for S3AccessJson {
    fn read(&mut self, object: &[u8], emit: &mut Emit<'_>) -> Result<(), DropReason> {
        let o: Record<'_> = super::from_json(object)?;
        let r = &mut self.record;
        r.clear();
        let time = o.request_time.bytes();
        let ts = rfc3339(time).or_else(|| common_log(time));
        r.ts_ns = ts.ok_or(DropReason::BadTimestamp)?;
        r.op = operation(o.operation.bytes())?;
        r.bucket.extend_from_slice(o.bucket_name.bytes());
        let client = if o.remote_ip.is_empty() {
            &o.requester
        } else {
            &o.remote_ip
        };
        r.client.extend_from_slice(client.bytes());
        r.status = o.http_status.0.clamp(0, 999) as u16;
        r.size = o.object_size.0;
        r.sent = o.bytes_sent.0;
        if o.total_time.0 >= 0 {
            r.dur_ns = o.total_time.0.saturating_mul(MS);
        }
        let path = o
            .request_uri
            .bytes()
            .split(|&c| c == b' ')
            .nth(1)
            .unwrap_or(b"");
        finish(r, o.key.bytes(), split_path(path).2, o.request_id.bytes())?;
        emit(r);
        Ok(())
    }

    fn framing(&self) -> Framing {
        Framing::Json
    }
}
