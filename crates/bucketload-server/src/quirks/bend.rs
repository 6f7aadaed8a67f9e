//! Bends requests, listings and responses as the quirks ask.

use std::time::Duration;

use super::{Quirk, Quirks, table};
use crate::claim::PayloadAuth;
use crate::error::S3Result;
use crate::headers::{Headers, Name};
use crate::ops::range;
use crate::pending::Reply;
use crate::respond::Body;
use crate::router::Operation;
use crate::sigv4::Verified;
use crate::thread::{RequestBuffers, ServerState};
use crate::uri::Target;
use bucketload_store::{ListRequest, Listing};

/// How long [`Quirk::SlowAnswers`] waits.
const SLOW: Duration = Duration::from_millis(200);

/// Whether a row for `operations` (none: all) is about `operation`.
fn concerns(operations: &[Operation], operation: Operation) -> bool {
    operations.is_empty() || operations.contains(&operation)
}

/// Rewrites a request that is verified and routed.
///
/// # Errors
/// The error that the quirk refuses the request with.
pub(crate) fn request(
    server: &ServerState,
    operation: &mut Operation,
    target: &mut Target,
    headers: &mut Headers<'_, '_>,
    verified: &mut Verified,
) -> S3Result<()> {
    let quirks = server.config.quirks;
    for &(quirk, from, to) in table::MISTAKEN {
        if quirks.has(quirk) && *operation == from {
            *operation = to;
        }
    }
    let operation = *operation;
    for &(quirk, operations, code) in table::REFUSED {
        if quirks.has(quirk) && operations.contains(&operation) {
            return Err(code.into());
        }
    }
    for &(quirk, operations, name, (start, end), code) in table::REFUSED_HEADERS {
        let meant = |value: &[u8]| value.starts_with(start) && value.ends_with(end);
        if quirks.has(quirk)
            && operations.contains(&operation)
            && headers.bytes(name).is_some_and(meant)
        {
            return Err(code.into());
        }
    }
    for &(quirk, operations, names) in table::IGNORED_HEADERS {
        if quirks.has(quirk) && concerns(operations, operation) {
            names.iter().for_each(|&name| headers.forget(name));
        }
    }
    for &(quirk, parameter) in table::IGNORED_PARAMETERS {
        if quirks.has(quirk) && table::LISTINGS.contains(&operation) {
            target.forget(parameter);
        }
    }
    if quirks.has(Quirk::KeysMangled) && table::OF_WRITTEN_KEYS.contains(&operation) {
        target.plus_to_space();
    }
    if quirks.has(Quirk::PayloadHashIgnored) && matches!(verified.payload, PayloadAuth::Sha256(_)) {
        verified.payload = PayloadAuth::Unsigned;
    }
    of_object(server, operation, target, headers)
}

/// The quirks that depend on the object that a request names.
fn of_object(
    server: &ServerState,
    operation: Operation,
    target: &Target,
    headers: &mut Headers<'_, '_>,
) -> S3Result<()> {
    let quirks = server.config.quirks;
    let info = || server.store.head(target.bucket(), target.key());
    if quirks.has(Quirk::DeleteMissing404) && operation == Operation::Delete {
        info()?;
    }
    if quirks.has(Quirk::RangeNo416)
        && matches!(operation, Operation::Get | Operation::Head)
        && let Some(value) = headers.bytes(Name::Range)
        && range::of_header(value, info()?.size).is_err()
    {
        headers.forget(Name::Range);
    }
    Ok(())
}

/// Bends `listing`, the page of `bucket` that answers `request`.
pub(crate) fn listing(
    server: &ServerState,
    bucket: &str,
    request: &ListRequest<'_>,
    listing: &mut Listing,
) {
    let quirks = server.config.quirks;
    if let Some(lag) = quirks.list_lag() {
        server.history.changes.undo(bucket, request, listing, lag);
    }
    if quirks.has(Quirk::ListIncomplete) && listing.next.is_none() {
        listing.objects.pop();
    }
    if quirks.has(Quirk::ListUnsorted) {
        listing.objects.reverse();
        listing.common_prefixes.reverse();
    }
    if quirks.has(Quirk::ListPagingBroken) {
        listing.next = None;
    }
}

/// Bends the response in `buffers`, which `reply` describes.
pub(crate) async fn answer(quirks: Quirks, buffers: &mut RequestBuffers, reply: &mut Reply) {
    if quirks.has(Quirk::SlowAnswers) {
        tokio::time::sleep(SLOW).await;
    }
    reply.close |= quirks.has(Quirk::NoKeepAlive);
    let head = &mut buffers.head;
    for &(quirk, operations, header) in table::WITHHELD {
        let meant =
            operations.is_empty() || reply.operation.is_some_and(|o| operations.contains(&o));
        if quirks.has(quirk) && meant {
            head.remove(header);
        }
    }
    let is_error = head.status() >= 400 && reply.body == Body::Document;
    if quirks.has(Quirk::ErrorsWithoutXml) && is_error {
        head.remove("Content-Type: ");
        head.header("Content-Type", b"text/html");
        let page = format!(
            "<html><body><h1>Error {}</h1></body></html>\n",
            head.status()
        );
        buffers.document.clear();
        buffers.document.extend_from_slice(page.as_bytes());
    }
}
