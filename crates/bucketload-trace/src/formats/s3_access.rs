//! Amazon S3 server access logs (docs/spec/traces.md section 2.2), also as written by RGW's bucket logging in standard
//! mode: fields by position, `[time]`, quoted strings that may contain quotes. Further fields at the end are ignored.
//! The resolution is 1 s; the position of a range is not logged.

use bucketload_core::trace::TraceOp;

use super::s3_ops::operation;
use super::{Emit, Importer};
use crate::hash::hash64;
use crate::parsed::{DropReason, ParsedRecord};
use crate::text::fields::{optional, percent_decode, query, split_path};
use crate::text::time::common_log;

const BUCKET: usize = 1;
const TIME: usize = 2;
const REMOTE_IP: usize = 3;
const REQUESTER: usize = 4;
const REQUEST_ID: usize = 5;
const OPERATION: usize = 6;
const KEY: usize = 7;
const URI: usize = 8;
const STATUS: usize = 9;
const SENT: usize = 11;
const SIZE: usize = 12;
const TOTAL_MS: usize = 13;
/// Minimum number of fields: up to the user agent, as in the oldest form, which lacks the version id.
const MIN_FIELDS: usize = 17;

/// The importer.
#[derive(Debug, Default)]
pub(super) struct S3Access {
    record: ParsedRecord,
}

/// Splits a line at spaces; `[…]` and `"…"` are one field each. Returns the number of fields.
fn split<'a>(line: &'a [u8], out: &mut [&'a [u8]; 18]) -> usize {
    let (mut at, mut n) = (0, 0);
    while at < line.len() && n < out.len() {
        let (start, end, next) = match line[at] {
            b' ' => {
                at += 1;
                continue;
            }
            b'[' => match memchr::memchr(b']', &line[at..]) {
                Some(end) => (at + 1, at + end, at + end + 1),
                None => return n,
            },
            b'"' => {
                let mut end = at + 1;
                loop {
                    match memchr::memchr(b'"', &line[end..]) {
                        None => return n,
                        Some(i) => {
                            end += i;
                            if matches!(line.get(end + 1), None | Some(b' ')) {
                                break;
                            }
                            end += 1;
                        }
                    }
                }
                (at + 1, end, end + 1)
            }
            _ => {
                let len = memchr::memchr(b' ', &line[at..]).unwrap_or(line.len() - at);
                (at, at + len, at + len)
            }
        };
        out[n] = &line[start..end];
        n += 1;
        at = next;
    }
    n
}

fn absent(field: &[u8]) -> bool {
    matches!(field, b"" | b"-")
}

impl Importer for S3Access {
    fn read(&mut self, line: &[u8], emit: &mut Emit<'_>) -> Result<(), DropReason> {
        let mut f: [&[u8]; 18] = [b""; 18];
        let n = split(line, &mut f);
        if n <= TIME {
            return Err(DropReason::Truncated);
        }
        let ts_ns = common_log(f[TIME]).ok_or(DropReason::BadTimestamp)?;
        if n < MIN_FIELDS {
            return Err(DropReason::Truncated);
        }
        let r = &mut self.record;
        r.clear();
        r.ts_ns = ts_ns;
        r.op = operation(f[OPERATION])?;
        r.bucket.extend_from_slice(f[BUCKET]);
        let number = |field: &[u8]| optional(field).ok_or(DropReason::BadNumber);
        r.status = number(f[STATUS])?.clamp(0, 999) as u16;
        r.size = number(f[SIZE])?;
        r.sent = number(f[SENT])?;
        r.dur_ns = match number(f[TOTAL_MS])? {
            ms if ms >= 0 => ms.saturating_mul(1_000_000),
            _ => -1,
        };
        let client = if absent(f[REMOTE_IP]) {
            f[REQUESTER]
        } else {
            f[REMOTE_IP]
        };
        if !absent(client) {
            r.client.extend_from_slice(client);
        }
        // `METHOD /bucket/key?query HTTP/1.1`
        let path = f[URI].split(|&c| c == b' ').nth(1).unwrap_or(b"");
        let parameters = split_path(path).2;
        finish(r, f[KEY], parameters, f[REQUEST_ID])?;
        emit(r);
        Ok(())
    }
}

/// Completes a record; shared by the text and the JSON form.
pub(super) fn finish(
    r: &mut ParsedRecord,
    key: &[u8],
    parameters: &[u8],
    request: &[u8],
) -> Result<(), DropReason> {
    if !absent(key) {
        percent_decode(key, &mut r.key);
    }
    if r.op == TraceOp::List
        && let Some(prefix) = query(parameters, b"prefix")
    {
        percent_decode(prefix, &mut r.key);
    }
    r.need_key()?;
    if r.op == TraceOp::Get && r.status == 206 {
        r.set_unplaced_range(r.sent);
    }
    r.set_part(parameters)?;
    if r.op == TraceOp::MultiDelete {
        r.upload = hash64(&[request]);
    }
    if !absent(request) {
        // The keys of a multi-object delete share the request id.
        r.id = match r.op {
            TraceOp::MultiDelete => hash64(&[request, &r.key]),
            _ => hash64(&[request]),
        };
    }
    Ok(())
}
