//! Twitter's cache traces (docs/spec/traces.md section 3.1): `seconds,key,key size,value size,client,op,TTL`
//! without a header.

use bucketload_core::trace::TraceOp;

use super::{Emit, Importer, SECOND};
use crate::parsed::{DropReason, ParsedRecord};
use crate::text::fields::{signed, unsigned};

/// The importer.
#[derive(Debug)]
pub(super) struct Twitter {
    record: ParsedRecord,
    /// Leave out append, prepend, incr and decr instead of converting each to a read and a write.
    skip_updates: bool,
    /// Delete written objects when their time to live has expired.
    expire: bool,
}

impl Twitter {
    pub(super) fn new(skip_updates: bool, expire: bool) -> Self {
        Self {
            record: ParsedRecord::default(),
            skip_updates,
            expire,
        }
    }
}

enum Kind {
    Read,
    Write,
    Update,
    Delete,
}

impl Importer for Twitter {
    fn read(&mut self, line: &[u8], emit: &mut Emit<'_>) -> Result<(), DropReason> {
        // Only keys may contain commas.
        let first = memchr::memchr(b',', line).ok_or(DropReason::Truncated)?;
        let mut fields = line[first + 1..].rsplitn(6, |&c| c == b',');
        let mut next = || fields.next().ok_or(DropReason::Truncated);
        let (ttl, op, client, value, key_size, key) =
            (next()?, next()?, next()?, next()?, next()?, next()?);
        let r = &mut self.record;
        r.clear();
        let seconds = unsigned(&line[..first]).and_then(|s| i64::try_from(s).ok());
        let ts = seconds
            .and_then(|s| s.checked_mul(SECOND))
            .ok_or(DropReason::BadTimestamp)?;
        r.ts_ns = ts;
        let kind = match op {
            b"get" | b"gets" => Kind::Read,
            b"set" | b"replace" | b"cas" | b"add" => Kind::Write,
            b"append" | b"prepend" | b"incr" | b"decr" => Kind::Update,
            b"delete" => Kind::Delete,
            _ => return Err(DropReason::UnknownOp),
        };
        let ttl = signed(ttl).ok_or(DropReason::BadNumber)?;
        unsigned(key_size).ok_or(DropReason::BadNumber)?;
        let value = unsigned(value).and_then(|n| i64::try_from(n).ok());
        let value = value.ok_or(DropReason::BadNumber)?;
        if key.is_empty() {
            return Err(DropReason::NoKey);
        }
        r.key.extend_from_slice(key);
        r.client.extend_from_slice(client);
        if matches!(kind, Kind::Delete) {
            r.op = TraceOp::Delete;
            emit(r);
            return Ok(());
        }
        if matches!(kind, Kind::Update) && self.skip_updates {
            return Err(DropReason::NotReplayed);
        }
        // A miss is logged with size 0.
        if matches!(kind, Kind::Read | Kind::Update) {
            r.op = TraceOp::Get;
            r.size = if value > 0 { value } else { -1 };
            emit(r);
        }
        if matches!(kind, Kind::Write | Kind::Update) {
            r.op = TraceOp::Put;
            r.size = value;
            emit(r);
            if self.expire && ttl > 0 {
                r.op = TraceOp::Delete;
                r.size = -1;
                r.ts_ns = ts.saturating_add(ttl.saturating_mul(SECOND));
                emit(r);
            }
        }
        Ok(())
    }
}
