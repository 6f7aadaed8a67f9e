//! AWS CloudTrail data events of S3 (docs/spec/traces.md section 2.3): `{"Records":[…]}`. `eventTime` is the end of the
//! request, in whole seconds. Durations are not recorded, so starts are late by the duration. Sizes are known only from
//! the bytes transferred.

use bucketload_core::trace::TraceOp;

use serde::Deserialize;

use super::{Emit, Framing, Importer};
use crate::hash::hash64;
use crate::parsed::{DropReason, ParsedRecord};
use crate::text::fields::copy_source;
use crate::text::json::{Int, Text};
use crate::text::time::rfc3339;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow)]
    event_time: Text<'a>,
    #[serde(borrow)]
    event_source: Text<'a>,
    #[serde(borrow)]
    event_name: Text<'a>,
    #[serde(borrow, default, rename = "sourceIPAddress")]
    source_ip: Text<'a>,
    #[serde(borrow, default)]
    error_code: Text<'a>,
    #[serde(borrow, default, rename = "eventID")]
    event_id: Text<'a>,
    #[serde(borrow, default)]
    request_parameters: Option<Parameters<'a>>,
    #[serde(default)]
    additional_event_data: Option<Transferred>,
}

#[derive(Default, Deserialize)]
struct Parameters<'a> {
    #[serde(borrow, default, rename = "bucketName")]
    bucket: Text<'a>,
    #[serde(borrow, default)]
    key: Text<'a>,
    #[serde(borrow, default)]
    prefix: Text<'a>,
    #[serde(default, rename = "partNumber")]
    part: Int,
    #[serde(borrow, default, rename = "uploadId")]
    upload: Text<'a>,
    #[serde(borrow, default, rename = "x-amz-copy-source")]
    source: Text<'a>,
    #[serde(borrow, default, rename = "Range")]
    range: Text<'a>,
}

#[derive(Default, Deserialize)]
struct Transferred {
    #[serde(default, rename = "bytesTransferredIn")]
    received: Int,
    #[serde(default, rename = "bytesTransferredOut")]
    sent: Int,
}

/// The importer.
#[derive(Debug, Default)]
pub(super) struct CloudTrail {
    record: ParsedRecord,
}

fn operation(name: &str) -> TraceOp {
    match name {
        "GetObject" => TraceOp::Get,
        "PutObject" | "PostObject" => TraceOp::Put,
        "HeadObject" => TraceOp::Head,
        "DeleteObject" => TraceOp::Delete,
        "CopyObject" => TraceOp::Copy,
        "CreateMultipartUpload" => TraceOp::MpuInit,
        "UploadPart" => TraceOp::MpuPart,
        "CompleteMultipartUpload" => TraceOp::MpuComplete,
        "AbortMultipartUpload" => TraceOp::MpuAbort,
        "ListObjects" | "ListObjectsV2" | "ListObjectVersions" => TraceOp::List,
        // Bulk deletes do not name keys; separate events have the keys, if those are enabled.
        _ => TraceOp::Other,
    }
}

/// The status for an error code, because CloudTrail does not record the status.
fn status(error: &str) -> u16 {
    match error {
        "" => 200,
        "NoSuchKey" | "NoSuchBucket" | "NoSuchUpload" | "NotFound" => 404,
        "AccessDenied" => 403,
        "PreconditionFailed" => 412,
        "NotModified" => 304,
        "SlowDown" | "ServiceUnavailable" => 503,
        "InternalError" => 500,
        _ => 400,
    }
}

impl Importer for CloudTrail {
    fn read(&mut self, object: &[u8], emit: &mut Emit<'_>) -> Result<(), DropReason> {
        let event: Event<'_> = super::from_json(object)?;
        if event.event_source.0 != "s3.amazonaws.com" {
            return Err(DropReason::Foreign);
        }
        let r = &mut self.record;
        r.clear();
        r.ts_ns = rfc3339(event.event_time.bytes()).ok_or(DropReason::BadTimestamp)?;
        r.op = operation(&event.event_name.0);
        r.status = status(&event.error_code.0);
        r.client.extend_from_slice(event.source_ip.bytes());
        let parameters = event.request_parameters.unwrap_or_default();
        r.bucket.extend_from_slice(parameters.bucket.bytes());
        r.key.extend_from_slice(match r.op {
            TraceOp::List => parameters.prefix.bytes(),
            _ => parameters.key.bytes(),
        });
        r.need_key()?;
        copy_source(parameters.source.bytes(), &mut r.source);
        r.part = u16::try_from(parameters.part.0.max(0)).map_err(|_| DropReason::BadNumber)?;
        if !parameters.upload.is_empty() {
            r.upload = hash64(&[parameters.upload.bytes()]);
        }
        if !event.event_id.is_empty() {
            r.id = hash64(&[event.event_id.bytes()]);
        }
        let transferred = event.additional_event_data.unwrap_or_default();
        match r.op {
            TraceOp::Put | TraceOp::MpuPart => r.size = transferred.received.0,
            TraceOp::Get => {
                r.sent = transferred.sent.0;
                // Without a range header it may still have been a range: the sent bytes are a lower bound of the size.
                r.set_requested_range(parameters.range.bytes());
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
