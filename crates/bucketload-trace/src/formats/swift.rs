//! OpenStack Swift proxy access log (docs/spec/traces.md section 2.6): URL-encoded values in the order of a template,
//! separated by white space, after a syslog prefix of any length.

use bucketload_core::trace::TraceOp;

use super::{Emit, Importer, SECOND};
use crate::hash::hash64;
use crate::parsed::{DropReason, ParsedRecord};
use crate::text::fields::{optional, percent_decode, query, split_at};
use crate::text::time::{decimal, swift};

/// The log template of current releases.
pub const SWIFT_TEMPLATE: &str = "{client_ip} {remote_addr} {end_time.datetime} {method} {path} \
    {protocol} {status_int} {referer} {user_agent} {auth_token} {bytes_recvd} {bytes_sent} \
    {client_etag} {transaction_id} {headers} {request_time} {source} {log_info} {start_time} \
    {end_time} {policy_index}";

/// The values that a replay needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Client,
    Datetime,
    Method,
    Path,
    Status,
    Received,
    Sent,
    Transaction,
    RequestTime,
    Source,
    StartTime,
}

impl Field {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "client_ip" => Self::Client,
            "end_time.datetime" => Self::Datetime,
            "method" => Self::Method,
            "path" => Self::Path,
            "status_int" => Self::Status,
            "bytes_recvd" => Self::Received,
            "bytes_sent" => Self::Sent,
            "transaction_id" => Self::Transaction,
            "request_time" => Self::RequestTime,
            "source" => Self::Source,
            "start_time" => Self::StartTime,
            _ => return None,
        })
    }
}

/// The importer.
#[derive(Debug)]
pub(super) struct Swift {
    record: ParsedRecord,
    /// The meaning of each value in the template.
    template: Vec<Option<Field>>,
    /// Minimum number of values in a line: up to the last one that every release writes.
    min_values: usize,
    subrequests: bool,
}

impl Swift {
    /// Makes an importer of lines with `template`; `subrequests` keeps requests that Swift made for other requests.
    pub(super) fn new(template: &str, subrequests: bool) -> Result<Self, String> {
        let template: Vec<Option<Field>> = template
            .split_whitespace()
            .map(|word| Field::named(word.trim_start_matches('{').trim_end_matches('}')))
            .collect();
        let at = |field| template.iter().position(|f| *f == Some(field));
        for (field, name) in [
            (Field::Method, "{method}"),
            (Field::Path, "{path}"),
            (Field::Status, "{status_int}"),
        ] {
            if at(field).is_none() {
                return Err(format!("the template of a Swift log must contain {name}"));
            }
        }
        if at(Field::Datetime).is_none() && at(Field::StartTime).is_none() {
            let reason = "must contain {end_time.datetime} or {start_time}";
            return Err(format!("the template of a Swift log {reason}"));
        }
        // Lines of old releases end after `source`. A template without the end needs the start.
        let last = |fields: &[Field]| fields.iter().filter_map(|f| at(*f)).max().unwrap_or(0);
        let mut min_values = 1 + last(&[
            Field::Method,
            Field::Path,
            Field::Status,
            Field::RequestTime,
        ]);
        if at(Field::Datetime).is_none() {
            min_values = min_values.max(1 + last(&[Field::StartTime]));
        }
        Ok(Self {
            record: ParsedRecord::default(),
            template,
            min_values,
            subrequests,
        })
    }
}

impl Importer for Swift {
    fn read(&mut self, line: &[u8], emit: &mut Emit<'_>) -> Result<(), DropReason> {
        let words = || {
            line.split(u8::is_ascii_whitespace)
                .filter(|word| !word.is_empty())
        };
        let at = |field| self.template.iter().position(|f| *f == Some(field));
        // The syslog prefix ends where the first value begins, which is found from the position of the end's instant.
        let skip = match at(Field::Datetime) {
            Some(place) => match words().position(|word| swift(word).is_some()) {
                Some(found) => found.checked_sub(place).ok_or(DropReason::Malformed)?,
                None if words().count() < self.min_values => return Err(DropReason::Truncated),
                None => return Err(DropReason::BadTimestamp),
            },
            None => words().count().saturating_sub(self.template.len()),
        };
        let mut values: [&[u8]; 11] = [b"-"; 11];
        let mut n = 0;
        for (word, field) in words().skip(skip).zip(&self.template) {
            n += 1;
            if let Some(field) = field {
                values[*field as usize] = word;
            }
        }
        if n < self.min_values {
            return Err(DropReason::Truncated);
        }
        let value = |field: Field| values[field as usize];
        if value(Field::Source) != b"-" && !self.subrequests {
            return Err(DropReason::Internal);
        }
        let r = &mut self.record;
        r.clear();
        if value(Field::RequestTime) != b"-" {
            r.dur_ns = decimal(value(Field::RequestTime), SECOND).ok_or(DropReason::BadNumber)?;
        }
        match value(Field::StartTime) {
            b"-" => {
                r.started_before(swift(value(Field::Datetime)).ok_or(DropReason::BadTimestamp)?)
            }
            start => r.ts_ns = decimal(start, SECOND).ok_or(DropReason::BadTimestamp)?,
        }
        let mut decoded = Vec::new();
        percent_decode(value(Field::Path), &mut decoded);
        let (path, parameters) = split_at(&decoded, b'?');
        // /v1/<account>/<container>/<object>
        let mut parts = path
            .strip_prefix(b"/")
            .unwrap_or(path)
            .splitn(4, |&c| c == b'/');
        let version = parts.next().unwrap_or(b"");
        let _account = parts.next();
        let container = parts.next().unwrap_or(b"");
        let object = parts.next().unwrap_or(b"");
        r.op = match (value(Field::Method), object.is_empty()) {
            _ if version != b"v1" && version != b"v1.0" => TraceOp::Other,
            (b"GET", false) => TraceOp::Get,
            (b"HEAD", false) => TraceOp::Head,
            (b"PUT", false) => TraceOp::Put,
            (b"DELETE", false) => TraceOp::Delete,
            (b"COPY", false) => TraceOp::Copy,
            (b"GET", true) if !container.is_empty() => TraceOp::List,
            (b"GET" | b"HEAD" | b"PUT" | b"POST" | b"DELETE" | b"OPTIONS" | b"COPY", _) => {
                TraceOp::Other
            }
            _ => return Err(DropReason::UnknownOp),
        };
        r.bucket.extend_from_slice(container);
        match r.op {
            TraceOp::List => {
                // The query was itself percent-encoded.
                percent_decode(query(parameters, b"prefix").unwrap_or(b""), &mut r.key);
            }
            _ => r.key.extend_from_slice(object),
        }
        if value(Field::Client) != b"-" {
            r.client.extend_from_slice(value(Field::Client));
        }
        let number = |field| optional(value(field)).ok_or(DropReason::BadNumber);
        r.status = number(Field::Status)?.clamp(0, 999) as u16;
        let transaction = value(Field::Transaction);
        if transaction != b"-" {
            // Sub-requests share the transaction id of their request.
            r.id = hash64(&[transaction, value(Field::Method), value(Field::Path)]);
        }
        match r.op {
            // An empty body is logged as `-`.
            TraceOp::Put => r.size = number(Field::Received)?.max(0),
            TraceOp::Get => {
                r.sent = number(Field::Sent)?;
                if r.status == 206 {
                    r.set_unplaced_range(r.sent);
                }
            }
            _ => {}
        }
        emit(r);
        Ok(())
    }
}
