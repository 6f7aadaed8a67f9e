//! MinIO's live trace (docs/spec/traces.md section 2.4 b): lines of `mc admin trace --json`, and the server's own
//! records (`madmin` TraceInfo; older servers have request, response and stats at the top level). `time` is the start.
//! Byte counts include headers, so without `-v` sizes are estimates.

use bucketload_core::trace::TraceOp;

use std::collections::BTreeMap;

use serde::Deserialize;

use super::minio_ops::operation;
use super::{Emit, Framing, Importer};
use crate::parsed::{DropReason, ParsedRecord};
use crate::text::fields::{copy_source, optional, percent_decode, query, split_path};
use crate::text::json::{Int, Text};
use crate::text::time::rfc3339;

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    time: Text<'a>,
    #[serde(borrow, default)]
    path: Text<'a>,
    #[serde(borrow, default)]
    query: Text<'a>,
    #[serde(
        borrow,
        default,
        alias = "funcname",
        alias = "funcName",
        alias = "FuncName"
    )]
    api: Text<'a>,
    #[serde(borrow, default)]
    r#type: Text<'a>,
    #[serde(borrow, default)]
    client: Text<'a>,
    #[serde(default, rename = "statusCode")]
    status: Int,
    #[serde(default, alias = "dur")]
    duration: Int,
    #[serde(default, rename = "callStats", alias = "stats")]
    stats: Option<Stats>,
    #[serde(borrow, default, alias = "reqInfo")]
    request: Option<Request<'a>>,
    #[serde(borrow, default, alias = "respInfo")]
    response: Option<Response<'a>>,
    #[serde(borrow, default)]
    http: Option<Http<'a>>,
}

#[derive(Deserialize)]
struct Http<'a> {
    #[serde(borrow, default)]
    request: Option<Request<'a>>,
    #[serde(borrow, default)]
    response: Option<Response<'a>>,
    #[serde(default)]
    stats: Option<Stats>,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct Stats {
    #[serde(default, alias = "inputbytes", alias = "inputBytes")]
    rx: Int,
    #[serde(default, alias = "outputbytes", alias = "outputBytes")]
    tx: Int,
    #[serde(default, alias = "latency")]
    duration: Int,
}

/// Header values are strings in one form and lists of strings in another.
#[derive(Deserialize)]
#[serde(untagged)]
enum Values<'a> {
    One(#[serde(borrow)] Text<'a>),
    Many(#[serde(borrow)] Vec<Text<'a>>),
}

#[derive(Default, Deserialize)]
struct Request<'a> {
    #[serde(borrow, default)]
    path: Text<'a>,
    #[serde(borrow, default, alias = "rawquery", alias = "rawQuery")]
    query: Text<'a>,
    #[serde(borrow, default)]
    client: Text<'a>,
    #[serde(borrow, default)]
    headers: Option<BTreeMap<&'a str, Values<'a>>>,
}

#[derive(Default, Deserialize)]
struct Response<'a> {
    #[serde(default, alias = "statuscode", rename = "statusCode")]
    status: Int,
    #[serde(borrow, default)]
    headers: Option<BTreeMap<&'a str, Values<'a>>>,
}

fn header<'m>(map: &'m Option<BTreeMap<&str, Values<'_>>>, name: &str) -> &'m [u8] {
    let found = map
        .iter()
        .flatten()
        .find(|(key, _)| key.eq_ignore_ascii_case(name));
    match found {
        Some((_, Values::One(text))) => text.bytes(),
        Some((_, Values::Many(list))) => list.first().map_or(b"", Text::bytes),
        None => b"",
    }
}

/// The importer.
#[derive(Debug, Default)]
pub(super) struct MinioTrace {
    record: ParsedRecord,
}

fn first<'t>(one: &'t Text<'_>, other: &'t Text<'_>) -> &'t [u8] {
    if one.is_empty() {
        other.bytes()
    } else {
        one.bytes()
    }
}

impl Importer for MinioTrace {
    fn read(&mut self, object: &[u8], emit: &mut Emit<'_>) -> Result<(), DropReason> {
        let o: Record<'_> = super::from_json(object)?;
        // Newer servers write a bit set, in which bit 1 << 2 is S3; the name of the call tells too.
        let s3 = matches!(o.r#type.0.as_ref(), "" | "s3" | "http" | "4");
        if !s3 && !o.api.0.starts_with("s3.") {
            return Err(DropReason::Foreign);
        }
        if o.api.is_empty() {
            return Err(DropReason::Malformed);
        }
        let http = o.http.unwrap_or(Http {
            request: None,
            response: None,
            stats: None,
        });
        let request = o.request.or(http.request).unwrap_or_default();
        let response = o.response.or(http.response).unwrap_or_default();
        let stats = o.stats.or(http.stats).unwrap_or_default();
        let r = &mut self.record;
        r.clear();
        r.ts_ns = rfc3339(o.time.bytes()).ok_or(DropReason::BadTimestamp)?;
        r.op = operation(&o.api.0);
        let duration = if stats.duration.0 >= 0 {
            stats.duration
        } else {
            o.duration
        };
        r.dur_ns = duration.0;
        let status = if o.status.0 >= 0 {
            o.status
        } else {
            response.status
        };
        r.status = status.0.clamp(0, 999) as u16;
        r.client
            .extend_from_slice(first(&o.client, &request.client));
        let (bucket, key, in_path) = split_path(first(&o.path, &request.path));
        let parameters = match first(&o.query, &request.query) {
            b"" => in_path,
            given => given,
        };
        r.bucket.extend_from_slice(bucket);
        match r.op {
            TraceOp::List => {
                percent_decode(query(parameters, b"prefix").unwrap_or(b""), &mut r.key);
            }
            _ => r.key.extend_from_slice(key),
        }
        // A multi-object delete does not name its keys, so it is rejected here.
        r.need_key()?;
        r.set_part(parameters)?;
        copy_source(header(&request.headers, "X-Amz-Copy-Source"), &mut r.source);
        let length = |text: &[u8]| optional(text).unwrap_or(-1);
        match r.op {
            TraceOp::Put | TraceOp::MpuPart => {
                let decoded = length(header(&request.headers, "X-Amz-Decoded-Content-Length"));
                let plain = length(header(&request.headers, "Content-Length"));
                let known = [decoded, plain].into_iter().find(|&n| n >= 0);
                r.size = known.unwrap_or(stats.rx.0);
            }
            TraceOp::Get => {
                let plain = length(header(&response.headers, "Content-Length"));
                r.sent = if plain >= 0 { plain } else { stats.tx.0 };
                r.set_requested_range(header(&request.headers, "Range"));
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
