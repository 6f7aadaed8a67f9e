//! MinIO's names of S3 operations.

use bucketload_core::trace::TraceOp;

/// The operation called `name` in audit logs, or `s3.name` in traces.
pub(super) fn operation(name: &str) -> TraceOp {
    match name.strip_prefix("s3.").unwrap_or(name) {
        "GetObject" => TraceOp::Get,
        "HeadObject" => TraceOp::Head,
        "PutObject" | "PostPolicyBucket" => TraceOp::Put,
        "DeleteObject" => TraceOp::Delete,
        "DeleteMultipleObjects" => TraceOp::MultiDelete,
        "CopyObject" => TraceOp::Copy,
        "NewMultipartUpload" => TraceOp::MpuInit,
        "PutObjectPart" => TraceOp::MpuPart,
        "CompleteMultipartUpload" => TraceOp::MpuComplete,
        "AbortMultipartUpload" => TraceOp::MpuAbort,
        "ListObjectsV1" | "ListObjectsV2" | "ListObjectsV2M" | "ListObjectVersions" => {
            TraceOp::List
        }
        _ => TraceOp::Other,
    }
}
