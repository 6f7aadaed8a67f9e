//! IBM Cloud Object Storage traces (SNIA IOTTA set 36305; docs/spec/traces.md section 2.1):
//! `ms REST.OP.OBJECT id [size [first last]]`, with inclusive ranges, and milliseconds since the start of the
//! collection. Only requests with status 200 are recorded.

use bucketload_core::trace::TraceOp;

use super::{Emit, Importer, MS};
use crate::parsed::{DropReason, ParsedRecord};
use crate::text::fields::{signed, unsigned};

/// The importer.
#[derive(Debug, Default)]
pub(super) struct IbmCos {
    record: ParsedRecord,
}

impl Importer for IbmCos {
    fn read(&mut self, line: &[u8], emit: &mut Emit<'_>) -> Result<(), DropReason> {
        let mut fields = line.split(|&c| c == b' ').filter(|field| !field.is_empty());
        let mut next = || fields.next().ok_or(DropReason::Truncated);
        let r = &mut self.record;
        r.clear();
        let ts = unsigned(next()?).ok_or(DropReason::BadTimestamp)?;
        r.ts_ns = i64::try_from(ts)
            .ok()
            .and_then(|ms| ms.checked_mul(MS))
            .ok_or(DropReason::BadTimestamp)?;
        r.op = match next()? {
            b"REST.GET.OBJECT" => TraceOp::Get,
            b"REST.PUT.OBJECT" => TraceOp::Put,
            b"REST.HEAD.OBJECT" => TraceOp::Head,
            b"REST.DELETE.OBJECT" => TraceOp::Delete,
            b"REST.COPY.OBJECT" => TraceOp::Copy,
            _ => return Err(DropReason::UnknownOp),
        };
        r.key.extend_from_slice(next()?);
        r.status = 200;
        if let Ok(size) = next() {
            r.size = signed(size)
                .filter(|&n| n >= 0)
                .ok_or(DropReason::BadNumber)?;
            if let Ok(first) = next() {
                let first = signed(first).ok_or(DropReason::BadNumber)?;
                let last = signed(next()?).ok_or(DropReason::BadNumber)?;
                r.set_range(first, last, r.size)?;
            }
        }
        if fields.next().is_some() {
            return Err(DropReason::Malformed);
        }
        emit(r);
        Ok(())
    }
}
