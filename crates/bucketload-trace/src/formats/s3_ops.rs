//! Operation names of S3 server access logs, in text or JSON.

use bucketload_core::trace::TraceOp;

use crate::parsed::DropReason;

/// Maps a log's `REST.…` name to the operation.
///
/// # Errors
/// Why records of the operation are left out.
pub(super) fn operation(name: &[u8]) -> Result<TraceOp, DropReason> {
    Ok(match name {
        b"REST.GET.OBJECT" | b"WEBSITE.GET.OBJECT" => TraceOp::Get,
        b"REST.HEAD.OBJECT" | b"WEBSITE.HEAD.OBJECT" => TraceOp::Head,
        b"REST.PUT.OBJECT" | b"REST.POST.OBJECT" => TraceOp::Put,
        b"REST.DELETE.OBJECT" => TraceOp::Delete,
        b"REST.GET.BUCKET" => TraceOp::List,
        b"REST.COPY.OBJECT" => TraceOp::Copy,
        b"REST.POST.UPLOADS" => TraceOp::MpuInit,
        b"REST.PUT.PART" => TraceOp::MpuPart,
        b"REST.POST.UPLOAD" => TraceOp::MpuComplete,
        b"REST.DELETE.UPLOAD" => TraceOp::MpuAbort,
        b"BATCH.DELETE.OBJECT" => TraceOp::MultiDelete,
        // BATCH.DELETE.OBJECT lines have the keys; the second line of a copy repeats the first.
        b"REST.POST.MULTI_OBJECT_DELETE" | b"REST.COPY.OBJECT_GET" => {
            return Err(DropReason::Internal);
        }
        _ if name.starts_with(b"S3.") => return Err(DropReason::Internal),
        _ if [&b"REST."[..], b"SOAP.", b"BATCH.", b"WEBSITE."]
            .iter()
            .any(|p| name.starts_with(p)) =>
        {
            TraceOp::Other
        }
        _ => return Err(DropReason::UnknownOp),
    })
}
